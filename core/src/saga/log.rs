//! The step log: what became of every step, and where the transaction stands.
//!
//! The transitions of a step are one `match` on (status, event); everything else is illegal and
//! named. Recovery is replay of the stored records through the functions that ran the first time
//! (R18, T1). Times decide nothing here; which call to make next is not decided here either.

use alloc::vec::Vec;

use thiserror::Error;

use super::{Attempt, Direction, Entry, Payload, Plan, Position};

/// What became of one step: the seven states of the documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Not reached.
    #[default]
    Pending,
    /// Its action is the open intent.
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
    /// No such move of the transaction.
    #[error("the transaction can't move from {from:?} to {to:?}")]
    Move {
        /// Where it stood.
        from: Position,
        /// Where it was to stand.
        to: Position,
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
        name: alloc::string::String,
    },
}

/// The statuses of all steps and the open intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    steps: Vec<Status>,
    at: Position,
    doubt: bool,
}

impl Status {
    /// The one table of a step's life.
    fn after(self, event: Event) -> Result<Self, (Self, Event)> {
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
}

impl Log {
    /// Nothing happened; the first action is the open intent.
    #[must_use]
    pub fn new() -> Self {
        Self {
            steps: alloc::vec![Status::Running],
            at: FIRST,
            doubt: false,
        }
    }

    /// Only where it stands: for a history that can't be read.
    pub(super) fn standing(at: Position, doubt: bool) -> Self {
        let steps = Vec::new();
        Self { steps, at, doubt }
    }

    /// Replays stored records up to the open intent.
    ///
    /// # Errors
    /// [`Illegal`] when no run can have made this history.
    pub fn replay(entries: &[Entry], open: Position, doubt: bool) -> Result<Self, Illegal> {
        let mut log = Self::history(entries)?;
        log.intend(open)?;
        log.doubt |= doubt;
        Ok(log)
    }

    /// Replays stored records (in any order: positions tell it) and stops there: what became of a
    /// settled transaction's steps, for people.
    ///
    /// # Errors
    /// [`Illegal`] when no run can have made this history.
    pub fn history(entries: &[Entry]) -> Result<Self, Illegal> {
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|e| {
            let seq = i64::from(e.position.seq);
            match e.position.direction {
                Direction::Forward => (e.position.direction, seq),
                Direction::Compensating => (e.position.direction, -seq),
            }
        });
        let mut log = Self::new();
        for entry in sorted {
            log.intend(entry.position)?;
            log.record(entry.position, &entry.attempt)?;
        }
        Ok(log)
    }

    /// A stored intent becomes the open one.
    ///
    /// # Errors
    /// [`Illegal`] when it does not follow the one that was open.
    pub fn intend(&mut self, to: Position) -> Result<(), Illegal> {
        let from = self.at;
        let illegal = Illegal::Move { from, to };
        let reopened = matches!(self.status(from.seq), Status::Failed { doubt: true });
        let follows = match (from.direction, to.direction) {
            (Direction::Forward, Direction::Forward) => {
                let done = matches!(self.status(from.seq), Status::Completed(_));
                to.seq == from.seq.saturating_add(u32::from(done))
            }
            (Direction::Forward, Direction::Compensating) => match self.status(from.seq) {
                Status::Failed { doubt: true } => to.seq == from.seq,
                Status::Failed { doubt: false } | Status::Skipped => {
                    from.seq.checked_sub(1) == Some(to.seq)
                }
                Status::Pending
                | Status::Running
                | Status::Completed(_)
                | Status::Compensating { .. }
                | Status::Compensated => false,
            },
            (Direction::Compensating, Direction::Compensating) => match self.status(from.seq) {
                Status::Compensated | Status::Skipped => from.seq.checked_sub(1) == Some(to.seq),
                Status::Compensating { .. } => to.seq == from.seq,
                Status::Pending
                | Status::Running
                | Status::Completed(_)
                | Status::Failed { .. } => false,
            },
            (Direction::Compensating, Direction::Forward) => false,
        };
        if !follows {
            return Err(illegal);
        }
        self.step(
            to.seq,
            match to.direction {
                Direction::Forward => Event::ActionIntended,
                Direction::Compensating => Event::CompensationIntended,
            },
        )?;
        if from != to {
            self.doubt = false;
        } else if reopened {
            self.doubt = true;
        }
        self.at = to;
        Ok(())
    }

