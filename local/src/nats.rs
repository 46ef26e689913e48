//! One NATS server of ours, on exactly the configuration that `infra/nats` ships.
//!
//! Decides its flags, its users' passwords for this run and when it is ready. Knows no subject:
//! permissions are the shipped file's.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::error::{Error, file};
use crate::process::Process;
use crate::spec::Spec;
use crate::{folder, ports, ready, token};

/// Name and text of each file that a server here runs on.
const CONFIGURATION: [(&str, &str); 3] = [
    ("local.conf", include_str!("../../infra/nats/local.conf")),
    ("limits.conf", include_str!("../../infra/nats/limits.conf")),
    (
        "permissions.conf",
        include_str!("../../infra/nats/permissions.conf"),
    ),
];
/// A server's INFO line is under 2 KB with three nodes; a stranger's answer may be endless.
const INFO_LIMIT: u64 = 16 * 1024;

/// The five users of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Cuts windows.
    Master,
    /// Cuts its slice of each window.
    Slave,
    /// Runs transactions.
    Orchestrator,
    /// Listens.
    Observer,
    /// Listens and asks for status.
    Operator,
}

impl Role {
    /// All five.
    pub const ALL: [Self; 5] = [
        Self::Master,
        Self::Slave,
        Self::Orchestrator,
        Self::Observer,
        Self::Operator,
    ];

    /// The user's name.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Slave => "slave",
            Self::Orchestrator => "orchestrator",
            Self::Observer => "observer",
            Self::Operator => "operator",
        }
    }

    /// The prefix that the permissions leave to this user's inboxes.
    #[must_use]
    pub fn inbox_prefix(self) -> String {
        format!("_INBOX_{}", self.user())
    }

    /// The variable from which the server reads this user's password.
    #[must_use]
    pub fn password_variable(self) -> String {
        format!("RINGSAGA_{}_PASSWORD", self.user().to_ascii_uppercase())
    }

    /// The password in a run: nobody else's server accepts it.
    #[must_use]
    pub fn password(self, run: &str) -> String {
        format!("{}-{run}", self.user())
    }
}

/// A running NATS server. Dropping it ends the server.
#[derive(Debug)]
pub struct Nats {
    process: Process,
    spec: Spec,
    port: u16,
    run: String,
    peers: usize,
}

/// Where a node of a cluster listens for the others, and where those are.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    pub(crate) node: usize,
    pub(crate) own: u16,
    pub(crate) all: Vec<u16>,
}

impl Nats {
    /// Starts a single server with its files below `data`; `run` is the run's token.
    ///
    /// # Errors
    /// When it does not answer within 20 s; the error carries the end of its log.
    pub async fn start(program: &Path, data: &Path, run: &str) -> Result<Self, Error> {
        let mut tries = 1;
        loop {
            let port = ports::one()?;
            match Self::start_on(program, data, run, port, None).await {
                Err(error) if ready::port_was_taken(&error) && tries < ports::TRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// A token for [`Nats::start`] where no set gives one.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn new_run() -> Result<String, Error> {
        // Starts with a letter: NATS reads passwords from its environment as configuration values.
        Ok(format!("r{}", token::random::<12>()?))
    }

    pub(crate) async fn start_on(
        program: &Path,
        data: &Path,
        run: &str,
        port: u16,
        routes: Option<Routes>,
    ) -> Result<Self, Error> {
        let configuration = write_configuration(data)?;
        let peers = routes.as_ref().map_or(1, |routes| routes.all.len());
        let spec = spec(program, data, &configuration, run, port, routes);
        let process = Process::spawn(&spec).await?;
        let process = ready::wait(process, || async move {
            answers(port, run, Role::Observer).await.map(drop)
        });
        Ok(Self {
            process: process.await?,
            spec,
            port,
            run: run.to_owned(),
            peers,
        })
    }

    /// `nats://127.0.0.1:port`
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The address with a user's name and password in it, for tools that take nothing else.
    #[must_use]
    pub fn url_for(&self, role: Role) -> String {
        format!(
            "nats://{}:{}@127.0.0.1:{}",
            role.user(),
            role.password(&self.run),
            self.port
        )
    }

    /// The password of a user.
    #[must_use]
    pub fn password(&self, role: Role) -> String {
        role.password(&self.run)
    }

    /// The operating system's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Starts it again on the same ports, after a kill or a stop. Its cluster, if it has one, may
    /// take a moment longer: [`crate::NatsCluster::whole`].
    ///
    /// # Errors
    /// As for [`Nats::start`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        if self.process.exit().is_none() {
            self.stop().await?;
        }
        let process = Process::spawn(&self.spec).await?;
        let (port, run) = (self.port, self.run.as_str());
        let handshake = || async move { answers(port, run, Role::Observer).await.map(drop) };
        self.process = ready::wait(process, handshake).await?;
        Ok(())
    }

