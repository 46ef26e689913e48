//! Exit codes, one list (`operations.md` 2.4): 0 ok, 1 failed, 2 usage, 3 not found, 4 not
//! reachable, 5 refused, 64 configuration, 78 superseded.

use std::{fmt, process::ExitCode};

/// How a command ended when not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was checked does not hold, or the work could not be done.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// What was asked for does not exist.
    NotFound,
    /// A server can't be reached, or nobody answers.
    NotReachable,
    /// The other side said no.
    Refused,
    /// The configuration can't be used.
    Config,
    /// A newer process has this id.
    Superseded,
    /// What a command that we ran exited with.
    Passed(u8),
}

/// An error that knows its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    exit: Exit,
    message: String,
}

impl Exit {
    fn number(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::NotReachable => 4,
            Self::Refused => 5,
            Self::Config => 64,
            Self::Superseded => 78,
            Self::Passed(code) => code,
        }
    }

    /// An error with this code and a sentence that says what to do.
    pub(crate) fn because(self, message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Ended {
            exit: self,
            message: message.into(),
        })
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Ended {}

/// Prints the error, if there is one, and gives the process's exit code.
pub(crate) fn code(end: anyhow::Result<()>) -> ExitCode {
    let Err(error) = end else {
        return ExitCode::SUCCESS;
    };
    if broken_pipe(&error) {
        return ExitCode::SUCCESS; // `| head` has read enough
    }
    crate::output::chatter(&format!("ringsaga: {error:#}"));
    let exit = error
        .downcast_ref::<Ended>()
        .map_or(Exit::Failed, |ended| ended.exit);
    ExitCode::from(exit.number())
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