    /// The open intent's record.
    ///
    /// # Errors
    /// [`Illegal`] when another intent is open, or the step can't end like this.
    pub fn record(&mut self, of: Position, attempt: &Attempt) -> Result<(), Illegal> {
        if of != self.at {
            return Err(Illegal::Record {
                record: of,
                open: self.at,
            });
        }
        let event = match (of.direction, attempt) {
            (Direction::Forward, Attempt::Done(result)) => Event::ActionDone(result.clone()),
            (Direction::Forward, Attempt::Refused { doubt, .. }) => {
                Event::ActionRefused { doubt: *doubt }
            }
            (Direction::Forward, Attempt::Skipped) => Event::ActionSkipped,
            (Direction::Compensating, Attempt::Done(_)) => Event::CompensationDone,
            (Direction::Compensating, Attempt::Refused { .. }) => Event::CompensationRefused,
            (Direction::Compensating, Attempt::Skipped) => Event::CompensationSkipped,
            (Direction::Forward | Direction::Compensating, Attempt::Paused { .. }) => Event::Paused,
        };
        self.step(of.seq, event)
    }

    /// The open intent may have been applied.
    pub fn put_in_doubt(&mut self) {
        self.doubt = true;
    }

    /// The open intent.
    #[must_use]
    pub fn at(&self) -> Position {
        self.at
    }

    /// Whether the open intent may have been applied.
    #[must_use]
    pub fn doubt(&self) -> bool {
        self.doubt
    }

    /// What became of a step.
    #[must_use]
    pub fn status(&self, seq: u32) -> &Status {
        usize::try_from(seq)
            .ok()
            .and_then(|i| self.steps.get(i))
            .unwrap_or(&Status::Pending)
    }

    /// All steps that were reached, in order.
    #[must_use]
    pub fn statuses(&self) -> &[Status] {
        &self.steps
    }

    /// The result of a step's action, also while it is being compensated.
    #[must_use]
    pub fn result(&self, seq: u32) -> Option<&Payload> {
        match self.status(seq) {
            Status::Completed(result) => Some(result),
            Status::Compensating { result } => result.as_ref(),
            Status::Pending
            | Status::Running
            | Status::Failed { .. }
            | Status::Compensated
            | Status::Skipped => None,
        }
    }

    fn step(&mut self, seq: u32, event: Event) -> Result<(), Illegal> {
        let missing = Illegal::Move {
            from: self.at,
            to: Position { seq, ..self.at },
        };
        let index = usize::try_from(seq).map_err(|_| missing)?;
        if self.steps.len() <= index {
            // `intend` lets seq grow by one, so this adds one status.
            self.steps.resize(index + 1, Status::Pending);
        }
        let old = core::mem::take(&mut self.steps[index]);
        match old.after(event) {
            Ok(new) => {
                self.steps[index] = new;
                Ok(())
            }
            Err((status, event)) => {
                self.steps[index] = status.clone();
                Err(Illegal::Step { seq, status, event })
            }
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

/// Where every transaction begins.
pub const FIRST: Position = Position {
    direction: Direction::Forward,
    seq: 0,
};

/// Whether the records were made by this plan: each names the plan's step in its place.
///
/// # Errors
/// [`Illegal::Name`] for the first that does not.
pub(super) fn named(entries: &[Entry], plan: &Plan) -> Result<(), Illegal> {
    let other = |e: &&Entry| plan.step(e.position.seq).is_none_or(|s| s.name != e.step);
    entries.iter().find(other).map_or(Ok(()), |e| {
        Err(Illegal::Name {
            seq: e.position.seq,
            name: e.step.as_str().into(),
        })
    })
}

/// Whether the open intent is one of the plan's (one beyond its end is none).
///
/// # Errors
/// [`Illegal::Move`] when it is not; a saga without steps stands at its first intent all the same.
pub(super) fn within(log: &Log, plan: &Plan) -> Result<(), Illegal> {
    if plan.step(log.at.seq).is_some() || (plan.steps().is_empty() && log.at == FIRST) {
        return Ok(());
    }
    Err(Illegal::Move {
        from: FIRST,
        to: log.at,
    })
}
