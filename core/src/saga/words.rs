//! The words of a transaction: where it stands, what a step answered, how it ended.

use alloc::{string::String, sync::Arc};
use core::{fmt, time::Duration};

use crate::{id::StepName, time::Wall};

/// Largest value a step or a caller may hand over: 256 KiB of JSON text, so that a batch of 512
/// writes stays far below Postgres' message limit.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// Largest error text that is kept: enough for a stack of causes, too little to fill a disk.
pub const MAX_TEXT_CHARS: usize = 2_000;

/// JSON text, opaque to every decision; cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<str>);

/// An error's text, cut to [`MAX_TEXT_CHARS`], without NUL (Postgres refuses it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Arc<str>);

/// Which way a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Actions, upwards.
    Forward,
    /// Compensations, strictly downwards.
    Compensating,
}

/// The open intent: what is, or is about to be, called. Sequence numbers count intents from 0;
/// compensation walks them downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Action or compensation.
    pub direction: Direction,
    /// Of which intent.
    pub seq: u32,
}

/// A transaction's state, as stored. "Parked" and "running" are told apart by the row's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Owned by a process that runs it.
    Running,
    /// Waits for its due time; the documents' `FAILED_WITH_RETRYABLE_ERROR`, forward or
    /// compensating.
    Paused,
    /// Every action done.
    Completed,
    /// Every action that may have happened is undone.
    Compensated,
    /// A compensation failed for good; a person is needed (R16).
    Terminated,
    /// Outlived its lifetime; a person may restore it (R16).
    Disabled,
    /// Killed its processes too often; a person is needed (X9).
    Quarantined,
}

/// How a run ends. A settled transaction never changes but by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every action done, with the saga's result.
    Completed(Payload),
    /// Undone.
    Compensated,
    /// A compensation was refused for good.
    Terminated,
    /// Its lifetime is over.
    Disabled,
}

/// Why a step failed, in the classes that decide what comes next (F2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Will probably go away; retried. Explicitly *not applied*.
    Transient,
    /// Refused for a reason of the business; not applied; compensation starts.
    Business,
    /// Refused for good (a bug, a missing thing); not applied; compensation starts.
    Persistent,
    /// Nobody knows whether it was applied (time limit, crash, unclassified); retried, and in
    /// doubt until it succeeds or is compensated.
    Unknown,
}

/// What one call of an action or a compensation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, with the result (JSON `null` for none).
    Done(Payload),
    /// Not done, or nobody knows.
    Failed {
        /// Which way to go on.
        class: Class,
        /// For people.
        error: Text,
        /// The target asked for this pause (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// Begun elsewhere: its end comes as a wake-up (a sub-saga).
    Waits,
    /// A probe's answer: the action was not applied. It may be called, and stays in doubt: what
    /// is still under way may arrive later.
    NotApplied,
}

/// Something that happened to a transaction from outside and is kept with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A signal; the first one with the name of a step counts for it.
    Signal {
        /// The step that waits, or will.
        name: StepName,
        /// Its result.
        body: Payload,
    },
    /// A sub-saga came to an end, forward or undone.
    Child {
        /// The step that started it.
        step: StepName,
        /// Its result, or why it was undone.
        end: Result<Payload, Text>,
    },
    /// Somebody wants it undone.
    Cancel {
        /// Who and why.
        why: Text,
    },
}

/// How the record of a step's (direction, seq) ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The action or compensation succeeded, with its result.
    Done(Payload),
    /// It failed in a way that ends it: the last answer was a refusal.
    Refused {
        /// Business, persistent, or the class whose retries ran out.
        class: Class,
        /// For people.
        error: Text,
        /// Whether some attempt of it may have been applied all the same.
        doubt: bool,
    },
    /// An action: never called. A compensation: passed, there is nothing to undo.
    Skipped,
    /// It failed for now; the transaction was parked. The last of these is kept, not all.
    Paused {
        /// Of the last attempt.
        class: Class,
        /// For people.
        error: Text,
        /// Whether some attempt of it may have been applied.
        doubt: bool,
    },
}

/// One record of the step log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Of which intent.
    pub position: Position,
    /// The step's name; steps are looked up by name.
    pub step: StepName,
    /// How it ended.
    pub attempt: Attempt,
    /// Calls made under this intent so far, this one included.
    pub attempts: u32,
    /// When the first call of this claim was made, by the process's clock (for people only).
    pub started_at: Wall,
    /// When its outcome was known, by the process's clock (for people only).
    pub ended_at: Wall,
}

impl Direction {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Compensating];

    /// As in idempotency keys and tables: never change it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Compensating => "compensating",
        }
    }

    /// Reads [`Direction::as_str`]; `None` when it is no direction.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.as_str() == text)
    }
}

impl Class {
    /// All, from the mildest.
    pub const ALL: [Self; 4] = [
        Self::Transient,
        Self::Business,
        Self::Persistent,
        Self::Unknown,
    ];

    /// As in tables and metrics: never change it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Business => "business",
            Self::Persistent => "persistent",
            Self::Unknown => "unknown",
        }
    }

    /// Reads [`Class::as_str`]; `None` when it is no class.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }
}

impl Ending {
    /// The state of a row that ended so.
    #[must_use]
    pub fn state(&self) -> State {
        match self {
            Self::Completed(_) => State::Completed,
            Self::Compensated => State::Compensated,
            Self::Terminated => State::Terminated,
            Self::Disabled => State::Disabled,
        }
    }
}

impl Payload {
    /// Takes JSON text as it is.
    ///
    /// # Errors
    /// A sentence when it is longer than [`MAX_PAYLOAD_BYTES`]. That the text is JSON is the
    /// caller's word: it comes from a serialiser.
    pub fn new(json: impl Into<Arc<str>>) -> Result<Self, PayloadError> {
        let json = json.into();
        if json.len() > MAX_PAYLOAD_BYTES {
            return Err(PayloadError { bytes: json.len() });
        }
        Ok(Self(json))
    }

    /// JSON `null`.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A value was too large to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the value has {bytes} bytes of JSON, at most {MAX_PAYLOAD_BYTES} are kept: store it elsewhere and pass a reference"
)]
pub struct PayloadError {
    /// How long it was.
    pub bytes: usize,
}

impl Text {
    /// Cuts and cleans the text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let clean: String = text
            .chars()
            .filter(|c| *c != '\0')
            .take(MAX_TEXT_CHARS)
            .collect();
        Self(clean.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Payload {
    /// Only the length: payloads are the users' data and stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl State {
    /// All, as they follow each other.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Paused,
        Self::Completed,
        Self::Compensated,
        Self::Terminated,
        Self::Disabled,
        Self::Quarantined,
    ];

    /// As in tables, events and metrics: never change it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Compensated => "compensated",
            Self::Terminated => "terminated",
            Self::Disabled => "disabled",
            Self::Quarantined => "quarantined",
        }
    }

    /// Reads [`State::as_str`]; `None` when it is no state.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing happens any more without an operator.
    #[must_use]
    pub fn is_settled(self) -> bool {
        match self {
            Self::Running | Self::Paused => false,
            Self::Completed
            | Self::Compensated
            | Self::Terminated
            | Self::Disabled
            | Self::Quarantined => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_from_its_text() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        for way in Direction::ALL {
            assert_eq!(Direction::parse(way.as_str()), Some(way));
        }
        for class in Class::ALL {
            assert_eq!(Class::parse(class.as_str()), Some(class));
        }
        assert_eq!(State::parse("lost"), None);
    }
}
