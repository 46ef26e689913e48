//! Classifies what went wrong, once: can it be asked again, does somebody else stand in the way,
//! or will it never work. Refuses to know which statement is worth repeating: callers decide.

use std::{error::Error as StdError, sync::Arc};

use tokio_postgres::error::SqlState;

/// The cause behind an [`Error`], shared by everybody whose work was in the same batch.
pub type Cause = Arc<dyn StdError + Send + Sync>;

/// Why the store did not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The database is away, read-only, or did not answer in time. What was asked may have been
    /// done all the same.
    #[error("could not {operation}: the database can't be reached or did not answer in time")]
    Unreachable {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Cause,
    },
    /// Somebody else stood in the way until the limit; nothing was done. Ask again.
    #[error("could not {operation}: another session is in the way")]
    Conflict {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Cause,
    },
    /// It fails again however often it is asked: wrong settings, a missing migration, data that
    /// can't be stored.
    #[error("could not {operation}")]
    Permanent {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Cause,
    },
}

/// A reason of our own, where no library gave one.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Reason(pub(super) &'static str);

/// What to do with the connection on which an error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is fine.
    Keep,
    /// It is dead, or leads to a server that takes no writes: connect anew.
    Discard,
}

impl Error {
    /// What was tried.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Unreachable { operation, .. }
            | Self::Conflict { operation, .. }
            | Self::Permanent { operation, .. } => operation,
        }
    }

    /// Whether the database was away or slow, so that asking again later makes sense.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Whether another session stood in the way.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    pub(super) fn unreachable(operation: &'static str, reason: &'static str) -> Self {
        Self::Unreachable {
            operation,
            source: Arc::new(Reason(reason)),
        }
    }

    pub(super) fn permanent(
        operation: &'static str,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self::Permanent {
            operation,
            source: Arc::new(source),
        }
    }

    pub(super) fn conflict(operation: &'static str, reason: &'static str) -> Self {
        Self::Conflict {
            operation,
            source: Arc::new(Reason(reason)),
        }
    }

    /// Classifies an error of the driver and says what becomes of its connection.
    pub(super) fn classify(
        operation: &'static str,
        error: tokio_postgres::Error,
    ) -> (Self, Verdict) {
        let code = error.code().cloned();
        let broken = Self::breaks(&error);
        let source: Cause = Arc::new(error);
        let unreachable = |source| Self::Unreachable { operation, source };
        // Without a word from the server: the socket broke, or the driver could not encode or
        // decode, after which nobody knows where the stream stands.
        let Some(code) = code.filter(|_| !broken) else {
            return (unreachable(source), Verdict::Discard);
        };
        if code == SqlState::QUERY_CANCELED || code.code().starts_with("53") {
            return (unreachable(source), Verdict::Keep);
        }
        if is_conflict(&code) {
            return (Self::Conflict { operation, source }, Verdict::Keep);
        }
        (Self::Permanent { operation, source }, Verdict::Keep)
    }

    /// Whether the connection or the server behind it is of no more use.
    pub(super) fn breaks(error: &tokio_postgres::Error) -> bool {
        error.is_closed() || error.code().is_none_or(is_gone)
    }

    /// Whether the server refused the data itself: data exceptions, checks and limits.
    pub(crate) fn refused_data(&self) -> bool {
        let Self::Permanent { source, .. } = self else {
            return false;
        };
        let code = source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code);
        code.is_some_and(|c| ["22", "23", "54"].iter().any(|p| c.code().starts_with(p)))
    }

    /// Whether a unique key stands in the way.
    pub(super) fn is_duplicate(&self) -> bool {
        let Self::Conflict { source, .. } = self else {
            return false;
        };
        let code = source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code);
        code == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// Whether tables or the schema are not there.
    pub(super) fn lacks_schema(&self) -> bool {
        let Self::Permanent { source, .. } = self else {
            return false;
        };
        let code = source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code);
        code.is_some_and(|c| [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(c))
    }

    /// Whether a lock limit or a unique key stopped it, so that another session has the same key.
    pub(super) fn lock_limit(&self) -> bool {
        let Self::Conflict { source, .. } = self else {
            return false;
        };
        let code = source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code);
        code == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }
}

/// The server goes down, is a standby, or lost the connection.
fn is_gone(code: &SqlState) -> bool {
    let text = code.code();
    text.starts_with("08")
        || text.starts_with("57P")
        || text.starts_with("58")
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

/// Another session: serialization, deadlock, lock limit, a key stored meanwhile.
fn is_conflict(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::UNIQUE_VIOLATION,
    ]
    .contains(code)
}
