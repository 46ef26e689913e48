//! Where to look for server programs and for a set that runs already: the environment, read once.
//!
//! The only file of this crate that reads the environment. It decides nothing with what it read.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the environment says about local servers.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `RINGSAGA_LOCAL__NATS_SERVER`: this program, without looking further.
    pub nats_server: Option<PathBuf>,
    /// `RINGSAGA_LOCAL__REDIS_SERVER`: this program (Redis or Valkey), without looking further.
    pub redis_server: Option<PathBuf>,
    /// `RINGSAGA_LOCAL__POSTGRES_BIN`: the folder with `initdb` and `postgres`.
    pub postgres_bin: Option<PathBuf>,
    /// `RINGSAGA_LOCAL__WHEELS` is set: skip what is installed, take the pinned wheels.
    pub wheels_only: bool,
    /// `PATH`, split.
    pub path: Vec<PathBuf>,
    /// `XDG_CACHE_HOME`, else `$HOME/.cache`; wheels are unpacked below it.
    pub cache: Option<PathBuf>,
    /// `RINGSAGA_DEV_FILE`: the `dev.json` of a set that was started around this process.
    pub dev_file: Option<PathBuf>,
    /// `RINGSAGA_DEV_RUN`: that set's own token; without it nothing from there is used.
    pub dev_run: Option<String>,
}

impl Settings {
    /// Reads the environment of this process.
    #[must_use]
    pub fn from_env() -> Self {
        let path = |name| variable(name).map(PathBuf::from);
        let cache = path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        Self {
            nats_server: path("RINGSAGA_LOCAL__NATS_SERVER"),
            redis_server: path("RINGSAGA_LOCAL__REDIS_SERVER"),
            postgres_bin: path("RINGSAGA_LOCAL__POSTGRES_BIN"),
            wheels_only: variable("RINGSAGA_LOCAL__WHEELS").is_some(),
            path: variable("PATH")
                .map(|all| std::env::split_paths(&all).collect())
                .unwrap_or_default(),
            cache: cache.or_else(|| path("HOME").map(|home| home.join(".cache"))),
            dev_file: path("RINGSAGA_DEV_FILE"),
            dev_run: variable("RINGSAGA_DEV_RUN").and_then(|run| run.into_string().ok()),
        }
    }
}

/// An empty variable counts as unset.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
