//! Where a binary's log lines go: standard error, plain or as JSON.

use std::io::{self, IsTerminal as _};

use thiserror::Error;
use tracing_subscriber::{EnvFilter, fmt, prelude::*, util::TryInitError};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Plain,
    /// One JSON object a line.
    Json,
}

/// Why the log can't be set up.
#[derive(Debug, Error)]
pub enum LogError {
    /// The filter is no filter.
    #[error(
        "log filter {given:?} can't be read: write levels like \"info\" or \"info,ring_master=debug\""
    )]
    Filter {
        /// As given.
        given: String,
        /// What is wrong with it.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// There is one already.
    #[error("a log subscriber is installed already")]
    Installed(#[source] TryInitError),
}

/// Installs the process's subscriber. For binaries.
///
/// # Errors
/// [`LogError`] for a filter that can't be read, or when one is installed.
pub fn install_log(format: Format, filter: &str) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter).map_err(|source| LogError::Filter {
        given: filter.to_owned(),
        source,
    })?;
    let lines = fmt::layer().with_writer(io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        Format::Plain => registry
            .with(lines.with_ansi(io::stderr().is_terminal()))
            .try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    }
    .map_err(LogError::Installed)
}
