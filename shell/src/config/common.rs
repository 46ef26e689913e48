//! The keys that all roles share.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use async_nats::ServerAddr;
use ring_core::{
    id::{BootId, Cluster, NodeId, Region, Scope},
    timing::{Overrides, Timing},
    wire::Role,
};
use secrecy::SecretString;

use super::{Setting, Settings};
use crate::{BUILD, bus, telemetry::role_name};

/// Leaving takes a heartbeat or two; Kubernetes kills after 30 s.
const GRACE: Duration = Duration::from_secs(20);

/// NATS settings.
#[derive(Clone)]
pub struct Nats {
    /// `nats.url`: servers, several with commas.
    pub servers: Vec<ServerAddr>,
    /// `nats.user` with `nats.password`, or one of `nats.token`, `nats.creds`, `nats.nkey`.
    pub credentials: bus::Credentials,
    /// `nats.ca`: a CA's certificate file.
    pub ca: Option<PathBuf>,
}

/// Log settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// `log.format`: plain or json.
    pub json: bool,
    /// `log.filter`: levels, as `RUST_LOG` would have them.
    pub filter: String,
}

/// What every role needs.
#[derive(Clone, Debug)]
pub struct Common {
    /// The role.
    pub role: Role,
    /// `region` and `cluster`.
    pub scope: Scope,
    /// `id`; by default the host's name.
    pub id: NodeId,
    /// `nats.*`
    pub nats: Nats,
    /// `ring.*`
    pub timing: Timing,
    /// `http.listen`: where health and metrics are served; absent: nowhere.
    pub listen: Option<SocketAddr>,
    /// `log.*`
    pub log: Log,
    /// `shutdown.grace`: how long leaving may take.
    pub grace: Duration,
}

impl Common {
    /// Asks for all keys. `None` when one that must be there is not: [`Settings::finish`] says so.
    pub fn read(settings: &mut Settings, role: Role) -> Option<Self> {
        let region: Option<Region> = settings.needed("region", "eu-1");
        let cluster: Option<Cluster> = settings.needed("cluster", "c1");
        let id = id(settings, role);
        let nats = nats(settings);
        let timing = timing(settings);
        let listen = settings.maybe("http.listen");
        let log = Log {
            json: settings.or("log.format", Format(false)).0,
            // The client logs each of its tries; ours are one line a change.
            filter: settings.or("log.filter", "info,async_nats=error".to_owned()),
        };
        let grace = settings.or("shutdown.grace", GRACE);
        Some(Self {
            role,
            scope: Scope {
                region: region?,
                cluster: cluster?,
            },
            id: id?,
            nats,
            timing,
            listen,
            log,
            grace,
        })
    }

    /// The options of this node's connection in one boot.
    #[must_use]
    pub fn bus(&self, boot: BootId) -> bus::Options {
        bus::Options {
            servers: self.nats.servers.clone(),
            credentials: self.nats.credentials.clone(),
            ca: self.nats.ca.clone(),
            role: self.role,
            scope: self.scope.clone(),
            id: self.id.clone(),
            boot,
            build: BUILD.to_owned(),
        }
    }
}

struct Format(bool);

impl Setting for Format {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "plain" => Ok(Self(false)),
            "json" => Ok(Self(true)),
            other => Err(format!("is {other:?}: write plain or json")),
        }
    }
    fn show(&self) -> Option<String> {
        Some(if self.0 { "json" } else { "plain" }.to_owned())
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("servers", &bus::shown(&self.servers))
            .field("credentials", &self.credentials)
            .field("ca", &self.ca)
            .finish()
    }
}

struct Servers(Vec<ServerAddr>);

impl Setting for Servers {
    fn read(text: &str) -> Result<Self, String> {
        let servers = bus::server_addresses(text);
        servers
            .map(Self)
            .map_err(|error| format!("is wrong: {error}"))
    }
    fn show(&self) -> Option<String> {
        Some(bus::shown(&self.0))
    }
}

struct Freeze(Option<u32>);

impl Setting for Freeze {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "forever" => Ok(Self(None)),
            number => number.parse().map(Some).map(Self).map_err(|_| {
                format!("is {number:?}: write a number of windows, 0 or more, or forever")
            }),
        }
    }
    fn show(&self) -> Option<String> {
        Some(
            self.0
                .map_or_else(|| "forever".to_owned(), |n| n.to_string()),
        )
    }
}

fn id(settings: &mut Settings, role: Role) -> Option<NodeId> {
    match host_id() {
        Some(host) => Some(settings.or("id", host)),
        None => settings.needed("id", &format!("{}-1", role_name(role))),
    }
}

/// The host's name as an id: its first label, other characters become dashes.
fn host_id() -> Option<NodeId> {
    let name = rustix::system::uname();
    let host = name.nodename().to_string_lossy();
    let label = host.split('.').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let id: String = label.chars().take(64).map(plain).collect();
    NodeId::new(id.trim_matches('-')).ok()
}

fn nats(settings: &mut Settings) -> Nats {
    let here = "nats://127.0.0.1:4222".parse().into_iter().collect();
    let Servers(servers) = settings.or("nats.url", Servers(here));
    Nats {
        servers,
        credentials: credentials(settings),
        ca: settings.maybe("nats.ca"),
    }
}

fn credentials(settings: &mut Settings) -> bus::Credentials {
    let user: Option<String> = settings.maybe("nats.user");
    let password: Option<SecretString> = settings.maybe("nats.password");
    let token: Option<SecretString> = settings.maybe("nats.token");
    let file: Option<PathBuf> = settings.maybe("nats.creds");
    let nkey: Option<SecretString> = settings.maybe("nats.nkey");
    let user = match (user, password) {
        (Some(user), Some(password)) => Some(bus::Credentials::User { user, password }),
        (None, None) => None,
        (Some(_), None) => {
            settings.mistake("nats.password", "is missing: nats.user needs it");
            None
        }
        (None, Some(_)) => {
            settings.mistake("nats.user", "is missing: nats.password needs it");
            None
        }
    };
    let mut all = user
        .into_iter()
        .chain(token.map(bus::Credentials::Token))
        .chain(file.map(bus::Credentials::File))
        .chain(nkey.map(bus::Credentials::Nkey));
    let first = all.next().unwrap_or_default();
    if all.next().is_some() {
        settings.mistake(
            "nats",
            "has several credentials: keep one of user and password, token, creds and nkey",
        );
    }
    first
}

/// Each default follows from the values before it, as the core's table has it.
fn timing(settings: &mut Settings) -> Timing {
    let mut set = Overrides::default();
    macro_rules! ask {
        ($($key:literal => $field:ident),* $(,)?) => {
            $(set.$field = Some(settings.or($key, Timing::derive(&set).$field));)*
        };
    }
    ask! {
        "ring.window" => len,
        "ring.lead" => lead,
        "ring.guard" => guard,
        "ring.tolerance" => tolerance,
        "ring.heartbeat" => heartbeat,
        "ring.session" => session,
        "ring.master_lease" => master_lease,
        "ring.owner_lease" => owner_lease,
        "ring.poll" => poll,
        "ring.overdue_after" => overdue_after,
        "ring.sweep" => sweep,
    }
    let usual = Freeze(Timing::default().freeze_limit);
    set.freeze_limit = Some(settings.or("ring.freeze_limit", usual).0);
    let timing = Timing::derive(&set);
    for error in timing.errors() {
        settings.mistake("ring", &format!("breaks a rule: {error}"));
    }
    timing
}
