//! How to connect: everything that the client would otherwise decide, set explicitly and printed.

use std::{fmt, io, path::PathBuf, time::Duration};

use async_nats::{Client, ConnectOptions, ServerAddr};
use ring_core::{
    id::{BootId, NodeId, Scope},
    wire::Role,
};
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;

use super::{inbox_prefix, link::Link};
use crate::{clock, telemetry::role_name};

/// A dead peer is noticed after two to three of these; the client's default takes 179 s.
const PING: Duration = Duration::from_secs(5);
/// A server that does not answer within this is left for the next one.
const CONNECT: Duration = Duration::from_secs(2);
/// The first pause before reconnecting, doubled each time, half of it chance.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause: a server that is back is used within this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Messages that a subscription holds before the newest are dropped: at 1 KB each 8 MiB.
const SUBSCRIPTION: usize = 8192;
/// Commands waiting for the connection (subscribe, publish, ask).
const COMMANDS: usize = 2048;

/// How to prove who one is.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    /// Not at all; said as a warning at start.
    #[default]
    None,
    /// User and password.
    User {
        /// The user.
        user: String,
        /// The password.
        password: SecretString,
    },
    /// A token.
    Token(SecretString),
    /// A `.creds` file (JWT and seed).
    File(PathBuf),
    /// An nkey's seed.
    Nkey(SecretString),
}

/// All about one connection.
#[derive(Clone)]
pub struct Options {
    /// Servers, tried in random order; more are learnt from the first that answers.
    pub servers: Vec<ServerAddr>,
    /// Who connects.
    pub credentials: Credentials,
    /// A CA's certificate file, when the system's are not meant.
    pub ca: Option<PathBuf>,
    /// The role: its name is in the connection's name and in its inboxes' prefix.
    pub role: Role,
    /// Region and cluster.
    pub scope: Scope,
    /// The node's id.
    pub id: NodeId,
    /// This start of its process.
    pub boot: BootId,
    /// Version of the program.
    pub build: String,
}

/// Why there can be no connection.
#[derive(Debug, Error)]
pub enum OptionsError {
    /// An address is none.
    #[error("NATS address {given:?} can't be read: write nats://host:4222, several with commas")]
    Address {
        /// As given, without the part before an `@`.
        given: String,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// No address at all.
    #[error("no NATS address: write nats://host:4222")]
    NoAddress,
    /// The credentials' file can't be used.
    #[error("NATS credentials file {path}")]
    Credentials {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The client refuses the options.
    #[error("NATS options")]
    Refused(#[source] async_nats::ConnectError),
}

/// Reads server addresses, separated by commas.
///
/// # Errors
/// [`OptionsError::Address`] for the first that can't be read, or when there is none.
pub fn server_addresses(text: &str) -> Result<Vec<ServerAddr>, OptionsError> {
    let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
    let servers: Vec<ServerAddr> = parts
        .map(|part| {
            part.parse().map_err(|source| OptionsError::Address {
                given: part.rsplit('@').next().unwrap_or_default().to_owned(),
                source,
            })
        })
        .collect::<Result<_, _>>()?;
    if servers.is_empty() {
        return Err(OptionsError::NoAddress);
    }
    Ok(servers)
}

/// Server addresses for people: without what stands before an `@`, which may be a password.
pub(crate) fn shown(servers: &[ServerAddr]) -> String {
    let all: Vec<_> = servers
        .iter()
        .map(|s| format!("{}://{}:{}", s.scheme(), s.host(), s.port()))
        .collect();
    all.join(",")
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("servers", &shown(&self.servers))
            .field("credentials", &self.credentials)
            .field("ca", &self.ca)
            .field("role", &self.role)
            .field("scope", &self.scope)
            .field("id", &self.id)
            .field("boot", &self.boot)
            .field("build", &self.build)
            .finish()
    }
}

impl Options {
    /// The name that `nats server report connections` shows.
    #[must_use]
    pub fn name(&self) -> String {
        let Scope { region, cluster } = &self.scope;
        let role = role_name(self.role);
        format!("ring-{role} {region}/{cluster} {} {}", self.id, self.build)
    }

    pub(super) fn print(&self) {
        tracing::info!(
            name = self.name(),
            servers = shown(&self.servers),
            credentials = %self.credentials,
            ca = ?self.ca,
            ping = ?PING,
            connect_timeout = ?CONNECT,
            reconnect = ?(FIRST_PAUSE, LONGEST_PAUSE),
            subscription_capacity = SUBSCRIPTION,
            command_capacity = COMMANDS,
            inboxes = inbox_prefix(self.role),
            "NATS connection"
        );
        if matches!(self.credentials, Credentials::None)
            && self.servers.iter().all(|s| s.username().is_none())
        {
            tracing::warn!("NATS without credentials: anybody can forge windows there");
        }
    }

    pub(super) async fn open(&self, link: &Link) -> Result<Client, OptionsError> {
        let events = link.clone();
        let options = ConnectOptions::new()
            .name(self.name())
            .custom_inbox_prefix(inbox_prefix(self.role))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .ping_interval(PING)
            .connection_timeout(CONNECT)
            .request_timeout(Some(CONNECT))
            .subscription_capacity(SUBSCRIPTION)
            .client_capacity(COMMANDS)
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                let events = events.clone();
                async move { events.noticed(&event) }
            });
        let options = self.authenticated(options).await?;
        let options = match &self.ca {
            Some(ca) => options.add_root_certificates(ca.clone()),
            None => options,
        };
        options
            .connect(self.servers.clone())
            .await
            .map_err(OptionsError::Refused)
    }

