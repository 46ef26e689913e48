//! What a child is started with: program, environment, user, log, and the signal of our death.
//!
//! Decides how these become one command line under `setpriv`. Starts nothing.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

/// What to start.
#[derive(Debug, Clone)]
pub struct Spec {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    inherit_env: bool,
    log: PathBuf,
    death_signal: &'static str,
    uid: Option<u32>,
    foreground: bool,
}

impl Spec {
    /// A program with a name for people and a log file; it inherits this process' environment.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        program: impl Into<PathBuf>,
        log: impl Into<PathBuf>,
    ) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit_env: true,
            log: log.into(),
            death_signal: "KILL",
            uid: None,
            foreground: false,
        }
    }

    /// Keeps our terminal: our stdin, stdout, stderr and process group, so that Ctrl-C reaches it.
    /// The log stays unused.
    #[must_use]
    pub fn foreground(mut self) -> Self {
        self.foreground = true;
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Adds a variable to the child's environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts from an empty environment in the root folder instead of from ours (a server must not read `PGPORT`).
    #[must_use]
    pub fn clean_env(mut self) -> Self {
        self.inherit_env = false;
        self
    }

    /// The signal, without `SIG`, that the kernel sends the child when we end; default `KILL`.
    #[must_use]
    pub fn death_signal(mut self, signal: &'static str) -> Self {
        self.death_signal = signal;
        self
    }

    /// Runs as this user and group, without other groups (only root may ask for it).
    #[must_use]
    pub fn uid(mut self, uid: Option<u32>) -> Self {
        self.uid = uid;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    pub(crate) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig").arg(self.death_signal);
        if let Some(uid) = self.uid {
            command.args([format!("--reuid={uid}"), format!("--regid={uid}")]);
            command.arg("--clear-groups");
        }
        command.arg("--").arg(&self.program).args(&self.args);
        if !self.inherit_env {
            command
                .env_clear()
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("LC_ALL", "C");
            // Ours may be closed to the user that it runs as.
            command.current_dir("/");
        }
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        if !self.foreground {
            let log = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.log)?;
            command
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .process_group(0);
        }
        command.kill_on_drop(true);
        Ok(command)
    }
}
