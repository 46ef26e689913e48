//! What a node is told: where it belongs, where its store and its bus are, how much it may do.
//!
//! Decides which settings are sound and reports every mistake at once. Reads no environment and
//! no file: a binary does (`ring_shell::config`), by this type's [`serde::Deserialize`];
//! durations are texts such as `"30s"` there.

mod targets;

use std::{fmt, path::PathBuf, time::Duration};

use ring_core::{
    id::{Cluster, NameError, NodeId, Region, Scope, Service},
    region::RegionCodes,
    timing::{Overrides, Timing, TimingError},
};
use ring_shell::bus::{Credentials, OptionsError, server_addresses};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

pub use self::targets::Targets;

/// All that a node needs to know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The region: nothing crosses its border.
    pub region: Region,
    /// The virtual cluster in it.
    pub cluster: Cluster,
    /// The service whose transactions this node runs; its nodes share one ring.
    pub service: Service,
    /// This node, unique within region and cluster, the same after a restart (a pod's name).
    pub instance: NodeId,
    /// The region's code in transaction ids, 1 … 4095; 0 for the registry's, or none. Default 0.
    #[serde(default)]
    pub region_code: u16,
    /// The registry of all regions' codes, the same everywhere: a table, or `"eu=1,us=2"`.
    #[serde(default)]
    pub regions: RegionCodes,
    /// The saga store.
    pub database: Database,
    /// The ring's bus. Without it the node works with Postgres alone: it runs its sagas and
    /// sweeps, at once and not only what is overdue; it owns no range of the ring, and says
    /// `degraded`.
    #[serde(default)]
    pub nats: Option<Nats>,
    /// Whether it also retries what other nodes paused or left behind. Default no.
    #[serde(default)]
    pub retry_node: bool,
    /// Time settings that differ from the defaults.
    #[serde(default)]
    pub timing: Times,
    /// Most transactions that it runs at once. Default [`Config::CAPACITY`].
    #[serde(default = "capacity")]
    pub capacity: usize,
    /// How what [targets](crate::Step::target) bear is kept to.
    #[serde(default)]
    pub targets: Targets,
    /// Whether it brings the schema up to date before it starts. Default no: `ringsaga migrate`
    /// does it once for all nodes.
    #[serde(default)]
    pub migrate_on_start: bool,
    /// How long [`drain`](crate::Node::drain) lets running steps end. Default 20 s: less than the
    /// 30 s after which orchestrators of containers kill.
    #[serde(default = "grace", with = "humantime_serde")]
    pub grace: Duration,
    /// How long a compensation may stand at one step until an alert is raised. Default 1 h: most
    /// outages are over by then.
    #[serde(default = "compensation_alert", with = "humantime_serde")]
    pub compensation_alert: Duration,
}

/// The saga store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `postgres://user:password@host:port/name`, or Postgres' `key=value` text. A direct or
    /// session-pooled address: prepared statements and a lease's connection need a session.
    pub url: SecretString,
    /// Most connections for claims and reads, beside the writer's and the lease's one each.
    /// Default 8: each is busy for milliseconds.
    #[serde(default = "connections")]
    pub connections: usize,
}

/// The bus. User and password may also stand in the address.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nats {
    /// `nats://host:4222`, several separated by commas. Never printed: it may hold a password.
    pub url: SecretString,
    /// The user, with `password`.
    #[serde(default)]
    pub user: Option<String>,
    /// The user's password.
    #[serde(default)]
    pub password: Option<SecretString>,
    /// A `.creds` file, instead of a user.
    #[serde(default)]
    pub creds: Option<PathBuf>,
    /// An nkey's seed, instead of a user.
    #[serde(default)]
    pub nkey: Option<SecretString>,
    /// A token, instead of a user.
    #[serde(default)]
    pub token: Option<SecretString>,
    /// A CA's certificate file, when the system's are not meant.
    #[serde(default)]
    pub ca: Option<PathBuf>,
}

macro_rules! times {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// Time settings that differ from the defaults; what is left out
        /// [follows](Timing::derive) from what is not. `window`, `lead`, `guard`, `tolerance`, `heartbeat` and `session`
        /// must be those of the ring's master and slaves.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Times {
            /// Length of a window. Default 60 s.
            #[serde(with = "humantime_serde")]
            pub window: Option<Duration>,
            $($(#[$doc])* #[serde(with = "humantime_serde")] pub $field: Option<Duration>,)*
        }

        impl Times {
            /// The whole table.
            #[must_use]
            pub fn timing(&self) -> Timing {
                Timing::derive(&Overrides {
                    len: self.window,
                    $($field: self.$field,)*
                    ..Overrides::default()
                })
            }
        }
    };
}

times! {
    /// How long before its start a window is cut.
    lead,
    /// Nobody claims this close to a window's edges.
    guard,
    /// Clock offset that is still tolerated.
    tolerance,
    /// Pause between heartbeats.
    heartbeat,
    /// A member unheard this long is gone.
    session,
    /// This process's lease in Postgres.
    owner_lease,
    /// Pause between polls inside a window.
    poll,
    /// A due transaction that nobody took for this long is swept by anyone.
    overdue_after,
    /// Pause between sweeps.
    sweep,
}

