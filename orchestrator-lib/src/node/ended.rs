//! The answers of a node: what was started, how it ended, what a drain left.

use ring_core::{id::TransactionId, saga::Payload};
use serde::de::DeserializeOwned;

use crate::Error;

/// A transaction that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The transaction.
    pub id: TransactionId,
    /// Whether this call started it; else the key was used before, with the same input.
    pub is_new: bool,
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every action is done.
    Completed(Output),
    /// Everything that may have happened is undone.
    Compensated {
        /// Why it was not completed.
        reason: String,
    },
    /// A compensation failed for good: a person is needed.
    Terminated {
        /// Why.
        reason: String,
    },
    /// It outlived its lifetime; a person may restore it.
    Disabled {
        /// Where it stood.
        reason: String,
    },
    /// It killed its processes too often; a person is needed.
    Quarantined {
        /// What is known.
        reason: String,
    },
}

/// A completed transaction's result: what its last step returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output(pub(crate) Payload);

/// A step that somebody waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached<R> {
    /// It is done, with its result.
    Done(R),
    /// It won't be: the transaction ended, or goes back, without it.
    Passed,
}

/// What became of the transactions that ran when a node was drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Handed back to other nodes, due at once.
    pub handed_back: usize,
    /// Calls that were dropped at the end of the grace period; they are in doubt now.
    pub dropped_calls: usize,
    /// Left to the lease's end, because the store did not answer.
    pub abandoned: usize,
}

impl Output {
    /// Its JSON text.
    #[must_use]
    pub fn json(&self) -> &str {
        self.0.as_str()
    }

    /// As a type.
    ///
    /// # Errors
    /// [`Error::Result`] when it is of another one.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(self.json()).map_err(|source| Error::Result {
            wanted: std::any::type_name::<T>(),
            source,
        })
    }
}

impl Ended {
    /// Whether every action is done.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed(_))
    }
}
