//! One open intent: what is done about it now. A step by itself is the only member; a parallel
//! group has several, each with its own attempts, doubt and pauses.

use core::time::Duration;

use crate::{
    saga::{Attempt, Class, Text},
    time::{Mono, Wall},
};

/// One open intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) seq: u32,
    /// Failed calls, earlier claims included.
    pub(super) attempts: u32,
    /// Inline retries in this claim.
    pub(super) inline: u32,
    /// Whether it may have been applied.
    pub(super) doubt: bool,
    /// Attempts and doubt as the store knows them.
    pub(super) told: (u32, bool),
    /// Whether the probe said, in this claim, that it was not applied.
    pub(super) probed: bool,
    /// When this claim first called it.
    pub(super) first_call: Option<Wall>,
    pub(super) doing: Doing,
}

/// What is done about an open intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// To be called.
    Ready,
    /// A call is ordered and has not returned.
    Calling(u32),
    /// Between two inline retries, or near the end of a timer.
    Resting(Mono),
    /// For something from outside, until then by the database's clock at the latest.
    Waiting(Option<Wall>),
    /// Its target is down.
    Held {
        target: alloc::string::String,
        after: Duration,
    },
    /// It failed for now; called again after the pause, by anyone.
    Paused {
        class: Class,
        error: Text,
        pause: Duration,
    },
    /// It has an outcome that is not recorded yet.
    Ended(Attempt, Then),
    /// Its outcome is recorded.
    Recorded(Then),
}

/// Which way an outcome sends the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// On.
    On,
    /// Back.
    Back,
    /// To a person.
    Stop,
}

impl Member {
    pub(super) fn new(seq: u32, attempts: u32, doubt: bool) -> Self {
        Self {
            seq,
            attempts,
            inline: 0,
            doubt,
            told: (attempts, doubt),
            probed: false,
            first_call: None,
            doing: Doing::Ready,
        }
    }

    /// Which way it went, once it has an outcome.
    pub(super) fn then(&self) -> Option<Then> {
        match &self.doing {
            Doing::Ended(_, then) | Doing::Recorded(then) => Some(*then),
            Doing::Ready
            | Doing::Calling(_)
            | Doing::Resting(_)
            | Doing::Waiting(_)
            | Doing::Held { .. }
            | Doing::Paused { .. } => None,
        }
    }

    pub(super) fn is_calling(&self) -> bool {
        matches!(self.doing, Doing::Calling(_))
    }

    /// Whether it was ever called, or may have been.
    pub(super) fn was_called(&self) -> bool {
        self.attempts > 0 || self.doubt || self.first_call.is_some()
    }

    /// Whether it has no outcome, and the store does not know what became of it so far.
    pub(super) fn is_untold(&self) -> bool {
        self.then().is_none() && self.told != (self.attempts, self.doubt)
    }
}