/// One mistake in a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name breaks its rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Time settings that would make the ring unsound.
    #[error("timing: {0}")]
    Timing(#[from] TimingError),
    /// The bus' address or credentials can't be used.
    #[error("nats: {0}")]
    Nats(#[from] OptionsError),
    /// More than one way to authenticate.
    #[error("nats: give one of user, creds, nkey and token, not several")]
    NatsCredentials,
    /// The region's code does not fit.
    #[error("region_code must be below 4096, it is {0}")]
    RegionCode(u16),
    /// The registry of codes does not fit this region.
    #[error("regions: {0}")]
    Regions(String),
    /// A number must be above zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// More than a node can hold.
    #[error("capacity must be at most {MAX_CAPACITY}, it is {0}: start more nodes instead")]
    Capacity(usize),
}

/// Every mistake in a configuration, at once.
#[derive(Debug, thiserror::Error)]
#[error("the configuration has {} mistake(s): {}", .0.len(), list(.0))]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// A node holds each running transaction in memory, with its input and results: at 256 KiB each
/// this is already gigabytes.
const MAX_CAPACITY: usize = 16_384;

impl Config {
    /// Default for [`compensation_alert`](Self::compensation_alert): most outages are over by then.
    pub const COMPENSATION_ALERT: Duration = Duration::from_secs(3600);

    /// Default for [`capacity`](Self::capacity): enough that calls of 100 ms reach 5,000 steps a
    /// second, little enough that a node's death leaves others a burst they can take.
    pub const CAPACITY: usize = 512;

    /// A configuration with defaults, without a bus.
    ///
    /// # Errors
    /// [`ConfigErrors`] with every name that breaks its rule.
    pub fn new(
        region: &str,
        cluster: &str,
        service: &str,
        instance: &str,
        database_url: impl Into<String>,
    ) -> Result<Self, ConfigErrors> {
        let mut found = Vec::new();
        let region = kept(Region::new(region), &mut found);
        let cluster = kept(Cluster::new(cluster), &mut found);
        let service = kept(Service::new(service), &mut found);
        let instance = kept(NodeId::new(instance), &mut found);
        match (region, cluster, service, instance) {
            (Some(region), Some(cluster), Some(service), Some(instance)) => Ok(Self {
                region,
                cluster,
                service,
                instance,
                region_code: 0,
                regions: RegionCodes::default(),
                database: Database {
                    url: database_url.into().into(),
                    connections: connections(),
                },
                nats: None,
                retry_node: false,
                timing: Times::default(),
                capacity: capacity(),
                targets: Targets::default(),
                migrate_on_start: false,
                grace: grace(),
                compensation_alert: compensation_alert(),
            }),
            _ => Err(ConfigErrors(found)),
        }
    }

    /// Region and cluster.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            region: self.region.clone(),
            cluster: self.cluster.clone(),
        }
    }

    /// The whole table of times. Without a bus nobody owns a range, so there is nobody to be
    /// waited for: what is due is swept as soon as the rules allow.
    #[must_use]
    pub fn timing(&self) -> Timing {
        let mut timing = self.timing.timing();
        if self.nats.is_none() && self.timing.overdue_after.is_none() {
            timing.overdue_after = Duration::from_millis(100);
        }
        timing
    }

    /// Checks what the types don't.
    ///
    /// # Errors
    /// [`ConfigErrors`]: all of them at once.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        let timing = self.timing().errors();
        let mut found: Vec<_> = timing.into_iter().map(ConfigError::from).collect();
        found.extend(self.region_mistake());
        for (name, value) in [
            ("capacity", self.capacity),
            ("database.connections", self.database.connections),
        ]
        .into_iter()
        .chain(self.targets.numbers())
        {
            if value == 0 {
                found.push(ConfigError::Zero(name));
            }
        }
        if self.capacity > MAX_CAPACITY {
            found.push(ConfigError::Capacity(self.capacity));
        }
        if let Some(nats) = &self.nats {
            if let Err(error) = server_addresses(nats.url.expose_secret()) {
                found.push(error.into());
            }
            if let Err(error) = nats.credentials() {
                found.push(error);
            }
        }
        if found.is_empty() {
            Ok(())
        } else {
            Err(ConfigErrors(found))
        }
    }
}

impl Nats {
    /// Only an address.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into().into(),
            user: None,
            password: None,
            creds: None,
            nkey: None,
            token: None,
            ca: None,
        }
    }

    /// With user and password.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        self.user = Some(user.into());
        self.password = Some(password.into());
        self
    }

    pub(crate) fn credentials(&self) -> Result<Credentials, ConfigError> {
        let user = self.user.as_ref().map(|user| Credentials::User {
            user: user.clone(),
            password: self.password.clone().unwrap_or_default(),
        });
        let given: Vec<_> = [
            user,
            self.creds.clone().map(Credentials::File),
            self.nkey.clone().map(Credentials::Nkey),
            self.token.clone().map(Credentials::Token),
        ]
        .into_iter()
        .flatten()
        .collect();
        match <[Credentials; 1]>::try_from(given) {
            Ok([one]) => Ok(one),
            Err(none) if none.is_empty() => Ok(Credentials::None),
            Err(_) => Err(ConfigError::NatsCredentials),
        }
    }
}

fn kept<T>(name: Result<T, NameError>, found: &mut Vec<ConfigError>) -> Option<T> {
    name.map_err(|error| found.push(error.into())).ok()
}

fn capacity() -> usize {
    Config::CAPACITY
}

fn connections() -> usize {
    8
}

fn compensation_alert() -> Duration {
    Config::COMPENSATION_ALERT
}

fn grace() -> Duration {
    Duration::from_secs(20)
}

fn list(errors: &[impl fmt::Display]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests;
