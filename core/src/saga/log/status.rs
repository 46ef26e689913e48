//! One step's life: its states, what can happen to it, and the one table of both (T1).

use alloc::string::String;

use thiserror::Error;

use crate::saga::{Payload, Position};

/// What became of one step: the seven states of the documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Not reached, or passed because a decision went another way.
    #[default]
    Pending,
    /// Its action is an open intent.
    Running,
    /// Its action is done, with its result.
    Completed(Payload),
    /// Its action ended without success.
    Failed {
        /// Whether it may have been applied all the same.
        doubt: bool,
    },
    /// Its compensation is the open intent.
    Compensating {
        /// The action's result; none when the action was in doubt.
        result: Option<Payload>,
    },
    /// Undone.
    Compensated,
    /// Nothing happened that could be undone, or there is nothing to undo.
    Skipped,
}

/// What happened to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An intent to call its action was stored.
    ActionIntended,
    /// The action succeeded.
    ActionDone(Payload),
    /// The action ended without success.
    ActionRefused {
        /// Whether it may have been applied all the same.
        doubt: bool,
    },
    /// The action is not called any more and never was.
    ActionSkipped,
    /// An intent to call its compensation was stored.
    CompensationIntended,
    /// The compensation succeeded.
    CompensationDone,
    /// The compensation was refused for good.
    CompensationRefused,
    /// There is nothing to undo.
    CompensationSkipped,
    /// The action or compensation failed for now.
    Paused,
}

/// A history that no run can have made: stored by another definition, or damaged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Illegal {
    /// No such transition of a step.
    #[error("step {seq} can't be {event:?} when {status:?}")]
    Step {
        /// Which intent.
        seq: u32,
        /// What it was.
        status: Status,
        /// What was to happen.
        event: Event,
    },
    /// The transaction can't stand there after what became of its steps.
    #[error("the transaction can't stand at {at:?}: step {seq} is {status:?}")]
    Stand {
        /// Where it was to stand.
        at: Position,
        /// What contradicts it.
        seq: u32,
        /// What became of that step.
        status: Status,
    },
    /// The record of an intent that is not open.
    #[error("a record of {record:?} while {open:?} is open")]
    Record {
        /// Of which intent.
        record: Position,
        /// The open one.
        open: Position,
    },
    /// The definition has no such step, or another one in its place.
    #[error("step {seq} of the definition is not {name}")]
    Name {
        /// Which intent.
        seq: u32,
        /// As stored.
        name: String,
    },
}

impl Status {
    /// The one table of a step's life.
    pub(super) fn after(self, event: Event) -> Result<Self, (Self, Event)> {
        use Event as E;
        match (self, event) {
            // A repeated intent is no news: a claim repeats the open one.
            (Self::Pending | Self::Running, E::ActionIntended) => Ok(Self::Running),
            // Only an operator's restore opens a failed action again.
            (Self::Failed { .. }, E::ActionIntended) => Ok(Self::Running),
            (Self::Running, E::ActionDone(result)) => Ok(Self::Completed(result)),
            (Self::Running, E::ActionRefused { doubt }) => Ok(Self::Failed { doubt }),
            (Self::Running, E::ActionSkipped) => Ok(Self::Skipped),
            (Self::Running, E::Paused) => Ok(Self::Running),
            (Self::Completed(result), E::CompensationIntended) => Ok(Self::Compensating {
                result: Some(result),
            }),
            (Self::Failed { doubt: true }, E::CompensationIntended) => {
                Ok(Self::Compensating { result: None })
            }
            // Refused for good: stays the open intent, a restored transaction tries it again.
            (
                Self::Compensating { result },
                E::CompensationIntended | E::CompensationRefused | E::Paused,
            ) => Ok(Self::Compensating { result }),
            (Self::Compensating { .. }, E::CompensationDone) => Ok(Self::Compensated),
            (Self::Compensating { .. }, E::CompensationSkipped) => Ok(Self::Skipped),
            // What was never applied has nothing to undo; what is undone stays so; and nothing
            // ends that was not begun.
            (
                status @ (Self::Pending
                | Self::Running
                | Self::Completed(_)
                | Self::Failed { .. }
                | Self::Compensating { .. }
                | Self::Compensated
                | Self::Skipped),
                event,
            ) => Err((status, event)),
        }
    }

    /// Whether something happened that compensation must visit.
    pub(super) fn may_be_applied(&self) -> bool {
        match self {
            Self::Completed(_) | Self::Failed { doubt: true } => true,
            Self::Pending
            | Self::Running
            | Self::Failed { doubt: false }
            | Self::Compensating { .. }
            | Self::Compensated
            | Self::Skipped => false,
        }
    }
}
