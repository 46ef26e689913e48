//! Master and slave as processes of their own, and their configuration for people.

use anyhow::Context;
use ring_shell::config::{Common, Effective, Log, Settings, Sources};
use serde::Serialize;

use super::{coordinator, read, sources, start};
use crate::{
    args::{Role, Sourced},
    output,
};

/// Runs a master.
pub(super) fn master(sourced: &Sourced) -> anyhow::Result<()> {
    let sources = sources(sourced);
    let log = log(&sources, ring_core::wire::Role::Master);
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
    let log = log(&sources, ring_core::wire::Role::Slave);
    let (config, _) = read(sources, ring_slave::Config::read)?;
    start(&log, async |numbers, shutdown| {
        let config = ring_slave::Config {
            numbers: Some(numbers),
            ..config
        };
        ring_slave::run(config, shutdown).await.context("slave")
    })
}

/// How the process writes its log; whatever else is wrong is reported by the reading that follows.
pub(super) fn log(sources: &Sources, role: ring_core::wire::Role) -> Log {
    let common = Common::read(&mut Settings::read(sources.clone()), role);
    common.map_or_else(
        || Log {
            json: false,
            filter: "info".to_owned(),
        },
        |common| common.log,
    )
}

/// Reports every mistake of a role's configuration.
pub(crate) fn check(role: Role, sourced: &Sourced) -> anyhow::Result<()> {
    effective(role, sourced)?;
    output::line("no mistake")?;
    Ok(())
}

#[derive(Serialize)]
struct Row {
    key: String,
    value: String,
    source: String,
}

/// Prints every setting with its source.
pub(crate) fn print(role: Role, sourced: &Sourced, json: bool) -> anyhow::Result<()> {
    let rows = effective(role, sourced)?;
    let rows = rows
        .into_iter()
        .map(|Effective { key, value, source }| Row { key, value, source });
    if json {
        return rows.into_iter().try_for_each(|row| output::json(&row));
    }
    let mut table = output::table(&["KEY", "VALUE", "SOURCE"]);
    for row in rows {
        table.add_row([row.key, row.value, row.source]);
    }
    output::line(&table.trim_fmt())?;
    Ok(())
}

fn effective(role: Role, sourced: &Sourced) -> anyhow::Result<Vec<Effective>> {
    Ok(match role {
        Role::Master => read(sources(sourced), ring_master::Config::read)?.1,
        Role::Slave => read(sources(sourced), ring_slave::Config::read)?.1,
        Role::Coordinator => coordinator::effective(sourced)?,
    })
}
