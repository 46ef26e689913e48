//! The three servers of one run: started at once, described in one file, ended together.
//!
//! Decides whether a set that runs already may be used: only when the environment names it by its
//! own token and all three servers prove to be that run's. So a server that happens to run is
//! never touched. Knows no schema and no subject.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::binaries::Binaries;
use crate::cluster::NatsCluster;
use crate::error::{Error, file};
use crate::nats::{Nats, Role};
use crate::postgres::{Durability, Postgres};
use crate::redis::Redis;
use crate::settings::Settings;
use crate::{folder, nats, postgres, redis, token};

/// The set that this process' tests share; gone with the last of them.
static SHARED: Mutex<Weak<Set>> = Mutex::const_new(Weak::new());

/// How to start a set.
#[derive(Debug, Clone)]
pub struct SetOptions {
    /// Folder for data and logs, kept at the end; none: a temporary one.
    pub data: Option<PathBuf>,
    /// Whether Postgres syncs.
    pub durability: Durability,
    /// Nodes of the NATS cluster.
    pub nats_nodes: usize,
}

impl Default for SetOptions {
    fn default() -> Self {
        Self {
            data: None,
            durability: Durability::Fast,
            nats_nodes: 1,
        }
    }
}

/// Where a set's servers are and whose they are: the contents of `dev.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Version of this format: 1.
    pub v: u32,
    /// The run's token.
    pub run: String,
    /// The process that started the servers.
    pub pid: u32,
    /// Folder with data and logs.
    pub data: PathBuf,
    /// One `nats://` address for each node, separated by commas.
    pub nats_url: String,
    /// `redis://` with its password.
    pub redis_url: String,
    /// `postgres://` of the superuser, database `postgres`.
    pub postgres_url: String,
    /// Process ids of the NATS nodes.
    pub nats_pids: Vec<u32>,
    /// Process id of Redis.
    pub redis_pid: u32,
    /// Process id of Postgres.
    pub postgres_pid: u32,
}

/// Names that no other test uses: subjects and keys below them are the test's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The region.
    pub region: String,
    /// The cluster.
    pub cluster: String,
}

/// Three running servers. Dropping it ends those that it started.
#[derive(Debug)]
pub struct Set {
    addresses: Addresses,
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    /// First: nobody may find servers that are about to go.
    described: Described,
    nats: NatsCluster,
    redis: Redis,
    postgres: Postgres,
    /// Last, so that it goes when the servers are gone.
    temporary: Option<TempDir>,
}

/// `dev.json`, removed on drop.
#[derive(Debug)]
struct Described(PathBuf);

impl Set {
    /// Finds the programs, starts all three servers at once and writes `dev.json`.
    ///
    /// # Errors
    /// [`Error::Missing`], or the first server that did not become ready.
    pub async fn start(settings: &Settings, options: &SetOptions) -> Result<Self, Error> {
        let binaries = Binaries::find(settings).await?;
        let (data, temporary) = data_folder(options.data.as_deref())?;
        let run = Nats::new_run()?;
        let (nats, redis, postgres) = tokio::try_join!(
            NatsCluster::start(&binaries.nats, &data, &run, options.nats_nodes),
            Redis::start(&binaries.redis, &data),
            Postgres::start(&binaries.postgres, &data, &run, options.durability),
        )?;
        let addresses = Addresses {
            v: 1,
            run,
            pid: std::process::id(),
            nats_url: nats.url(),
            redis_url: redis.url(),
            postgres_url: postgres.url(),
            nats_pids: nats.nodes().iter().map(Nats::pid).collect(),
            redis_pid: redis.pid(),
            postgres_pid: postgres.pid(),
            data: data.clone(),
        };
        let file = data.join("dev.json");
        folder::write_private(&file, &serde_json::json!(addresses).to_string())?;
        let owned = Owned {
            described: Described(file),
            nats,
            redis,
            postgres,
            temporary,
        };
        Ok(Self {
            addresses,
            owned: Some(owned),
        })
    }

    /// The set of the run around this process, else one that all tests of this process share.
    ///
    /// Whoever holds the last reference ends a shared set by dropping it.
    ///
    /// # Errors
    /// As for [`Set::start`]. A stale description in the environment is not an error.
    pub async fn from_env_or_start(settings: &Settings) -> Result<Arc<Self>, Error> {
        let mut shared = SHARED.lock().await;
        if let Some(running) = shared.upgrade() {
            return Ok(running);
        }
        let set = match Self::from_env(settings).await {
            Ok(Some(set)) => set,
            Ok(None) => Self::start(settings, &SetOptions::default()).await?,
            Err(error) => {
                tracing::warn!(%error, "starting servers of our own");
                Self::start(settings, &SetOptions::default()).await?
            }
        };
        let set = Arc::new(set);
        *shared = Arc::downgrade(&set);
        Ok(set)
    }

