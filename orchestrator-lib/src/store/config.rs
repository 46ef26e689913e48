//! Decides which connections the store opens and how long it waits for each thing. Refuses to know
//! the driver: an address and durations are all that a caller gives.

use std::{fmt, time::Duration};

/// The default of an owner's lease, as in the table of times.
const LEASE: Duration = Duration::from_secs(6);

/// A database that needs longer to connect or to answer serves nobody.
const LONGEST_CONNECT: Duration = Duration::from_secs(3);
const LONGEST_CALL: Duration = Duration::from_secs(5);

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
    /// Connections for steps that run in a database transaction of the store, each for as long as
    /// its step. Default 8.
    pub step_connections: usize,
    /// Limit for one connect, TLS included: see [`Config::for_lease`].
    pub connect_timeout: Duration,
    /// Limit for one call, its wait for a connection included, on the client and, a little
    /// shorter, on the server: see [`Config::for_lease`].
    pub call_timeout: Duration,
    /// Limit for one of the two tries of a renewal, its wait for a connection included: see
    /// [`Config::for_lease`].
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
    /// The defaults for an address and a lease of 6 s.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        let unlimited = Self {
            url: url.into(),
            claim_connections: 4,
            admin_connections: 2,
            step_connections: 8,
            connect_timeout: Duration::MAX,
            call_timeout: Duration::MAX,
            renew_timeout: Duration::MAX,
            lock_timeout: Duration::from_millis(500),
            tcp_user_timeout: Duration::from_secs(10),
            quarantine_after: 5,
        };
        unlimited.for_lease(LEASE)
    }

    /// With the limits that follow from an owner's lease. A renewal, which asks a second time on a
    /// fresh connection, takes a third of it at most. A call ends while the lease still holds, so
    /// that a stuck one is noticed in time: after 5 s, or sooner when the lease is short.
    #[must_use]
    pub fn for_lease(self, lease: Duration) -> Self {
        Self {
            connect_timeout: LONGEST_CONNECT.min(lease / 2),
            call_timeout: LONGEST_CALL.min(lease / 6 * 5),
            renew_timeout: lease / 6,
            ..self
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
