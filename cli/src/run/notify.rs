//! The notifier as a process of its own.

use std::sync::Arc;

use anyhow::Context;
use orchestrator_lib::store::{self, Alerts};
use ring_core::{machine::End, wire::Role};
use ring_notifier::{Config, Notifier};
use ring_shell::{
    BUILD,
    config::Effective,
    health::{self, Pages},
    tasks::Tasks,
    telemetry::Numbers,
};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use super::process::{log, read, sources, start};
use crate::args::Sourced;

/// Runs a notifier until a signal.
pub(super) fn run(sourced: &Sourced) -> anyhow::Result<()> {
    let log = log(&sources(sourced), Role::Orchestrator);
    let config = config(sourced)?;
    start(&log, async |numbers, shutdown| {
        notify(config, numbers, shutdown).await.context("notifier")
    })
}

/// A notifier's configuration.
pub(crate) fn config(sourced: &Sourced) -> anyhow::Result<Config> {
    Ok(read(sources(sourced), Config::read)?.0)
}

/// All settings of a notifier.
pub(super) fn effective(sourced: &Sourced) -> anyhow::Result<Vec<Effective>> {
    Ok(read(sources(sourced), Config::read)?.1)
}

async fn notify(
    config: Config,
    numbers: Numbers,
    shutdown: CancellationToken,
) -> anyhow::Result<End> {
    let database = store::Config::new(config.database.expose_secret());
    let alerts = Alerts::new(&database, config.scope)?;
    let notifier = Notifier::new(alerts, config.hooks)?;
    let tasks = Tasks::new();
    if let Some(address) = config.listen {
        let health = notifier.health();
        let pages = Pages {
            ready: Arc::new(move || health.borrow().iter().cloned().collect()),
            numbers: Some(numbers),
            name: "ring-notifier",
            version: BUILD,
        };
        let served = health::start(address, pages, &tasks.spawner()).await;
        served.with_context(|| format!("can't serve health and metrics on {address}"))?;
    }
    let ended = notifier.run(shutdown).await;
    tasks.stop().await;
    ended?;
    Ok(End::Drained)
}
