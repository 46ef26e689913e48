//! A Postgres of ours: initialised on first use, loopback only, one port for its life.
//!
//! Decides its flags, its user and its ends: INT is Postgres' orderly signal. Knows no schema.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tokio_postgres::{Client, NoTls};

use crate::binaries::PostgresBinaries;
use crate::error::{Error, file, postgres};
use crate::process::Process;
use crate::spec::Spec;
use crate::{folder, ports, ready, token};

/// A dozen test processes with a pool each, and a demo with six services: 100 would not do.
const MAX_CONNECTIONS: &str = "max_connections=300";

/// Whether a commit reaches the disk before it is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// No fsync: commits survive a killed server but no power cut. For dev and tests.
    #[default]
    Fast,
    /// fsync as in production, for benches.
    Safe,
}

/// A running Postgres server. Dropping it ends the server.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    spec: Spec,
    port: u16,
    password: String,
    run: String,
}

impl Postgres {
    /// Starts a server with its folder and log below `data`; `run` becomes its `cluster_name`.
    ///
    /// # Errors
    /// When it does not answer within 20 s (the error carries the end of its log), or when its
    /// user can't enter the folder.
    pub async fn start(
        programs: &PostgresBinaries,
        data: &Path,
        run: &str,
        durability: Durability,
    ) -> Result<Self, Error> {
        folder::create(data)?;
        if let (Some(_), Some(closed)) = (folder::postgres_uid(), folder::closed_on_the_way(data)) {
            return Err(Error::Unreachable(closed));
        }
        let password = initialise(programs, data).await?;
        let mut tries = 1;
        loop {
            let port = ports::one()?;
            let spec = spec(programs, data, run, durability, port);
            match launch(&spec, port, &password, run).await {
                Ok(process) => {
                    let run = run.to_owned();
                    return Ok(Self {
                        process,
                        spec,
                        port,
                        password,
                        run,
                    });
                }
                Err(error) if ready::port_was_taken(&error) && tries < ports::TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The superuser's address of the database `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port, &self.password)
    }

    /// The operating system's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Starts it again on the same port and data, after a kill or a stop.
    ///
    /// # Errors
    /// As for [`Postgres::start`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        if self.process.exit().is_none() {
            self.stop().await?;
        }
        self.process = launch(&self.spec, self.port, &self.password, &self.run).await?;
        Ok(())
    }

    /// Ends it orderly (SIGINT, which closes connections; killed after 5 s).
    ///
    /// # Errors
    /// When it can't be signalled.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.process.stop_by(Signal::INT).await.map(drop)
    }

    /// Kills all its processes as a power cut would.
    ///
    /// # Errors
    /// When it can't be signalled.
    pub async fn kill9(&mut self) -> Result<(), Error> {
        self.process.kill9().await.map(drop)
    }

    /// Freezes all its processes: connections stay open, nobody answers.
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

impl Drop for Postgres {
    /// Ended orderly even here: a killed one leaves a shared memory segment behind.
    fn drop(&mut self) {
        self.process.end_now(Signal::INT);
    }
}

fn url(port: u16, password: &str) -> String {
    format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres")
}

/// Makes the data folder if there is none, and gives the superuser's password.
async fn initialise(programs: &PostgresBinaries, data: &Path) -> Result<String, Error> {
    let (folder, secret) = (data.join("postgres"), data.join("postgres.password"));
    if folder.join("PG_VERSION").exists() {
        return std::fs::read_to_string(&secret).map_err(file("read", &secret));
    }
    let password = token::random::<16>()?;
    folder::write_private(&secret, &password)?;
    folder::give_to_postgres(&secret)?;
    std::fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    folder::give_to_postgres(&folder)?;
    let args = [
        "-U",
        "postgres",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ];
    // The password is checked as plain text: on loopback that saves 4096 hash rounds a connection.
    let spec = Spec::new("initdb", &programs.initdb, data.join("initdb.log"))
        .clean_env()
        .uid(folder::postgres_uid())
        .args(args)
        .args(["--auth=password", "--pwfile"])
        .args([secret.as_path(), Path::new("-D"), &folder]);
    let mut initdb = Process::spawn(&spec).await?;
    let status = initdb.wait().await?;
    if status.success() {
        return Ok(password);
    }
    let (log, tail) = (initdb.log().to_path_buf(), folder::tail(initdb.log()));
    Err(Error::NotReady {
        name: "initdb".to_owned(),
        reason: status.to_string(),
        log,
        tail,
    })
}

fn spec(
    programs: &PostgresBinaries,
    data: &Path,
    run: &str,
    durability: Durability,
    port: u16,
) -> Spec {
    let folder: PathBuf = data.join("postgres");
    let mut settings = vec![
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        MAX_CONNECTIONS,
        "timezone=UTC",
        "log_timezone=UTC",
        // In the data folder, so that a killed server leaves nothing in /dev/shm.
        "dynamic_shared_memory_type=mmap",
    ];
    if durability == Durability::Fast {
        settings.extend(["fsync=off", "full_page_writes=off"]);
    }
    let mut spec = Spec::new("postgres", &programs.postgres, data.join("postgres.log"))
        .clean_env()
        .uid(folder::postgres_uid())
        // KILL would leave its backends and its shared memory; INT ends all at once.
        .death_signal("INT")
        .args([Path::new("-D"), &folder])
        .args([
            "-p",
            &port.to_string(),
            "-c",
            &format!("cluster_name={run}"),
        ]);
    for setting in settings {
        spec = spec.args(["-c", setting]);
    }
    spec
}

async fn launch(spec: &Spec, port: u16, password: &str, run: &str) -> Result<Process, Error> {
    let process = Process::spawn(spec).await?;
    let url = url(port, password);
    let url = url.as_str();
    ready::wait(process, || async move { answers(url, run).await }).await
}

/// Whether the server at this address is this run's.
pub(crate) async fn answers(url: &str, run: &str) -> Result<(), String> {
    let ask = async {
        let client = connect(url).await?;
        let row = client.query_one("show cluster_name", &[]).await;
        Ok::<String, Error>(row.map_err(postgres("ask for the run"))?.get(0))
    };
    match ask.await {
        Ok(name) if name == run => Ok(()),
        Ok(_) => Err("another run's Postgres".to_owned()),
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            Err(source.unwrap_or_else(|| error.to_string()))
        }
    }
}

/// A connection whose other half runs until the client is dropped.
pub(crate) async fn connect(url: &str) -> Result<Client, Error> {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.map_err(postgres("connect"))?;
    drop(tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the local Postgres ended");
        }
    }));
    Ok(client)
}
