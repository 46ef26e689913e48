//! `ringsaga ring token`: where transactions lie on the ring.

use std::io::BufRead;

use ring_core::{
    id::TransactionId,
    token::{Slot, Token},
};
use ring_shell::token::token_of;
use serde::Serialize;

use crate::{args::Ids, exit::Exit, output};

#[derive(Serialize)]
struct Row {
    id: String,
    token: Token,
    slot: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    region_code: Option<u16>,
}

/// Prints token and slot of each id.
pub(crate) fn run(ids: &Ids, json: bool) -> anyhow::Result<()> {
    let rows = read(ids)?.into_iter().map(row).collect::<Vec<Row>>();
    if json {
        return rows.iter().try_for_each(output::json);
    }
    let mut table = output::table(&["ID", "TOKEN", "SLOT"]);
    for row in rows {
        table.add_row([row.id, row.token.to_string(), row.slot.to_string()]);
    }
    output::line(&table.trim_fmt())?;
    Ok(())
}

fn row(id: TransactionId) -> Row {
    let token = token_of(id);
    let Slot(slot) = token.slot();
    let region_code = id.region_code().map(|code| code.value());
    Row {
        id: id.to_string(),
        token,
        slot,
        region_code,
    }
}

/// The ids of the command line, those of standard input in place of "-".
fn read(ids: &Ids) -> anyhow::Result<Vec<TransactionId>> {
    let parse = |text: &str| {
        crate::args::transaction(text)
            .map(TransactionId)
            .map_err(|e| Exit::Usage.because(e))
    };
    let mut found = Vec::new();
    for id in &ids.ids {
        if id == "-" {
            for line in std::io::stdin().lock().lines() {
                let line = line?;
                if !line.trim().is_empty() {
                    found.push(parse(&line)?);
                }
            }
        } else {
            found.push(parse(id)?);
        }
    }
    Ok(found)
}
