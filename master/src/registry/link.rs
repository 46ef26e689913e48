//! The connection to Redis: its limits, all set explicitly, and when to begin a new one.

use std::{fmt, time::Duration};

use redis::{
    Client, ErrorKind, IntoConnectionInfo as _, RedisError, ServerErrorKind,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;

/// A connection that takes longer is given up.
const CONNECT: Duration = Duration::from_secs(2);
/// An answer that takes longer counts as none.
const RESPONSE: Duration = Duration::from_millis(500);
/// Further tries to connect within one order.
const RETRIES: usize = 1;
/// Pause before such a try.
const PAUSE: Duration = Duration::from_millis(50);
/// Failures in a row after which the connection is taken for half-open.
const SUSPICIOUS: u32 = 2;

/// Where Redis is: `redis://`, `rediss://` or `redis+unix://`, with its password.
#[derive(Clone)]
pub struct Address {
    client: Client,
    shown: String,
}

/// Why an address can't be used.
#[derive(Debug, Error)]
#[error("can't be read: write redis://[user:password@]host:6379/ or rediss:// with TLS")]
pub struct AddressError(#[source] RedisError);

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressError`] when it is none.
    pub fn new(url: &SecretString) -> Result<Self, AddressError> {
        let info = url
            .expose_secret()
            .trim()
            .into_connection_info()
            .map_err(AddressError)?;
        let shown = info.addr().to_string();
        let client = Client::open(info).map_err(AddressError)?;
        Ok(Self { client, shown })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

pub(super) struct Link {
    address: Address,
    connection: Option<ConnectionManager>,
    failures: u32,
    checked: bool,
}

impl Link {
    pub(super) fn new(address: Address) -> Self {
        tracing::info!(
            server = address.shown,
            connect_timeout = ?CONNECT,
            response_timeout = ?RESPONSE,
            retries = RETRIES,
            "Redis connection"
        );
        Self {
            address,
            connection: None,
            failures: 0,
            checked: false,
        }
    }

    /// The connection, made now if there is none; it connects with its first command.
    pub(super) fn connection(&mut self) -> Result<&mut ConnectionManager, RedisError> {
        if self.connection.is_none() {
            let config = ConnectionManagerConfig::new()
                .set_connection_timeout(Some(CONNECT))
                .set_response_timeout(Some(RESPONSE))
                .set_number_of_retries(RETRIES)
                .set_min_delay(PAUSE)
                .set_max_delay(PAUSE);
            let client = self.address.client.clone();
            let made = ConnectionManager::new_lazy_with_config(client, config)?;
            self.connection = Some(made);
        }
        self.connection
            .as_mut()
            .ok_or_else(|| (ErrorKind::Client, "no connection").into())
    }

    /// An order was answered.
    pub(super) fn works(&mut self) {
        self.failures = 0;
        if !std::mem::replace(&mut self.checked, true)
            && let Some(connection) = self.connection.clone()
        {
            // Advice only: it ends with the connection's own time limit.
            drop(tokio::spawn(warn_of_eviction(connection)));
        }
    }

    /// An order was not: a replica that was a primary, a half-open connection and a password that
    /// changed are all left behind with the connection, and the address is resolved again.
    pub(super) fn failed(&mut self, error: Option<&RedisError>) {
        self.failures += 1;
        if self.failures >= SUSPICIOUS || error.is_none_or(is_wrong_server) {
            self.connection = None;
        }
    }
}

fn is_wrong_server(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
        )
    )
}

/// A Redis that may evict keys may evict the lease.
async fn warn_of_eviction(mut connection: ConnectionManager) {
    let answer: Result<Vec<String>, _> = redis::cmd("CONFIG")
        .arg("GET")
        .arg("maxmemory-policy")
        .query_async(&mut connection)
        .await;
    match answer.as_deref() {
        Ok([_, policy]) if policy == "noeviction" => {}
        Ok([_, policy]) => tracing::warn!(
            policy,
            "Redis may evict the lease and the cuts: set maxmemory-policy noeviction"
        ),
        Ok(_) | Err(_) => {
            tracing::debug!("CONFIG GET is not allowed: maxmemory-policy is not known");
        }
    }
}
