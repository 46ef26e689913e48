//! Why a node can't do what it was asked. Each says what to do about it.

use ring_core::{id::TransactionId, saga::State};
use ring_shell::bus::OptionsError;

use crate::ConfigErrors;

/// Longest idempotency key, in bytes: it stands in an index.
pub const MAX_KEY_BYTES: usize = 512;

/// Why a node can't do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration has mistakes.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Two definitions under one name and version.
    #[error("saga {saga:?} version {version} was given to the node twice")]
    SagaTwice {
        /// Its name.
        saga: String,
        /// Its version.
        version: u32,
    },
    /// The node was not given this saga.
    #[error(
        "saga {saga:?} version {version} is not known to this node, which runs {known}: give it to Node::builder(…).saga(…)"
    )]
    UnknownSaga {
        /// Its name.
        saga: String,
        /// Its version.
        version: u32,
        /// What it runs.
        known: String,
    },
    /// The idempotency key can't be used.
    #[error("an idempotency key has 1 to {MAX_KEY_BYTES} bytes without NUL, this one {bytes}")]
    Key {
        /// How long it is.
        bytes: usize,
    },
    /// The name is no step's.
    #[error("a signal is sent to a step: {0}")]
    StepName(String),
    /// The idempotency key was used before, with another input.
    #[error(
        "key {key:?} was used before with another input, by transaction {by}: a new request needs a new key"
    )]
    KeyUsed {
        /// The key.
        key: String,
        /// The transaction that has it.
        by: TransactionId,
    },
    /// Somebody else is storing this key at the moment.
    #[error("key {key:?} is being stored by another session: ask again in a moment")]
    InProgress {
        /// The key.
        key: String,
    },
    /// A start inside a database transaction that is not the store's.
    #[error(
        "the caller's transaction is not on the saga store's database: start inside it only with a connection to the same one"
    )]
    OtherDatabase,
    /// Somebody else was faster than the caller's database transaction.
    #[error("the caller's database transaction must be rolled back and repeated as a whole")]
    RetryTransaction(#[source] crate::store::Error),
    /// The store did not answer in time; the transaction was perhaps stored.
    #[error("the store did not answer about key {key:?}: ask again with the same key and input")]
    Unanswered {
        /// The key.
        key: String,
    },
    /// The input is no JSON.
    #[error("the saga's input can't be written as JSON")]
    Input(#[source] serde_json::Error),
    /// The input is too large.
    #[error("the saga's input: {0}")]
    InputTooLarge(String),
    /// A value that the store refuses.
    #[error("the store refuses the value: {0}")]
    Invalid(String),
    /// The node takes nothing new: it drains, was superseded, or has no lease at the moment.
    #[error("the node takes nothing new: {0}")]
    NotTaking(String),
    /// A newer process holds the node's id.
    #[error(
        "a newer process has this node's id ({0}): two processes were started under one instance id"
    )]
    Superseded(String),
    /// Not at its end when the time was over.
    #[error("transaction {id} has not ended yet, it is {state:?}")]
    NotEnded {
        /// Which.
        id: TransactionId,
        /// Where it stands.
        state: State,
    },
    /// There is none, or it is of another service.
    #[error("there is no transaction {0} of this service")]
    NoTransaction(TransactionId),
    /// A completed transaction's result is of another type.
    #[error("the result is no {wanted}")]
    Result {
        /// The type asked for.
        wanted: &'static str,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The store did not answer, or refuses the question. After an unreachable database nobody
    /// knows whether it was done: ask again with the same key.
    #[error("the saga store")]
    Store(#[from] crate::store::Error),
    /// The bus' options can't be used.
    #[error("the ring's bus can't be used")]
    Bus(#[from] OptionsError),
    /// A background task of the engine panicked: the node is of no use any more.
    #[error("a background task of the engine panicked; the log has it")]
    Broken,
}

/// An error and its causes in one line, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
