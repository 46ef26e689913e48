//! One child process: how it is started, signalled, watched, and that it never outlives us.
//!
//! Three guarantees hold together: dropping the handle kills the child's process group, and so
//! does the child's own end; the kernel sends the child a signal when this process ends in
//! whatever way (`setpriv --pdeathsig`); and only the task that reaps the child signals it, so a
//! signal never reaches a stranger that inherited the pid. It refuses to know which program runs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Error, file, process};
use crate::spec::Spec;
use crate::{background, folder};

/// Orders wait for one `select!` turn of the reaping task; more than a few at once is a bug.
const ORDERS: usize = 16;
/// An orderly end takes 20 to 130 ms here; a program that needs more than this hangs.
const GRACE: Duration = Duration::from_secs(5);
/// After SIGKILL only the kernel is left to wait for.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// A running (or ended) child process.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    pid: u32,
    orders: mpsc::Sender<Order>,
    exit: watch::Receiver<Option<ExitStatus>>,
}

/// A program of ours under the same guarantees as the servers: SIGTERM asks, SIGKILL ends.
pub type Program = Process;

#[derive(Debug)]
struct Order {
    signal: Signal,
    reach: Reach,
    done: oneshot::Sender<io::Result<()>>,
}

/// How far a signal goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The child alone, which tells its own children.
    Leader,
    /// What is in the child's own process group, also after its end.
    Group,
    /// The child and all that descend from it, whatever group they made for themselves.
    Tree,
}

impl Process {
    /// Starts the child.
    ///
    /// # Errors
    /// When the log can't be opened or the program can't be started.
    pub async fn spawn(spec: &Spec) -> Result<Self, Error> {
        let failed = || process("start", spec.name());
        let mut command = spec.command().map_err(file("write the log", spec.log()))?;
        let (orders, inbox) = mpsc::channel(ORDERS);
        let (ended, exit) = watch::channel(None);
        let started = background::spawn(async move {
            let child = command.spawn().map_err(name_setpriv)?;
            let pid = child.id().ok_or(io::ErrorKind::NotFound)?;
            // The reaping task lives as long as the child; its handle is not needed.
            drop(background::spawn(reap(child, pid, inbox, ended))?);
            Ok(pid)
        });
        let pid = started.map_err(failed())?.await.map_err(io::Error::other);
        let pid = pid.and_then(|pid| pid).map_err(failed())?;
        tracing::debug!(name = spec.name(), pid, "started");
        Ok(Self {
            name: spec.name().to_owned(),
            log: spec.log().to_path_buf(),
            pid,
            orders,
            exit,
        })
    }

