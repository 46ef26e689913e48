//! Forgets transactions that ended well and are older than their saga's retention.
//!
//! Decides how much at a time. What may go decides the statement: never what needs a person.

use std::{collections::BTreeMap, time::Duration};

use ring_core::id::SagaName;
use uuid::Uuid;

use super::Engine;
use crate::store::{By, Error, Purge};

/// Batches of one saga in one go: what is left is for the next hour.
const BATCHES: usize = 50;

/// Where each saga's walk goes on: rows of others must not keep it from ever reaching its own.
#[derive(Default)]
pub(super) struct Walks(BTreeMap<SagaName, Uuid>);

impl Walks {
    /// Purges for every saga of this node that has a retention.
    pub(super) async fn forget(&mut self, engine: &Engine) -> Result<(), Error> {
        let by = match By::new(
            engine.config.instance.as_str(),
            "its saga's retention is over",
        ) {
            Ok(by) => by,
            Err(error) => {
                tracing::error!(%error, "nothing is purged");
                return Ok(());
            }
        };
        for (saga, retention) in retentions(engine) {
            let purge = Purge {
                service: Some(engine.config.service.clone()),
                saga: Some(saga.clone()),
                retention,
            };
            let (mut after, mut gone) = (self.0.remove(&saga), 0);
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
            if let Some(after) = after {
                self.0.insert(saga, after);
            }
        }
        Ok(())
    }
}

/// Of several versions of a saga the longest counts; one that keeps all keeps all.
fn retentions(engine: &Engine) -> Vec<(SagaName, Duration)> {
    let mut sagas = BTreeMap::<&SagaName, Option<Duration>>::new();
    for ((saga, _), definition) in &engine.sagas {
        let own = definition.retention;
        let longest = sagas.entry(saga).or_insert(own);
        *longest = longest.zip(own).map(|(a, b)| a.max(b));
    }
    let kept = |(saga, retention): (&SagaName, Option<Duration>)| Some((saga.clone(), retention?));
    sagas.into_iter().filter_map(kept).collect()
}
