//! Decides which connections the store opens and how long it waits for each thing. Refuses to know
//! the driver: an address and durations are all that a caller gives.

use std::{fmt, time::Duration};

/// How to reach the database and how long to wait for it.
#[derive(Clone)]
pub struct Config {
    /// `postgres://user:password@host:port/database?sslmode=…`. `sslmode` `disable`, `prefer`,
    /// `require`, `verify-ca` and `verify-full` are known; whenever TLS is used, the server's
    /// certificate and name are verified.
    pub url: String,
    /// Connections for claims and reads of the engine. Default 4: claims are few and short.
    pub claim_connections: usize,
    /// Connections for people's questions and for definitions. Default 2.
    pub admin_connections: usize,
    /// Limit for one connect, TLS included. Default 3 s.
    pub connect_timeout: Duration,
    /// Limit for one call, on the client and, a little shorter, on the server. Default 5 s: below
    /// the owner's lease, so that a stuck call is noticed while the lease still holds.
    pub call_timeout: Duration,
    /// Limit for one renewal of the lease. Default 1500 ms, so that it reconnects and asks again
    /// within a third of the shortest sensible lease.
    pub renew_timeout: Duration,
    /// How long a start waits for another session that stores the same key. Default 500 ms.
    pub lock_timeout: Duration,
    /// How long unacknowledged data may stay unanswered before a connection counts as dead.
    /// Default 10 s: the kernel's own limit is many minutes.
    pub tcp_user_timeout: Duration,
    /// Deaths blamed on a transaction until it is quarantined. Default 5.
    pub quarantine_after: u32,
}

impl Config {
    /// The defaults for an address.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            claim_connections: 4,
            admin_connections: 2,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(5),
            renew_timeout: Duration::from_millis(1_500),
            lock_timeout: Duration::from_millis(500),
            tcp_user_timeout: Duration::from_secs(10),
            quarantine_after: 5,
        }
    }
}

impl fmt::Debug for Config {
    /// Without the address: it holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("claim_connections", &self.claim_connections)
            .field("admin_connections", &self.admin_connections)
            .field("call_timeout", &self.call_timeout)
            .finish_non_exhaustive()
    }
}
