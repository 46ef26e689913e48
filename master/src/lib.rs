//! The master role: the core's master on the shell, with Redis as its registry.
//!
//! Decides nothing: it gives the machine a bus, a registry, a boot id and a seed, and shows what
//! it sees. It knows NATS and Redis and never touches the transactions' database (R12).

mod config;
mod ports;
pub mod registry;

use std::{io, net::SocketAddr, sync::Arc};

use ring_core::{machine::End, master, wire::Role};
use ring_shell::{
    BUILD, clock,
    drive::{self, DriveError},
    health::{self, Pages},
    tasks::Tasks,
    telemetry::Meter,
    view::{self, Publisher, View},
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub use self::{config::Config, ports::Seen};
use self::{ports::Ports, registry::Holder};

/// Why a master ended although nobody asked it to.
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

/// A master that does not run yet.
#[derive(Debug)]
pub struct Master {
    config: Config,
    publisher: Publisher<Seen>,
    view: View<Seen>,
}

impl Master {
    /// A master with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (publisher, view) = view::view();
        Self {
            config,
            publisher,
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
            publisher,
            view,
        } = self;
        let tasks = Tasks::new();
        if let Some(address) = config.listen {
            let pages = Pages {
                ready: Arc::new(move || view.fresh().map_or_else(|why| vec![why], |s| s.reasons)),
                numbers: config.numbers,
                name: "ring-master",
                version: BUILD,
            };
            health::start(address, pages, &tasks.spawner())
                .await
                .map_err(|source| Error::Listen { address, source })?;
        }
        let bus = config.bus;
        let meter = Meter::new(&bus.scope, Role::Master);
        let alone = config.redis.is_none();
        let registry = config.redis.map(|address| {
            let holder = Holder {
                scope: bus.scope.clone(),
                id: bus.id.clone(),
                boot: bus.boot,
                timing: config.timing,
            };
            registry::start(holder, address, &tasks.spawner(), meter.clone())
        });
        let machine = master::Master::new(
            master::Config {
                scope: bus.scope.clone(),
                id: bus.id.clone(),
                boot: bus.boot,
                timing: config.timing,
                balance: config.balance,
                build: bus.build.clone(),
                alone,
            },
            clock::chance(),
        );
        let ports = Ports::new(registry, publisher, meter);
        let end = drive::run(machine, ports, bus, tasks, shutdown, config.grace).await?;
        tracing::info!(?end, "master ended");
        Ok(end)
    }
}

/// [`Master::run`] without a view.
///
/// # Errors
/// As for [`Master::run`].
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<End, Error> {
    Master::new(config).run(shutdown).await
}
