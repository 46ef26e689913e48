//! `ringsaga tx purge`: batches until everything was looked at.

use orchestrator_lib::store::{By, Purge};
use serde::Serialize;

use super::{deed::confirm, operator, told};
use crate::{
    args::{Format, PurgeArgs},
    exit::Exit,
    output,
};

#[derive(Serialize)]
struct Gone {
    purged: u64,
}

/// Purges, batch by batch: an interruption leaves only whole batches behind.
pub(super) async fn purge(args: &PurgeArgs, format: Format) -> anyhow::Result<()> {
    let by =
        By::new(&args.by.actor, &args.by.reason).map_err(|e| Exit::Usage.because(e.to_string()))?;
    if !args.yes {
        let older = humantime::format_duration(args.older_than);
        let of = args
            .service
            .as_ref()
            .map_or_else(|| "every service".to_owned(), ToString::to_string);
        confirm(&format!(
            "remove what {of} completed or compensated more than {older} ago?"
        ))?;
    }
    let purge = Purge {
        service: args.service.clone(),
        saga: None,
        retention: args.older_than,
    };
    let operator = operator(&args.store)?;
    let (mut after, mut purged) = (None, 0);
    loop {
        let batch = operator.purge(&purge, after, &by).await.map_err(told)?;
        purged += batch.transactions;
        let Some(next) = batch.next else { break };
        after = Some(next);
        output::chatter(&format!("purged {purged} so far"));
    }
    output::rows(format, &[Gone { purged }], || format!("purged {purged}"))
}
