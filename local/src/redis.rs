//! A Redis (or Valkey) of our own: no persistence, a password of this run, one port for its life.
//!
//! Decides its flags and when it is ready. Knows no key.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::error::Error;
use crate::process::Process;
use crate::spec::Spec;
use crate::{folder, ports, ready, token};

/// A running Redis server. Dropping it ends the server.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    spec: Spec,
    port: u16,
    password: String,
}

impl Redis {
    /// Starts a server with its folder and log below `data`.
    ///
    /// # Errors
    /// When it does not answer within 20 s; the error carries the end of its log.
    pub async fn start(program: &Path, data: &Path) -> Result<Self, Error> {
        let folder = data.join("redis");
        folder::create(&folder)?;
        let password = token::random::<16>()?;
        let mut tries = 1;
        loop {
            let port = ports::one()?;
            let spec = spec(program, &folder, data.join("redis.log"), port, &password);
            match launch(&spec, port, &password).await {
                Ok(process) => {
                    return Ok(Self {
                        process,
                        spec,
                        port,
                        password,
                    });
                }
                Err(error) if ready::port_was_taken(&error) && tries < ports::TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// `redis://:password@127.0.0.1:port/`
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://:{}@127.0.0.1:{}/", self.password, self.port)
    }

    /// The operating system's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Starts it again on the same port, after a kill or a stop; what it held is gone.
    ///
    /// # Errors
    /// As for [`Redis::start`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        if self.process.exit().is_none() {
            self.stop().await?;
        }
        self.process = launch(&self.spec, self.port, &self.password).await?;
        Ok(())
    }

    /// Ends it orderly (SIGTERM, killed after 5 s).
    ///
    /// # Errors
    /// When it can't be signalled.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.process.stop().await.map(drop)
    }

    /// Kills it as a power cut would.
    ///
    /// # Errors
    /// When it can't be signalled.
    pub async fn kill9(&mut self) -> Result<(), Error> {
        self.process.kill9().await.map(drop)
    }

    /// Freezes it: connections stay open, nobody answers.
    ///
    /// # Errors
    /// When it can't be signalled.
    pub async fn pause(&self) -> Result<(), Error> {
        self.process.pause().await
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// When it can't be signalled.
    pub async fn resume(&self) -> Result<(), Error> {
        self.process.resume().await
    }
}

fn spec(program: &Path, folder: &Path, log: PathBuf, port: u16, password: &str) -> Spec {
    Spec::new("redis", program, log)
        .clean_env()
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"])
        .args([folder])
        .args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "noeviction",
        ])
        .args(["--requirepass", password])
}

async fn launch(spec: &Spec, port: u16, password: &str) -> Result<Process, Error> {
    let process = Process::spawn(spec).await?;
    ready::wait(process, || answers(port, password)).await
}

/// Whether a server on this port accepts the password; one that wants none refuses it.
pub(crate) async fn answers(port: u16, password: &str) -> Result<(), String> {
    let mut stream = ready::connect(port).await?;
    let asked = format!("AUTH {password}\r\nPING\r\n");
    stream
        .write_all(asked.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 128];
    while answer.len() < 1024 {
        let read = stream
            .read(&mut chunk)
            .await
            .map_err(|error| error.to_string())?;
        answer.extend_from_slice(&chunk[..read]);
        if answer.starts_with(b"+OK\r\n+PONG\r\n") {
            return Ok(());
        }
        if read == 0 || answer.starts_with(b"-") {
            break;
        }
    }
    Err(String::from_utf8_lossy(&answer).trim().to_owned())
}