    /// The set that the environment names, if it names one and that one still runs.
    ///
    /// # Errors
    /// [`Error::Stale`] when file, token or servers are not that run's.
    pub async fn from_env(settings: &Settings) -> Result<Option<Self>, Error> {
        let (Some(path), Some(run)) = (&settings.dev_file, &settings.dev_run) else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path).map_err(file("read", path))?;
        let stale = |reason: String| Error::Stale(format!("{}: {reason}", path.display()));
        let addresses: Addresses =
            serde_json::from_str(&text).map_err(|error| stale(error.to_string()))?;
        if addresses.run != *run {
            return Err(stale("it is another run's".to_owned()));
        }
        addresses.verify().await.map_err(stale)?;
        Ok(Some(Self {
            addresses,
            owned: None,
        }))
    }

    /// Where the servers are.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The variables by which a child process finds this set and proves that it may use it.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let Addresses {
            run,
            data,
            nats_url,
            redis_url,
            postgres_url,
            ..
        } = &self.addresses;
        let file = data.join("dev.json").display().to_string();
        let mut variables = vec![
            ("NATS_URL".to_owned(), nats_url.clone()),
            ("REDIS_URL".to_owned(), redis_url.clone()),
            ("DATABASE_URL".to_owned(), postgres_url.clone()),
            ("RINGSAGA_DEV_FILE".to_owned(), file),
            ("RINGSAGA_DEV_RUN".to_owned(), run.clone()),
        ];
        variables.extend(Role::ALL.map(|role| (role.password_variable(), role.password(run))));
        variables
    }

    /// A region and cluster of the caller's own.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn scope(&self) -> Result<Scope, Error> {
        let region = format!("t{}", token::random::<6>()?);
        Ok(Scope {
            region,
            cluster: "c1".to_owned(),
        })
    }

    /// The NATS nodes, to take some down; none when somebody else started them.
    pub fn nats(&mut self) -> Option<&mut NatsCluster> {
        self.owned.as_mut().map(|owned| &mut owned.nats)
    }

    /// Redis, to take it down; none when somebody else started it.
    pub fn redis(&mut self) -> Option<&mut Redis> {
        self.owned.as_mut().map(|owned| &mut owned.redis)
    }

    /// Postgres, to take it down; none when somebody else started it.
    pub fn postgres(&mut self) -> Option<&mut Postgres> {
        self.owned.as_mut().map(|owned| &mut owned.postgres)
    }

    /// Ends all servers that this set started, orderly, and removes a temporary folder.
    ///
    /// # Errors
    /// The first server that could not be signalled, or a folder that could not be removed.
    pub async fn stop(mut self) -> Result<(), Error> {
        let Some(Owned {
            described,
            mut nats,
            mut redis,
            mut postgres,
            temporary,
        }) = self.owned.take()
        else {
            return Ok(());
        };
        drop(described);
        tokio::try_join!(nats.stop(), redis.stop(), postgres.stop())?;
        match temporary {
            Some(folder) => folder.close().map_err(file("remove", &self.addresses.data)),
            None => Ok(()),
        }
    }
}

impl Drop for Described {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, file = %self.0.display(), "no description to remove");
        }
    }
}

impl Addresses {
    /// The address of another database on the same Postgres.
    #[must_use]
    pub fn database_url(&self, database: &str) -> String {
        match self.postgres_url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/{database}"),
            None => self.postgres_url.clone(),
        }
    }

    /// The password of a NATS user in this run.
    #[must_use]
    pub fn nats_password(&self, role: Role) -> String {
        role.password(&self.run)
    }

    /// Real handshakes with all three; each proves that the server is this run's.
    async fn verify(&self) -> Result<(), String> {
        let first = self.nats_url.split(',').next().unwrap_or_default();
        let nats = port(first).ok_or("no port in the address of NATS")?;
        nats::answers(nats, &self.run, Role::Observer).await?;
        let password = self
            .redis_url
            .split_once("://:")
            .and_then(|(_, rest)| rest.split_once('@'));
        let (password, _) = password.ok_or("no password in the address of Redis")?;
        let redis = port(&self.redis_url).ok_or("no port in the address of Redis")?;
        redis::answers(redis, password).await?;
        postgres::answers(&self.postgres_url, &self.run).await
    }
}

fn port(url: &str) -> Option<u16> {
    url.trim_end_matches('/').rsplit_once(':')?.1.parse().ok()
}

fn data_folder(chosen: Option<&Path>) -> Result<(PathBuf, Option<TempDir>), Error> {
    let (folder, temporary) = match chosen {
        Some(chosen) => (
            std::path::absolute(chosen).map_err(file("resolve", chosen))?,
            None,
        ),
        None => {
            let made = tempfile::Builder::new().prefix("ringsaga-").tempdir();
            let made = made.map_err(file(
                "create a folder in",
                Path::new("the temporary folder"),
            ))?;
            (made.path().to_path_buf(), Some(made))
        }
    };
    folder::create(&folder)?;
    Ok((folder, temporary))
}
