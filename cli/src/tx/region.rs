//! `ringsaga tx region`: which region an id's code means, without asking any server.

use ring_core::id::TransactionId;
use serde::Serialize;

use crate::{
    args::{Format, RegionOf},
    exit::Exit,
    output,
};

#[derive(Serialize)]
struct Started {
    id: TransactionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
}

/// Prints each id's code and region; an id that can't be resolved is "not found".
pub(super) fn region(args: &RegionOf, format: Format) -> anyhow::Result<()> {
    let regions = &args.registry.regions;
    let started = |id: TransactionId| Started {
        id,
        code: id
            .region_code()
            .map(|code| code.value())
            .filter(|code| *code != 0),
        region: regions.resolve(id).map(ToString::to_string),
    };
    let ids = args.ids.iter().copied().map(TransactionId);
    let rows: Vec<Started> = ids.map(started).collect();
    output::rows(format, &rows, || {
        let mut table = output::table(&["ID", "CODE", "REGION"]);
        for row in &rows {
            let code = row
                .code
                .map_or_else(|| "none".to_owned(), |code| code.to_string());
            let region = row.region.as_deref().unwrap_or("not registered");
            table.add_row([row.id.to_string().as_str(), code.as_str(), region]);
        }
        table.trim_fmt()
    })?;
    if rows.iter().all(|row| row.region.is_some()) {
        return Ok(());
    }
    let text = "some ids have no code, or one that --regions does not name";
    Err(Exit::NotFound.because(text))
}
