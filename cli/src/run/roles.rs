//! Master and slave as processes of their own.

use anyhow::Context;
use ring_core::wire::Role;

use super::process::{log, read, sources, start};
use crate::args::Sourced;

/// Runs a master.
pub(super) fn master(sourced: &Sourced) -> anyhow::Result<()> {
    let sources = sources(sourced);
    let log = log(&sources, Role::Master);
    let (config, _) = read(sources, ring_master::Config::read)?;
    start(&log, async |numbers, shutdown| {
        let config = ring_master::Config {
            numbers: Some(numbers),
            ..config
        };
        ring_master::run(config, shutdown).await.context("master")
    })
}

/// Runs a slave.
pub(super) fn slave(sourced: &Sourced) -> anyhow::Result<()> {
    let sources = sources(sourced);
    let log = log(&sources, Role::Slave);
    let (config, _) = read(sources, ring_slave::Config::read)?;
    start(&log, async |numbers, shutdown| {
        let config = ring_slave::Config {
            numbers: Some(numbers),
            ..config
        };
        ring_slave::run(config, shutdown).await.context("slave")
    })
}
