//! A role's configuration for people: checked, or printed with the source of each value.

use ring_shell::config::Effective;
use serde::Serialize;

use super::{
    coordinator, notify,
    process::{read, sources},
};
use crate::{
    args::{Role, Sourced},
    output,
};

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
        Role::Notifier => notify::effective(sourced)?,
    })
}
