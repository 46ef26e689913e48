//! `ringsaga ring owner`: which token and slot a transaction has, and who looks after it now.

use ring_core::{
    id::TransactionId,
    token::{Slot, Token},
};
use ring_shell::token::token_of;
use serde::Serialize;

use super::{
    ear::Ear,
    view::{View, collect},
};
use crate::{args::Owner, exit::Exit, output};

#[derive(Serialize)]
struct Row {
    id: TransactionId,
    token: Token,
    slot: u16,
    scope: String,
    service: String,
    orchestrator: String,
    slave: String,
}

/// Prints one row a ring and service; exit 3 when nobody looks after the token now.
pub(crate) async fn run(owner: &Owner, json: bool) -> anyhow::Result<()> {
    let id = TransactionId(owner.id);
    let token = token_of(id);
    let ear = Ear::open(&owner.seen).await?;
    let views = collect(&ear, &owner.seen).await?;
    let rows: Vec<Row> = views
        .iter()
        .flat_map(|view| rows(view, &ear, id, token))
        .collect();
    if json {
        rows.iter().try_for_each(output::json)?;
    } else {
        let mut table = output::table(&["TOKEN", "SLOT", "RING", "SERVICE", "OWNER", "SLAVE"]);
        for row in &rows {
            table.add_row([
                row.token.to_string(),
                row.slot.to_string(),
                row.scope.clone(),
                row.service.clone(),
                row.orchestrator.clone(),
                row.slave.clone(),
            ]);
        }
        output::line(&table.trim_fmt())?;
    }
    if rows.is_empty() {
        let Slot(slot) = token.slot();
        return Err(Exit::NotFound.because(format!(
            "token {token} (slot {slot}): nobody looks after it now; the sweeper will"
        )));
    }
    Ok(())
}

fn rows(view: &View, ear: &Ear, id: TransactionId, token: Token) -> Vec<Row> {
    let now = ring_shell::clock::now().wall;
    let grants = view
        .slaves
        .iter()
        .flat_map(|s| s.granted.iter().map(move |g| (s, g)));
    grants
        .filter(|(_, g)| g.starts_at.0 <= now && now < g.ends_at.0)
        .filter(|(_, g)| g.range.contains(token) && ear.wants(&g.service))
        .map(|(slave, g)| Row {
            id,
            token,
            slot: token.slot().0,
            scope: view.scope.to_string(),
            service: g.service.to_string(),
            orchestrator: g.holder.to_string(),
            slave: slave.who.id.to_string(),
        })
        .collect()
}
