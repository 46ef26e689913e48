//! Forgets transactions that ended well and are older than their saga's retention.
//!
//! Decides how much at a time. What may go decides the statement: never what needs a person.

use ring_core::id::SagaName;

use super::Engine;
use crate::store::{By, Error, Purge};

/// Batches of one saga in one go: what is left is for the next hour.
const BATCHES: usize = 50;

/// Purges for every saga of this node that has a retention.
pub(super) async fn forget(engine: &Engine) -> Result<(), Error> {
    // Several versions of a saga: the longest counts.
    let mut sagas = std::collections::BTreeMap::<&SagaName, _>::new();
    for ((saga, _), definition) in &engine.sagas {
        let Some(retention) = definition.retention else {
            continue;
        };
        let longest = sagas.entry(saga).or_insert(retention);
        *longest = retention.max(*longest);
    }
    let Ok(by) = By::new(
        engine.config.instance.as_str(),
        "its saga's retention is over",
    ) else {
        return Ok(());
    };
    for (saga, retention) in sagas {
        let purge = Purge {
            service: Some(engine.config.service.clone()),
            saga: Some(saga.clone()),
            retention,
        };
        let (mut after, mut gone) = (None, 0);
        for _ in 0..BATCHES {
            let purged = engine.operator.purge(&purge, after, &by).await?;
            gone += purged.transactions;
            after = purged.next;
            if after.is_none() {
                break;
            }
        }
        if gone > 0 {
            tracing::info!(%saga, gone, "transactions beyond their retention were purged");
        }
    }
    Ok(())
}
