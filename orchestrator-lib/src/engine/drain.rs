//! Leaving in order: ring, running steps, lease, store, bus; each part with its limit.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{Engine, Life, Strings, lease::Told};
use crate::Drained;

/// After the grace period: handing back is one write a transaction, and they share commits.
const HANDING_BACK: Duration = Duration::from_secs(3);

/// How long the lease's end, the last writes and the bus' goodbye may take, each.
const CLOSING: Duration = Duration::from_secs(3);

/// Leaves; what is left to the lease's end after all limits is told.
pub(crate) async fn drain(engine: &Arc<Engine>, strings: Strings) -> Drained {
    engine.life.send_replace(Life::Leaving);
    tracing::info!(running = engine.in_flight.running(), "leaving");
    strings.leave_ring.cancel();
    engine.lease.drain();
    tell(&strings, Told::Drained).await;
    let grace = engine.config.grace;
    let within = tokio::time::timeout(grace, engine.in_flight.empty()).await;
    let mut dropped = 0;
    if within.is_err() {
        dropped = engine.in_flight.calling();
        tracing::warn!(
            calls = dropped,
            "the grace period is over: open calls are in doubt"
        );
        engine.lease.end_calls();
        let last = tokio::time::timeout(HANDING_BACK, engine.in_flight.empty()).await;
        tracing::debug!(all = last.is_ok(), "handed back");
    }
    let abandoned = engine.in_flight.running();
    tell(&strings, Told::Emptied).await;
    let ended = tokio::time::timeout(CLOSING, strings.lease.closed()).await;
    let closed = tokio::time::timeout(CLOSING, engine.store.close()).await;
    strings.close_bus.cancel();
    let left = Drained {
        handed_back: engine.handed_back.load(Ordering::Relaxed),
        dropped_calls: dropped,
        abandoned,
    };
    let stopped = tokio::time::timeout(CLOSING, strings.tasks.stop()).await;
    tracing::info!(
        ?left,
        lease = ended.is_ok(),
        store = closed.is_ok(),
        tasks = stopped.is_ok(),
        "left"
    );
    engine.life.send_replace(Life::Left);
    left
}

async fn tell(strings: &Strings, told: Told) {
    if strings.lease.send(told).await.is_err() {
        tracing::debug!("the lease has ended already");
    }
}