    // The client reads what stands before an address' `@` and does not send it.
    fn named_in_address(&self, options: ConnectOptions) -> ConnectOptions {
        let with_user = self.servers.iter().find(|s| s.username().is_some());
        match with_user.map(|s| (s.username().unwrap_or_default(), s.password())) {
            Some((user, Some(password))) => {
                options.user_and_password(user.to_owned(), password.to_owned())
            }
            Some((token, None)) => options.token(token.to_owned()),
            None => options,
        }
    }

    async fn authenticated(&self, options: ConnectOptions) -> Result<ConnectOptions, OptionsError> {
        Ok(match &self.credentials {
            Credentials::None => self.named_in_address(options),
            Credentials::User { user, password } => {
                options.user_and_password(user.clone(), password.expose_secret().to_owned())
            }
            Credentials::Token(token) => options.token(token.expose_secret().to_owned()),
            Credentials::Nkey(seed) => options.nkey(seed.expose_secret().to_owned()),
            Credentials::File(path) => options.credentials_file(path).await.map_err(|source| {
                let path = path.clone();
                OptionsError::Credentials { path, source }
            })?,
        })
    }
}

impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::User { user, .. } => write!(f, "user {user}"),
            Self::Token(_) => f.write_str("token"),
            Self::Nkey(_) => f.write_str("nkey"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

// Half of the pause is chance, so that thousands of nodes don't come back at once.
fn pause(attempts: usize) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    let full = FIRST_PAUSE
        .saturating_mul(2_u32.saturating_pow(doublings.min(16)))
        .min(LONGEST_PAUSE);
    let half = full / 2;
    let span = u64::try_from(half.as_micros()).unwrap_or(u64::MAX).max(1);
    half + Duration::from_micros(clock::chance() % span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_are_separated_by_commas() {
        let all = server_addresses("nats://a:4222, tls://b:4333,c").unwrap();
        let hosts: Vec<_> = all.iter().map(|s| (s.host(), s.port())).collect();
        assert_eq!(hosts, [("a", 4222), ("b", 4333), ("c", 4222)]);
    }

    #[test]
    fn a_bad_address_is_named_without_its_password() {
        let said = server_addresses("nats://u:secret@host:port").unwrap_err();
        assert!(said.to_string().contains("host:port"), "{said}");
        assert!(!said.to_string().contains("secret"), "{said}");
        assert!(matches!(
            server_addresses(" , "),
            Err(OptionsError::NoAddress)
        ));
    }

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        assert!(pause(1) <= FIRST_PAUSE);
        for attempts in [0, 1, 5, 20, usize::MAX] {
            assert!(pause(attempts) >= FIRST_PAUSE / 2, "{attempts}");
            assert!(pause(attempts) <= LONGEST_PAUSE, "{attempts}");
        }
        assert!(pause(50) >= LONGEST_PAUSE / 2);
        let many: std::collections::BTreeSet<_> = (0..20).map(|_| pause(50)).collect();
        assert!(many.len() > 10);
    }
}
