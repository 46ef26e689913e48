//! What can go wrong while servers are found, started, reached or stopped.
//!
//! Each error names the operation, and carries what a person needs to go on: the command that
//! installs a missing server, the end of the log of one that did not start.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::server::Server;

/// What a caller's own hook failed with (a migration, a start of further programs).
pub type HookError = Box<dyn std::error::Error + Send + Sync>;

/// A failed operation on local servers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Server programs that are neither installed nor fetchable; every missing one is listed.
    #[error("these servers are missing:{}", List(.0))]
    Missing(Vec<Missing>),
    /// A file or folder operation.
    #[error("{operation} {}", path.display())]
    File {
        /// What was tried, as a verb: `write`, `create`.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A child process could not be made or signalled.
    #[error("{operation} {name}")]
    Process {
        /// What was tried, as a verb: `start`, `signal`.
        operation: &'static str,
        /// The child's name, which is also its log's name.
        name: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A child started and did not become ready.
    #[error("{name} did not start: {reason}\n--- end of {} ---\n{tail}", log.display())]
    NotReady {
        /// The child's name.
        name: String,
        /// What was waited for, or how it ended.
        reason: String,
        /// Its log file.
        log: PathBuf,
        /// The last lines of that file.
        tail: String,
    },
    /// Postgres runs as another user when we are root, and that user can't enter the folder.
    #[error(
        "{} can't be entered by uid 65534, as which Postgres runs under root: choose a data folder below /tmp or /var/tmp",
        .0.display()
    )]
    Unreachable(PathBuf),
    /// A statement on a local Postgres.
    #[error("{operation} on the local Postgres")]
    Postgres {
        /// What was tried.
        operation: &'static str,
        /// What the driver or the server said.
        source: tokio_postgres::Error,
    },
    /// The caller's hook failed.
    #[error("{operation}")]
    Hook {
        /// Which hook.
        operation: &'static str,
        /// Its own error.
        source: HookError,
    },
    /// A running set described by a file is not the one that was asked for.
    #[error("the servers named in the environment are not used: {0}")]
    Stale(String),
}

/// A server program that could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub server: Server,
    /// Why the last way of getting it failed.
    pub reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, reason } = self;
        write!(
            f,
            "{server} ({reason}); install it with: {}",
            server.install()
        )
    }
}

struct List<'a>(&'a [Missing]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for missing in self.0 {
            write!(f, "\n  {missing}")?;
        }
        Ok(())
    }
}

/// Names operation and path of a failed file operation.
pub(crate) fn file<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::File {
        operation,
        path: path.to_path_buf(),
        source,
    }
}

/// Names operation and child of a failed process operation.
pub(crate) fn process<'a>(
    operation: &'static str,
    name: &'a str,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Process {
        operation,
        name: name.to_owned(),
        source,
    }
}

/// Names the operation of a failed statement.
pub(crate) fn postgres(operation: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Error {
    move |source| Error::Postgres { operation, source }
}
