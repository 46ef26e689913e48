//! The slave role: the core's slave on the shell.
//!
//! Decides nothing: it gives the machine a bus, a boot id and a seed, and shows what it sees. It
//! knows NATS alone: no database, no Redis, no other slave (R12).

mod ports;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use ring_core::{machine::End, slave, timing::Timing, wire::Role};
use ring_shell::{
    BUILD, bus, clock,
    config::{Common, Settings},
    drive::{self, DriveError},
    health::{self, Pages},
    tasks::Tasks,
    telemetry::{Meter, Numbers},
    view::{self, View},
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::ports::Ports;
pub use self::ports::Seen;

/// All that a slave needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its connection, scope, id and boot.
    pub bus: bus::Options,
    /// All times.
    pub timing: Timing,
    /// Where health and metrics are served; absent: nowhere.
    pub listen: Option<SocketAddr>,
    /// The process's numbers, for `/metrics`.
    pub numbers: Option<Numbers>,
    /// How long leaving may take.
    pub grace: Duration,
}

/// Why a slave ended although nobody asked it to.
#[derive(Debug, Error)]
pub enum Error {
    /// The address for health and metrics can't be bound.
    #[error("can't serve health and metrics on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The loop failed.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// A slave that does not run yet.
#[derive(Debug)]
pub struct Slave {
    config: Config,
    ports: Ports,
    view: View<Seen>,
}

impl Config {
    /// Asks for the keys of a slave. `None` when one that must be there is not.
    pub fn read(settings: &mut Settings) -> Option<Self> {
        Common::read(settings, Role::Slave).map(Self::from)
    }
}

impl From<Common> for Config {
    fn from(common: Common) -> Self {
        Self {
            bus: common.bus(clock::boot()),
            timing: common.timing,
            listen: common.listen,
            numbers: None,
            grace: common.grace,
        }
    }
}

impl Slave {
    /// A slave with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (publisher, view) = view::view();
        let meter = Meter::new(&config.bus.scope, Role::Slave);
        Self {
            ports: Ports::new(publisher, meter),
            config,
            view,
        }
    }

    /// What its loop sees, from outside.
    #[must_use]
    pub fn view(&self) -> View<Seen> {
        self.view.clone()
    }

    /// Runs until `shutdown` and the leaving that follows, or until a newer boot has its id.
    ///
    /// # Errors
    /// [`enum@Error`] when it ended although nobody asked it to.
    pub async fn run(self, shutdown: CancellationToken) -> Result<End, Error> {
        let Self {
            config,
            ports,
            view,
        } = self;
        let tasks = Tasks::new();
        if let Some(address) = config.listen {
            let pages = Pages {
                ready: Arc::new(move || view.fresh().map_or_else(|why| vec![why], |s| s.reasons)),
                numbers: config.numbers,
                name: "ring-slave",
                version: BUILD,
            };
            health::start(address, pages, &tasks.spawner())
                .await
                .map_err(|source| Error::Listen { address, source })?;
        }
        let machine = slave::Slave::new(
            slave::Config {
                scope: config.bus.scope.clone(),
                id: config.bus.id.clone(),
                boot: config.bus.boot,
                timing: config.timing,
                build: config.bus.build.clone(),
            },
            clock::chance(),
        );
        let end = drive::run(machine, ports, config.bus, tasks, shutdown, config.grace).await?;
        tracing::info!(?end, "slave ended");
        Ok(end)
    }
}

/// [`Slave::run`] without a view.
///
/// # Errors
/// As for [`Slave::run`].
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<End, Error> {
    Slave::new(config).run(shutdown).await
}
