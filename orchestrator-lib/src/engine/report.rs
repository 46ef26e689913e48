//! What a person must hear of: transactions that nobody can run, or that nobody retries.
//!
//! Said once when it begins and once when it ends (one line a change, not one a look).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ring_core::{
    chance,
    id::SagaName,
    store::Missing,
    wire::{Fact, Time, Tx},
};
use ring_shell::clock;

use super::{Engine, Life, retention::Walks};
use crate::{
    store::{Alert, AlertKind, Error},
    telemetry::{ALERTS, COMMITS_UNCONFIRMED, EXECUTOR_MISSING, RETRY_NODE_MISSING},
};

/// Pause between two looks, before jitter: a person reacts in minutes, the questions cost a few
/// milliseconds.
const PAUSE: Duration = Duration::from_secs(10);

/// Rows that nobody can run and that one look pushes by a minute: a page.
const PUSHED: u32 = 256;

/// Owner rows of the dead and old alerts are removed about once an hour.
const FORGET_EVERY: u64 = 360;

/// Compensations that stand still are looked for about once a minute: they do so for hours.
const COMPENSATIONS_EVERY: u64 = 6;

/// Alerts that one look takes to count: more come with the next.
const TOLD: u32 = 256;

/// How long alerts are kept: long enough for a review of the month.
const ALERTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Looks for as long as the node lives.
pub(super) async fn run(engine: Arc<Engine>) {
    let seed = clock::chance();
    let mut said = Said::default();
    let mut count = 0;
    loop {
        // The first look comes soon: a missing executor is told at once.
        let pause = if count == 0 { PAUSE / 10 } else { PAUSE };
        tokio::time::sleep(chance::spread(seed, count, pause)).await;
        count += 1;
        if *engine.life.borrow() != Life::Up {
            return;
        }
        if let Err(error) = look(&engine, &mut said, count).await {
            tracing::debug!(%error, "could not look for what is stuck");
        }
    }
}

/// What was said last, so that only changes are, and how far the purges came.
#[derive(Default)]
struct Said {
    retry_node_missing: bool,
    missing: BTreeMap<(SagaName, u32), u64>,
    unconfirmed: u64,
    walks: Walks,
}

async fn look(engine: &Engine, said: &mut Said, count: u64) -> Result<(), Error> {
    said.unconfirmed(engine);
    let nodes = engine.store.retry_nodes().await?;
    let waiting = if nodes.present { 0 } else { nodes.waiting };
    said.retry_node(engine, waiting).await;
    if !engine.config.retry_node {
        return Ok(());
    }
    let missing = engine.store.missing().await?;
    engine.store.raise_missing(&missing).await?;
    said.executors(engine, missing).await;
    if count % COMPENSATIONS_EVERY == 1 {
        let limit = engine.config.compensation_alert;
        engine.store.raise_compensating(limit).await?;
    }
    for alert in engine.store.untold_alerts(TOLD).await? {
        told(engine, alert).await;
    }
    // Whatever was reported: orphans of the dead are parked here, and only here.
    if let Some(me) = engine.lease.incarnation() {
        let pushed = engine.store.push_missing(me, PUSHED).await?;
        if pushed.disabled > 0 || pushed.quarantined > 0 {
            tracing::warn!(?pushed, "transactions that nobody can run have ended");
        }
    }
    if count % FORGET_EVERY == 1 {
        let forgotten = engine.store.forget_dead().await?;
        let alerts = engine.store.forget_alerts(ALERTS_KEPT).await?;
        tracing::debug!(
            forgotten,
            alerts,
            "owner rows of the dead and old alerts removed"
        );
        said.walks.forget(engine).await?;
    }
    Ok(())
}

impl Said {
    fn unconfirmed(&mut self, engine: &Engine) {
        let now = engine.store.unconfirmed_commits();
        let news = now.saturating_sub(self.unconfirmed);
        engine.meter.add(COMMITS_UNCONFIRMED, news);
        self.unconfirmed = now;
    }

    /// How many wait for a retry node.
    async fn retry_node(&mut self, engine: &Engine, waiting: u64) {
        let missing = waiting > 0;
        engine
            .meter
            .set(RETRY_NODE_MISSING, f64::from(u8::from(missing)));
        if missing == self.retry_node_missing {
            return;
        }
        self.retry_node_missing = missing;
        if !missing {
            tracing::info!("a retry node is back");
            return;
        }
        let service = engine.config.service.clone();
        tracing::warn!(%service, "transactions wait and no retry node of the service lives");
        let fact = Fact::RetryNodeMissing {
            service,
            transactions: waiting,
        };
        engine.announcer.tell(fact).await;
    }

    async fn executors(&mut self, engine: &Engine, found: Vec<Missing>) {
        let total: u64 = found.iter().map(|m| m.transactions).sum();
        #[expect(clippy::cast_precision_loss, reason = "a metric")]
        engine.meter.set(EXECUTOR_MISSING, total as f64);
        let mut now = BTreeMap::new();
        for one in found {
            let id = (one.saga.clone(), one.version);
            now.insert(id.clone(), one.transactions);
            if !self.missing.contains_key(&id) {
                missing(engine, one).await;
            }
        }
        for (saga, version) in self.missing.keys().filter(|id| !now.contains_key(id)) {
            tracing::info!(%saga, version, "an executor is back");
        }
        self.missing = now;
    }
}

/// Counts an alert and says on the bus what nobody has said when it happened.
async fn told(engine: &Engine, alert: Alert) {
    engine.meter.count_as(ALERTS, "kind", alert.kind.as_str());
    let fact = match alert.kind {
        AlertKind::IrreversibleFailed => Fact::IrreversibleFailed,
        AlertKind::CompensationFailing => Fact::CompensationFailing,
        AlertKind::Restored => Fact::TxRestored,
        AlertKind::Terminated
        | AlertKind::Disabled
        | AlertKind::Quarantined
        | AlertKind::ExecutorMissing => return,
    };
    let saga = alert.saga.and_then(|saga| SagaName::new(&saga).ok());
    let (Some(id), Some(saga), Some(version)) = (alert.transaction, saga, alert.version) else {
        return;
    };
    tracing::warn!(%id, %saga, kind = alert.kind.as_str(), reason = alert.text, "an alert");
    let service = engine.config.service.clone();
    let tx = Tx::new(id, service, saga, version, &alert.text);
    engine.announcer.tell(fact(tx)).await;
}

async fn missing(engine: &Engine, one: Missing) {
    tracing::warn!(
        saga = %one.saga,
        version = one.version,
        transactions = one.transactions,
        first_expires_at = one.first_expires_at.rfc3339(),
        "executor missing: no live retry node can run these transactions"
    );
    let fact = Fact::ExecutorMissing {
        service: engine.config.service.clone(),
        saga: one.saga,
        version: one.version,
        transactions: one.transactions,
        first_expires_at: Time(one.first_expires_at),
    };
    engine.announcer.tell(fact).await;
}
