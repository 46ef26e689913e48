//! A set around a command or around a person: start, run, stop everything in order.
//!
//! Decides what a signal does and in which order things end: the command, then the companions in
//! reverse order, then the servers. What the companions are (master, slaves) is the caller's hook.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, HookError, process};
use crate::process::{Process, Program, Reach};
use crate::set::{Set, SetOptions};
use crate::settings::Settings;
use crate::spec::Spec;

/// What the caller's hook started beside the servers.
#[derive(Debug, Default)]
pub struct Companions {
    /// Programs, stopped last to first.
    pub programs: Vec<Program>,
    /// More variables for the command.
    pub environment: Vec<(String, String)>,
}

/// How it came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The command ended.
    Ended(ExitStatus),
    /// A signal ended it while no command ran.
    Stopped,
}

impl Outcome {
    /// The code to exit with: the command's, 128 + n when signal n ended it, 0 when stopped.
    #[must_use]
    pub fn code(self) -> u8 {
        let Self::Ended(status) = self else { return 0 };
        let code = status
            .code()
            .or_else(|| status.signal().map(|number| 128 + number));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// Starts a set and its companions, runs the command (or waits for Ctrl-C or SIGTERM), stops all.
///
/// # Errors
/// When servers, companions or command could not be started or stopped.
pub async fn dev<H>(
    settings: &Settings,
    options: &SetOptions,
    command: Option<&[OsString]>,
    hook: H,
) -> Result<Outcome, Error>
where
    H: AsyncFnOnce(&Set) -> Result<Companions, HookError>,
{
    let mut stop = Stop::listen()?;
    let set = tokio::select! {
        set = Set::start(settings, options) => set?,
        _signal = stop.next() => return Ok(Outcome::Stopped),
    };
    let started = tokio::select! {
        started = hook(&set) => started,
        _signal = stop.next() => Ok(Companions::default()),
    };
    let outcome = match started {
        Ok(mut companions) => {
            let outcome = run(&set, &companions, command, &mut stop).await;
            while let Some(mut program) = companions.programs.pop() {
                program.stop().await?;
            }
            outcome
        }
        Err(source) => Err(Error::Hook {
            operation: "start beside the servers",
            source,
        }),
    };
    set.stop().await?;
    outcome
}

async fn run(
    set: &Set,
    companions: &Companions,
    command: Option<&[OsString]>,
    stop: &mut Stop,
) -> Result<Outcome, Error> {
    let Some((program, args)) = command.and_then(<[OsString]>::split_first) else {
        stop.next().await;
        return Ok(Outcome::Stopped);
    };
    let name = Path::new(program).display().to_string();
    // TERM when we die: a test runner then ends its own children.
    let mut spec = Spec::new(name, program, "")
        .args(args)
        .foreground()
        .death_signal("TERM");
    for (key, value) in set.environment().iter().chain(&companions.environment) {
        spec = spec.env(key, value);
    }
    let mut child = Process::spawn(&spec).await?;
    let mut asked = false;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(Outcome::Ended(status?)),
            signal = stop.next() => {
                if asked {
                    return Ok(Outcome::Ended(child.kill9().await?));
                }
                asked = true;
                // A terminal has sent Ctrl-C to the command already, and a runner takes a second
                // one as an order to drop everything.
                if signal != Signal::INT || !std::io::stdin().is_terminal() {
                    child.signal(signal, Reach::Leader).await?;
                }
            }
        }
    }
}

/// The two signals that ask us to end.
struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(process("listen for signals to", "ourselves"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
        }
    }
}
