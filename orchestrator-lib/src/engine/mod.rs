//! The engine: performs what the machines of `ring-core` order, over the store, the bus and the
//! users' functions. Decides nothing itself.
//!
//! ```text
//!   lease    one task: opens, renews, closes; tells every run when calls must be dropped
//!   lookout  one task: claims for the node's own ranges and for the safety net, launches
//!   ring     one task: member of the ring, says which ranges are the node's own
//!   targets  one task: which targets have transactions waiting; calls ask the breakers here
//!   report   one task: what nobody can run, what nobody retries
//!   run      one task a transaction: its calls, and one write at a time
//! ```

mod announce;
mod call;
mod child;
mod drain;
mod inflight;
mod launch;
mod lease;
mod lookout;
mod report;
mod retention;
mod ring;
mod run;
mod start;
mod start_in;
mod targets;
mod transactional;
mod up;
mod waits;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::AtomicUsize},
};

use ring_core::{
    id::{BootId, SagaName, TransactionId},
    time::Mono,
    timing::Timing,
    wire::Health,
};
use ring_shell::{
    clock,
    tasks::{Spawner, Tasks},
    telemetry::Meter,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "testing")]
pub(crate) use self::call::{Answer, Caller, Children, failed};
use self::{
    announce::Announcer,
    inflight::InFlight,
    lease::Lease,
    ring::View,
    targets::Targets,
    waits::{Wait, Waits},
};
pub(crate) use self::{
    drain::drain,
    up::{Parts, up},
};
use crate::{
    Config,
    context::Shared,
    saga::Definition,
    store::{Operator, Process, Store},
};

/// How a node's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It goes on.
    Up,
    /// It leaves.
    Leaving,
    /// It has left.
    Left,
}

/// What the parts of a node share.
pub(crate) struct Engine {
    pub(crate) config: Config,
    timing: Timing,
    boot: BootId,
    sagas: BTreeMap<(SagaName, u32), Arc<Definition>>,
    shared: Shared,
    pub(crate) store: Store,
    pub(crate) operator: Operator,
    lease: Lease,
    in_flight: InFlight,
    waits: Waits,
    targets: Targets,
    meter: Meter,
    announcer: Announcer,
    spawner: Spawner,
    /// How well the looks into the store go.
    polled: watch::Sender<Option<Health>>,
    /// When the backlog is counted again.
    backlog_due: watch::Sender<Mono>,
    view: watch::Receiver<View>,
    pub(crate) life: watch::Sender<Life>,
    superseded: CancellationToken,
    handed_back: AtomicUsize,
}

/// What only the node holds: dropping it ends everything at once.
#[derive(Debug)]
pub(crate) struct Strings {
    tasks: Tasks,
    lease: mpsc::Sender<lease::Told>,
    leave_ring: CancellationToken,
    close_bus: CancellationToken,
}

impl Engine {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawner.spawn(task);
    }

    pub(crate) fn wait(&self, id: TransactionId) -> Wait<'_> {
        self.waits.wait(id)
    }

    /// Tells the run of a transaction, if it runs here, that its row was woken.
    pub(crate) fn woken(&self, id: TransactionId, wake_seq: u64) {
        self.in_flight.woken(id, wake_seq);
    }

    /// Whether a transaction runs here now.
    pub(crate) fn runs(&self, id: TransactionId) -> bool {
        self.in_flight.runs(id)
    }

    /// Completes when a newer process has this node's id.
    pub(crate) async fn superseded(&self) {
        self.superseded.cancelled().await;
    }

    /// Completes when a background task has panicked.
    pub(crate) async fn broken(&self) {
        self.spawner.broken().await;
    }

    /// This process as the owner table knows it.
    fn process(&self) -> Process {
        Process {
            boot: self.boot,
            instance: self.config.instance.clone(),
            retry_node: self.config.retry_node,
            capabilities: self.sagas.values().map(|d| d.plan.runs().clone()).collect(),
        }
    }

    /// Why new work can't be done here.
    pub(crate) fn unready(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut say = |holds: bool, reason: &str| {
            if holds {
                reasons.push(reason.to_owned());
            }
        };
        say(
            self.spawner.is_broken(),
            "a background task of the engine panicked",
        );
        say(
            self.superseded.is_cancelled(),
            "a newer process has this node's id",
        );
        say(*self.life.borrow() != Life::Up, "the node leaves");
        let lease = self.lease.standing();
        say(
            !lease.holds(clock::now().mono),
            "no lease in the store: the database is away or slow",
        );
        reasons.extend(self.sick().map(str::to_owned));
        reasons
    }

    /// What makes things slower here, while everything still comes to its end.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.full().map(str::to_owned).into_iter().collect();
        reasons.extend(self.targets.down());
        if !self.config.retry_node {
            return reasons;
        }
        if self.config.nats.is_none() {
            reasons.push("no NATS is configured: it sweeps, and owns no range of the ring".into());
        }
        let view = self.view.borrow();
        reasons.extend(view.reasons.iter().map(|r| format!("ring: {r}")));
        reasons
    }

    /// Work that comes now waits for room. Taking the node out of a load balancer for that would
    /// send its load to others that are as busy.
    fn full(&self) -> Option<&'static str> {
        (self.in_flight.free() == 0).then_some("as many transactions run as the capacity allows")
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("instance", &self.config.instance)
            .field("boot", &self.boot)
            .finish_non_exhaustive()
    }
}
