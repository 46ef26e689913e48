//! Master and slave inside the service's own process, for a service that wants no other ones.
//!
//! They are the libraries that `ringsaga master` and `ringsaga slave` run, on the same
//! configuration. With `redis.url` several instances' masters stand by for each other; without it
//! this must be the only one.

use ring_core::{machine::End, master::Balance, wire::Role};
use ring_master::registry::Address;
use ring_shell::{
    bus::Credentials,
    clock,
    config::{Common, Nats, Settings},
};
use secrecy::SecretString;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Config as Service;
use crate::Process;

/// Both roles' configurations.
#[derive(Clone, Debug)]
pub(super) struct Config {
    master: ring_master::Config,
    slave: ring_slave::Config,
}

/// Both roles, running, or none.
pub(super) struct Coordinators {
    stop: CancellationToken,
    roles: JoinSet<anyhow::Result<End>>,
}

impl Config {
    /// Asks for `embedded` and, with it, `redis.url` and each role's NATS user (`master.nats.user`
    /// and `master.nats.password`, the same for `slave`); without one a role uses the service's.
    pub(super) fn ask(s: &mut Settings, common: Option<&Common>) -> Option<Self> {
        let embedded = s.or("embedded", false);
        let redis: Option<SecretString> = s.maybe("redis.url");
        let redis = match (embedded, redis) {
            (true, Some(url)) => match Address::new(&url) {
                Ok(address) => Some(address),
                Err(error) => {
                    s.mistake("redis.url", &error.to_string());
                    None
                }
            },
            (false, Some(_)) => {
                s.mistake(
                    "redis.url",
                    "is not used here: only an embedded master needs it",
                );
                None
            }
            (_, None) => None,
        };
        let common = common.filter(|_| embedded)?;
        let mut role = |role, name| Common {
            role,
            nats: user(s, name, &common.nats),
            // The service's own pages show the process.
            listen: None,
            ..common.clone()
        };
        let (master, slave) = (role(Role::Master, "master"), role(Role::Slave, "slave"));
        Some(Self {
            master: ring_master::Config {
                bus: master.bus(clock::boot()),
                timing: master.timing,
                balance: Balance::Weighted,
                redis,
                listen: None,
                numbers: None,
                grace: master.grace,
            },
            slave: slave.into(),
        })
    }
}

/// The bus as a role of its own sees it.
fn user(s: &mut Settings, role: &str, of_service: &Nats) -> Nats {
    let user: Option<String> = s.maybe(&format!("{role}.nats.user"));
    let password: Option<SecretString> = s.maybe(&format!("{role}.nats.password"));
    let credentials = match (user, password) {
        (Some(user), Some(password)) => Credentials::User { user, password },
        (None, None) => of_service.credentials.clone(),
        (Some(_), None) | (None, Some(_)) => {
            s.mistake(
                &format!("{role}.nats"),
                "needs user and password, or neither",
            );
            Credentials::None
        }
    };
    Nats {
        credentials,
        ..of_service.clone()
    }
}

impl Coordinators {
    /// Starts them when they are configured.
    pub(super) fn start(config: &Service, process: &Process) -> Self {
        let stop = process.shutdown.child_token();
        let mut roles = JoinSet::new();
        if let Some(Config { master, slave }) = config.embedded.clone() {
            let (to_master, to_slave) = (stop.clone(), stop.clone());
            roles.spawn(async { Ok(ring_master::run(master, to_master).await?) });
            roles.spawn(async { Ok(ring_slave::run(slave, to_slave).await?) });
        }
        Self { stop, roles }
    }

    /// Waits until one of them fails, or ends although nobody asked it to, and says why.
    pub(super) async fn broken(&mut self) -> anyhow::Error {
        while let Some(ended) = self.roles.join_next().await {
            return match ended {
                Ok(Ok(End::Drained)) if self.stop.is_cancelled() => continue,
                Ok(Ok(End::Drained)) => anyhow::anyhow!("an embedded coordinator left unasked"),
                Ok(Ok(End::Superseded)) => {
                    anyhow::anyhow!("a newer process has the id of an embedded coordinator")
                }
                Ok(Err(error)) => error.context("an embedded coordinator ended"),
                Err(error) => anyhow::Error::new(error).context("an embedded coordinator broke"),
            };
        }
        std::future::pending().await
    }

    /// Asks them to leave and waits for it.
    pub(super) async fn left(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.roles.join_next().await {
            ended??;
        }
        Ok(())
    }
}
