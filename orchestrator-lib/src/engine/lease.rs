//! This process's lease in the store: drives its machine, tells every run what follows.
//!
//! Decides nothing: the machine says when to open, renew and close, when calls must be dropped,
//! whose rows are strays. Requests run beside the loop, so that a slow database never hides the
//! local deadline.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use ring_core::{
    id::TransactionId,
    machine::Machine as _,
    orchestrator,
    owner::{Input, Order, Owner},
    store::{Fence, Incarnation, Renewed},
    time::{Mono, Wall, millis_u64},
};
use ring_shell::{clock, telemetry::CLOCK_OFFSET};
use tokio::sync::{mpsc, watch};

use super::Engine;
use crate::{
    error::chain,
    telemetry::{LEASE_HELD, LEASES_LOST, STRAYS},
};

/// Nothing to wait for by the clock: look again after this.
const LONGEST_SLEEP: std::time::Duration = std::time::Duration::from_secs(1);

/// What every run must learn of the lease and of the node's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// The node leaves.
    pub(super) drained: bool,
    /// How often open calls had to be dropped.
    pub(super) calls_ended: u64,
    /// Incarnations up to this one are dead.
    pub(super) dead: Option<Incarnation>,
}

/// How the lease stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) incarnation: Option<Incarnation>,
    /// When it ends here.
    until: Option<Mono>,
    /// Until when calls may start.
    start_until: Option<Mono>,
}

/// The lease as the rest of the engine sees it.
#[derive(Debug)]
pub(super) struct Lease {
    standing: watch::Sender<Standing>,
    fates: watch::Sender<Fate>,
}

