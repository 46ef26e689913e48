//! What can be ordered, by whom. Decides which states an order fits and what an order must say.

use std::time::Duration;

use ring_core::{
    id::{Scope, StepName},
    saga::{Payload, State},
};
use serde_json::json;
use uuid::Uuid;

use super::super::{
    error::{Error, Reason},
    words,
};

/// Longest name of an actor and longest reason, in characters: a sentence or two, no log.
const MAX_SAID_CHARS: usize = 1_000;

/// Who orders, and why. Both are kept in the audit log with the deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By {
    actor: String,
    reason: String,
}

/// An actor or a reason is missing or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "say who ({what}) in 1 to {MAX_SAID_CHARS} characters: actor and reason are kept in the audit log"
)]
pub struct Unfit {
    /// `actor` or `reason`.
    pub what: &'static str,
}

/// What is ordered.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Try a paused one now, whatever it waits for; attempts go on counting.
    Retry,
    /// Put a disabled, terminated or quarantined one back where it stood, due at once, attempts
    /// and deaths forgotten.
    Restore {
        /// It lives at least so long from now.
        lifetime: Duration,
        /// Somebody looked: the open step was not applied, so it is not in doubt any more.
        not_applied: bool,
    },
    /// The same for one whose compensation failed for good, and for no other.
    RetryCompensation {
        /// It lives at least so long from now.
        lifetime: Duration,
    },
    /// Take the open step (or one of its group that was tried) for done by hand. For one that is
    /// paused, disabled, terminated or quarantined; it is due at once.
    Skip {
        /// The step's name, so that nobody skips another one than he means.
        step: StepName,
        /// Its result, as later steps and its compensation will see it.
        result: Payload,
        /// Where the evidence is: a ticket, a booking.
        reference: String,
        /// It lives at least so long from now, when it was not paused.
        lifetime: Duration,
    },
    /// Give it a retry policy of its own; none takes it away. Who runs it now goes on with the
    /// policy that it was claimed with.
    Policy(Option<Policy>),
    /// Send a signal to the step of this name.
    Signal {
        /// Makes repeats harmless: the same id is the same signal.
        id: Uuid,
        /// The waiting step's name.
        name: StepName,
        /// What it gets, JSON.
        value: Payload,
    },
    /// Undo it from the next step's boundary on.
    Cancel {
        /// Makes repeats harmless; one id may cancel many transactions.
        id: Uuid,
    },
    /// A person brought it to an end elsewhere: nothing more is run. For one that is paused,
    /// disabled, terminated or quarantined.
    Close {
        /// Which end that is.
        end: Closed,
        /// Where the evidence is.
        reference: String,
    },
    /// Move it out of a dead region or cluster (the operator's own scope) to another one.
    Rehome {
        /// Where it goes on.
        to: Scope,
    },
}

/// How a transaction ends that a person closes. There are two ways, because there are two states
/// in which nobody needs to look again and which a purge may remove: what a person did by hand is
/// either all of it or none of it. `terminated` is no such end: it says that a person is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Everything that was wanted is done: `completed`, with this result.
    Completed(Payload),
    /// Everything that was done is undone: `compensated`.
    Compensated,
}

/// A retry policy of one transaction (`{"attempts":n|null,"base_ms":n,"cap_ms":n}` in the store).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Most attempts; none is until the lifetime ends.
    pub attempts: Option<u32>,
    /// First pause.
    pub base: Duration,
    /// Longest pause.
    pub cap: Duration,
}

impl By {
    /// Who, and why.
    ///
    /// # Errors
    /// [`Unfit`] when one is blank or too long.
    pub fn new(actor: &str, reason: &str) -> Result<Self, Unfit> {
        let said = |what, text: &str| {
            let text: String = text.trim().chars().filter(|c| *c != '\0').collect();
            let fits = (1..=MAX_SAID_CHARS).contains(&text.chars().count());
            fits.then_some(text).ok_or(Unfit { what })
        };
        Ok(Self {
            actor: said("actor", actor)?,
            reason: said("reason", reason)?,
        })
    }

    /// Who.
    #[must_use]
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl Verb {
    /// As in the audit log.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Restore { .. } => "restore",
            Self::RetryCompensation { .. } => "retry-compensation",
            Self::Skip { .. } => "skip",
            Self::Policy(_) => "policy",
            Self::Signal { .. } => "signal",
            Self::Cancel { .. } => "cancel",
            Self::Close { .. } => "close",
            Self::Rehome { .. } => "rehome",
        }
    }

    /// The states that it fits; a rehoming also fits `running` with a dead owner.
    #[must_use]
    pub fn states(&self) -> &'static [State] {
        use State::{Disabled, Paused, Quarantined, Running, Terminated};
        match self {
            Self::Retry => &[Paused],
            Self::Restore { .. } => &[Terminated, Disabled, Quarantined],
            Self::RetryCompensation { .. } => &[Terminated],
            Self::Skip { .. } | Self::Close { .. } => &[Paused, Terminated, Disabled, Quarantined],
            Self::Signal { .. } | Self::Cancel { .. } => &[Running, Paused],
            Self::Policy(_) | Self::Rehome { .. } => {
                &[Running, Paused, Terminated, Disabled, Quarantined]
            }
        }
    }
}

impl Policy {
    /// A policy that makes sense.
    ///
    /// # Errors
    /// [`Error::Permanent`] when the first pause is zero or longer than the longest one, or when
    /// no attempt is allowed.
    pub fn new(attempts: Option<u32>, base: Duration, cap: Duration) -> Result<Self, Error> {
        if attempts == Some(0) || base.is_zero() || base > cap {
            let why = "attempts must be 1 or more, and 0 < base <= cap";
            return Err(Error::permanent("read a retry policy", Reason(why)));
        }
        Ok(Self {
            attempts,
            base,
            cap,
        })
    }

    pub(super) fn json(self) -> String {
        let (base, cap) = (words::millis(self.base), words::millis(self.cap));
        json!({"attempts": self.attempts, "base_ms": base, "cap_ms": cap}).to_string()
    }
}