    /// The name given at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operating system's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file that takes stdout and stderr.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn exit(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Waits for the end, however long it takes.
    ///
    /// # Errors
    /// When the reaping task is gone, which means that this process is ending.
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        let ended = self
            .exit
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|status| *status);
        ended.ok_or_else(|| process("wait for", &self.name)(io::ErrorKind::BrokenPipe.into()))
    }

    /// Asks it to end (SIGTERM), without waiting. Asking an ended child changes nothing.
    ///
    /// # Errors
    /// When the signal could not be sent.
    pub async fn terminate(&self) -> Result<(), Error> {
        self.signal(Signal::TERM, Reach::Leader).await
    }

    /// Asks it to end, and kills it if it is still there after 5 s.
    ///
    /// # Errors
    /// When the signals could not be sent.
    pub async fn stop(&mut self) -> Result<ExitStatus, Error> {
        self.stop_by(Signal::TERM).await
    }

    pub(crate) async fn stop_by(&mut self, signal: Signal) -> Result<ExitStatus, Error> {
        self.signal(signal, Reach::Leader).await?;
        // A paused child would keep the signal pending for ever.
        self.signal(Signal::CONT, Reach::Tree).await?;
        match tokio::time::timeout(GRACE, self.wait()).await {
            Ok(ended) => ended,
            Err(_elapsed) => {
                tracing::warn!(name = self.name, "did not end when asked, killing it");
                self.kill9().await
            }
        }
    }

    /// Kills it and all that descends from it, as a power cut would, and waits until all are gone.
    ///
    /// # Errors
    /// When the signal could not be sent.
    pub async fn kill9(&mut self) -> Result<ExitStatus, Error> {
        let descendants = folder::descendants(self.pid);
        self.signal(Signal::KILL, Reach::Tree).await?;
        let ended = self.wait().await?;
        let gone = async {
            while descendants.iter().any(|pid| folder::is_alive(*pid)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(AFTER_KILL, gone).await.is_err() {
            tracing::warn!(name = self.name, "descendants outlived SIGKILL");
        }
        Ok(ended)
    }

    /// Freezes it (SIGSTOP): its sockets stay open and nobody answers, as behind a partition.
    ///
    /// # Errors
    /// When the signal could not be sent.
    pub async fn pause(&self) -> Result<(), Error> {
        self.signal(Signal::STOP, Reach::Tree).await
    }

    /// Lets it go on after [`Process::pause`].
    ///
    /// # Errors
    /// When the signal could not be sent.
    pub async fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::CONT, Reach::Tree).await
    }

    pub(crate) async fn signal(&self, signal: Signal, reach: Reach) -> Result<(), Error> {
        let (done, sent) = oneshot::channel();
        if self
            .orders
            .send(Order {
                signal,
                reach,
                done,
            })
            .await
            .is_err()
        {
            return Ok(()); // it has ended
        }
        sent.await
            .unwrap_or(Ok(()))
            .map_err(process("signal", &self.name))
    }

    /// Asks with a signal and blocks until the child is gone, for use in `drop` only.
    pub(crate) fn end_now(&self, signal: Signal) {
        let (done, _sent) = oneshot::channel();
        if self
            .orders
            .try_send(Order {
                signal,
                reach: Reach::Leader,
                done,
            })
            .is_err()
        {
            return;
        }
        let step = Duration::from_millis(2);
        let mut left = AFTER_KILL;
        while self.exit().is_none() && !left.is_zero() && self.exit.has_changed().is_ok() {
            std::thread::sleep(step);
            left = left.saturating_sub(step);
        }
    }
}

/// What is not found is `setpriv`: it looks for the program itself, and says so in the log.
fn name_setpriv(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    io::Error::new(
        error.kind(),
        "setpriv is not on the path: sudo apt-get install util-linux",
    )
}

/// Owns the child until it is reaped. A dropped handle means: kill.
async fn reap(
    mut child: Child,
    pid: u32,
    mut orders: mpsc::Receiver<Order>,
    ended: watch::Sender<Option<ExitStatus>>,
) {
    let mut held = true;
    loop {
        tokio::select! {
            biased;
            status = child.wait() => {
                // What it left in its group goes, too. Mostly that is nobody, which is an error.
                send(pid, Signal::KILL, Reach::Group).unwrap_or_default();
                if let Ok(status) = status {
                    ended.send_replace(Some(status));
                }
                return;
            }
            order = orders.recv(), if held => match order {
                Some(Order { signal, reach, done }) => {
                    // Nobody waits for the answer of an order given in `drop`.
                    done.send(send(pid, signal, reach)).unwrap_or_default();
                }
                None => {
                    held = false;
                    if let Err(error) = send(pid, Signal::KILL, Reach::Tree) {
                        tracing::warn!(pid, %error, "could not kill a child on drop");
                    }
                }
            },
        }
    }
}

fn send(pid: u32, signal: Signal, reach: Reach) -> io::Result<()> {
    let Some(leader) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match reach {
        Reach::Leader => Ok(kill_process(leader, signal)?),
        Reach::Group => Ok(kill_process_group(leader, signal)?),
        Reach::Tree => {
            let descendants = folder::descendants(pid);
            match kill_process_group(leader, signal) {
                Err(Errno::SRCH) => kill_process(leader, signal)?, // it has no group of its own
                sent => sent?,
            }
            for descendant in descendants {
                if let Some(pid) = i32::try_from(descendant).ok().and_then(Pid::from_raw) {
                    // Those in the leader's group have the signal already, some may be gone.
                    kill_process(pid, signal).unwrap_or_default();
                }
            }
            Ok(())
        }
    }
}