impl Lease {
    pub(super) fn new() -> Self {
        Self {
            standing: watch::Sender::default(),
            fates: watch::Sender::default(),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    pub(super) fn changes(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// The incarnation to claim and start with, while new work may begin.
    pub(super) fn incarnation(&self) -> Option<Incarnation> {
        let standing = self.standing();
        let now = clock::now().mono;
        let may = standing.start_until.is_some_and(|until| now <= until);
        standing.incarnation.filter(|_| may)
    }

    pub(super) fn fates(&self) -> watch::Receiver<Fate> {
        self.fates.subscribe()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.fates.borrow().drained
    }

    pub(super) fn drain(&self) {
        self.fates.send_modify(|fate| fate.drained = true);
    }

    pub(super) fn end_calls(&self) {
        self.fates.send_modify(|fate| fate.calls_ended += 1);
    }

    /// Waits until a call may start; false when the lease ended first.
    pub(super) async fn may_start(&self) -> bool {
        let mut changes = self.changes();
        loop {
            let standing = *changes.borrow_and_update();
            let now = clock::now().mono;
            let Some(until) = standing.until.filter(|until| now < *until) else {
                return false;
            };
            if standing.start_until.is_some_and(|last| now <= last) {
                return true;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return false },
                () = tokio::time::sleep(until.since(now)) => {}
            }
        }
    }
}

impl Standing {
    /// Whether it holds.
    pub(super) fn holds(&self, now: Mono) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// What the node tells the lease.
#[derive(Debug)]
pub(super) enum Told {
    /// It is about to go.
    Drained,
    /// Nothing runs any more, or the grace period is over.
    Emptied,
}

type Request = std::pin::Pin<Box<dyn Future<Output = Input> + Send>>;

/// Drives the lease until the node has left.
pub(super) async fn run(
    engine: Arc<Engine>,
    mut told: mpsc::Receiver<Told>,
    ring: mpsc::Sender<orchestrator::Input>,
) {
    let mut machine = Owner::new(engine.timing.owner_lease, clock::chance());
    let mut requests: FuturesUnordered<Request> = FuturesUnordered::new();
    let mut orders = Vec::new();
    let mut input = Input::Woke;
    loop {
        if let Input::Renewed {
            sent_at,
            answer: Renewed::Held { clock, woken, .. },
            ..
        } = &input
        {
            for (id, wake_seq) in woken {
                engine.in_flight.woken(*id, *wake_seq);
            }
            measure(&engine, *sent_at, *clock, &ring);
        }
        machine.handle(clock::now(), input, &mut orders);
        publish(&engine, &machine);
        for order in orders.drain(..) {
            if perform(&engine, order, &requests) {
                return;
            }
        }
        let now = clock::now();
        let sleep = machine
            .wake_at()
            .after(now)
            .map_or(LONGEST_SLEEP, |(d, _)| d);
        input = tokio::select! {
            biased;
            Some(input) = requests.next() => input,
            told = told.recv() => match told {
                Some(Told::Drained) => Input::Drained,
                Some(Told::Emptied) => Input::Emptied,
                None => return,
            },
            () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)) => Input::Woke,
        };
    }
}

/// Whether it was the last order.
fn perform(engine: &Arc<Engine>, order: Order, requests: &FuturesUnordered<Request>) -> bool {
    let engine = Arc::clone(engine);
    match order {
        Order::Open => requests.push(Box::pin(open(engine))),
        Order::Renew(of) => requests.push(Box::pin(renew(engine, of))),
        Order::DeclareDead(of) => requests.push(Box::pin(declare_dead(engine, of))),
        Order::DropCalls => {
            tracing::warn!("the lease ended here: open calls are dropped as unknown");
            engine.lease.end_calls();
        }
        Order::Forget(of) => {
            tracing::warn!(
                incarnation = of.0,
                "declared dead: others run what ran here"
            );
            engine.meter.count(LEASES_LOST);
            engine
                .lease
                .fates
                .send_modify(|fate| fate.dead = fate.dead.max(Some(of)));
        }
        Order::HandBack(of, strays) => requests.push(Box::pin(hand_back(engine, of, strays))),
        Order::Close(of) => requests.push(Box::pin(close(engine, of))),
        Order::Stop => return true,
    }
    false
}

fn publish(engine: &Engine, machine: &Owner) {
    engine.lease.standing.send_if_modified(|standing| {
        let new = Standing {
            incarnation: machine.incarnation(),
            until: machine.deadline(),
            start_until: machine.start_until(),
        };
        let changed = *standing != new;
        *standing = new;
        changed
    });
    let held = engine.lease.standing().holds(clock::now().mono);
    engine.meter.set(LEASE_HELD, f64::from(u8::from(held)));
}

/// The database's clock, read between sending and now: half of that is the error.
fn measure(
    engine: &Engine,
    sent_at: Mono,
    database: Wall,
    ring: &mpsc::Sender<orchestrator::Input>,
) {
    let now = clock::now();
    let took = millis_u64(now.mono.since(sent_at));
    let middle = now
        .wall
        .0
        .saturating_sub(i64::try_from(took / 2).unwrap_or(0));
    let offset_ms = middle.saturating_sub(database.0);
    #[expect(clippy::cast_precision_loss, reason = "a metric")]
    engine.meter.set(CLOCK_OFFSET, offset_ms as f64 / 1_000.0);
    // A full queue means that a newer measurement comes soon anyway.
    let told = ring.try_send(orchestrator::Input::ClockMeasured { offset_ms });
    tracing::trace!(offset_ms, told = told.is_ok(), "clock measured");
}

async fn open(engine: Arc<Engine>) -> Input {
    let sent_at = clock::now().mono;
    let process = engine.process();
    match engine.store.open(&process, engine.timing.owner_lease).await {
        Ok(incarnation) => {
            tracing::info!(incarnation = incarnation.0, "the lease is held");
            // The database's clock comes with the first renewal; the own one differs little.
            let clock = clock::now().wall;
            Input::Opened {
                sent_at,
                incarnation,
                clock,
            }
        }
        Err(error) => {
            tracing::warn!(error = %chain(&error), "no lease yet");
            Input::Unreachable
        }
    }
}

async fn renew(engine: Arc<Engine>, of: Incarnation) -> Input {
    let sent_at = clock::now().mono;
    match engine.store.renew(of, engine.timing.owner_lease).await {
        Ok(answer) => Input::Renewed {
            sent_at,
            incarnation: of,
            answer,
            known: engine.in_flight.known(),
        },
        Err(error) => {
            tracing::warn!(error = %chain(&error), "the lease was not renewed");
            Input::Unreachable
        }
    }
}

/// Others' deaths are found again at the next renewal: an error here is no news for the lease.
async fn declare_dead(engine: Arc<Engine>, of: Incarnation) -> Input {
    match engine.store.declare_dead(of).await {
        Ok(dead) => {
            for one in dead {
                let incarnation = one.incarnation.0;
                tracing::info!(instance = one.instance, incarnation, "declared dead");
            }
        }
        Err(error) => tracing::debug!(%error, "nobody was declared dead"),
    }
    Input::Woke
}

async fn hand_back(
    engine: Arc<Engine>,
    of: Incarnation,
    strays: Vec<(TransactionId, Fence)>,
) -> Input {
    tracing::warn!(
        rows = strays.len(),
        "rows stored as run here that nothing runs"
    );
    for _ in &strays {
        engine.meter.count(STRAYS);
    }
    if let Err(error) = engine.store.hand_back(of, &strays).await {
        tracing::debug!(%error, "strays were not handed back");
    }
    Input::Woke
}

async fn close(engine: Arc<Engine>, of: Incarnation) -> Input {
    match engine.store.close_lease(of).await {
        Ok(0) => Input::Closed,
        Ok(released) => {
            tracing::info!(released, "what still ran here goes on elsewhere");
            Input::Closed
        }
        Err(error) => {
            tracing::warn!(error = %chain(&error), "the lease was not closed");
            Input::Unreachable
        }
    }
}