    /// Waits until this node knows all nodes of its cluster.
    pub(crate) async fn joined(&self) -> Result<(), Error> {
        ready::until(&self.process, "the cluster is not whole", || async {
            let info = answers(self.port, &self.run, Role::Observer).await?;
            let known = info["connect_urls"].as_array().map_or(1, Vec::len);
            if known >= self.peers {
                Ok(())
            } else {
                Err(format!("knows {known} nodes"))
            }
        })
        .await
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

fn write_configuration(data: &Path) -> Result<PathBuf, Error> {
    let folder = data.join("nats");
    folder::create(&folder)?;
    for (name, text) in CONFIGURATION {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(file("write", &path))?;
    }
    Ok(folder.join("local.conf"))
}

fn spec(
    program: &Path,
    data: &Path,
    configuration: &Path,
    run: &str,
    port: u16,
    routes: Option<Routes>,
) -> Spec {
    let name = routes
        .as_ref()
        .map_or_else(|| "nats".to_owned(), |at| format!("nats-{}", at.node));
    let mut spec = Spec::new(&name, program, data.join(format!("{name}.log")))
        .clean_env()
        .args([Path::new("-c"), configuration])
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .args(["-n", &format!("{run}-{name}")]);
    for role in Role::ALL {
        spec = spec.env(role.password_variable(), role.password(run));
    }
    if let Some(Routes { own, all, .. }) = routes {
        let urls: Vec<_> = all
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        spec = spec
            .args([
                "--cluster_name",
                "ringsaga",
                "--cluster",
                &format!("nats://127.0.0.1:{own}"),
            ])
            .args(["--routes", &urls.join(",")]);
    }
    spec
}

/// The server's INFO, once it is this run's server and has accepted this user.
pub(crate) async fn answers(port: u16, run: &str, role: Role) -> Result<serde_json::Value, String> {
    let mut stream = ready::connect(port).await?;
    let (read, mut write) = stream.split();
    let mut lines = BufReader::new(read.take(INFO_LIMIT)).lines();
    let mut line = async || {
        let line = lines.next_line().await.map_err(|error| error.to_string())?;
        line.ok_or_else(|| "the server hung up".to_owned())
    };
    let hello = line().await?;
    let json = hello.strip_prefix("INFO ").ok_or("not a NATS server")?;
    let info: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if !info["server_name"]
        .as_str()
        .is_some_and(|name| name.starts_with(run))
    {
        return Err("another run's NATS server".to_owned());
    }
    let login = serde_json::json!({
        "user": role.user(), "pass": role.password(run), "verbose": false, "pedantic": false,
        "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "name": "ring-local", "protocol": 1,
    });
    let asked = format!("CONNECT {login}\r\nPING\r\n");
    write
        .write_all(asked.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    // With protocol 1 the server may tell its peers again before it answers.
    let mut last = info;
    loop {
        let said = line().await?;
        if said == "PONG" {
            return Ok(last);
        } else if let Some(json) = said.strip_prefix("INFO ") {
            last = serde_json::from_str(json).map_err(|error| error.to_string())?;
        } else {
            return Err(said);
        }
    }
}
