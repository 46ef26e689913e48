//! Looking for transactions: drives the machine that decides when and for how many, claims, and
//! launches what was claimed.
//!
//! Decides nothing. The machine's facts that depend on time (ranges, lease, slots) are told again
//! whenever they changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use ring_core::{
    id::{SagaName, TargetName, TransactionId},
    lookout::{Input, Lookout, Order},
    machine::Machine as _,
    store::{Backlog, Claim, Look},
    token::Range,
};
use ring_shell::clock;
use tokio::sync::{mpsc, watch};

use super::{
    Engine,
    inflight::{Pending, Room},
    ring::View,
};
use crate::telemetry::{BACKLOG, OLDEST_DUE_SECONDS, POLL_FAILURES, POLL_SECONDS};

/// The longest time between two looks at what depends on time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A person reads it in logs and in what makes the node unready.
const SICK: &str = "looks into the store fail, or nothing may start for as long as a lease lasts";

type Looked = std::pin::Pin<Box<dyn Future<Output = (usize, Input)> + Send>>;

/// What the machine was told last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    ranges: Vec<Range>,
    free: u32,
    suspects: u32,
    rooms: BTreeMap<TargetName, u32>,
    startable: bool,
    draining: bool,
    /// Sagas that have their share: what is told as free is for the others.
    full: BTreeSet<SagaName>,
}

/// Drives the lookout for as long as the engine lives; a node that retries nothing has none.
pub(super) async fn run(
    engine: Arc<Engine>,
    mut view: watch::Receiver<View>,
    health: mpsc::Sender<ring_core::orchestrator::Input>,
) {
    if !engine.config.retry_node {
        return;
    }
    let mut machine = Lookout::new(engine.timing, true, clock::chance());
    let mut lease = engine.lease.changes();
    let mut looks: FuturesUnordered<Looked> = FuturesUnordered::new();
    let mut told = Facts::default();
    // Room that looks under way hold: free for the machine, which counts its looks itself.
    let mut reserved = 0;
    let mut input = Input::Woke;
    let mut orders = Vec::new();
    loop {
        let measured = matches!(input, Input::Looked { .. } | Input::Unreachable { .. });
        machine.handle(clock::now(), input, &mut orders);
        // What is ordered by what was told before is for those that had no share then.
        let mut ordered: Vec<_> = orders.drain(..).map(|o| (o, told.full.clone())).collect();
        let left = engine.in_flight.left();
        let targets = engine.targets.changed();
        for input in told.news(&engine, &view.borrow_and_update(), reserved) {
            machine.handle(clock::now(), input, &mut orders);
        }
        ordered.extend(orders.drain(..).map(|o| (o, told.full.clone())));
        for (order, without) in ordered {
            let room = engine
                .in_flight
                .room(usize::try_from(order.limit).unwrap_or(0));
            reserved += room.len();
            looks.push(Box::pin(look(Arc::clone(&engine), order, room, without)));
        }
        let sick = machine.health(clock::now().mono).sick;
        if measured || sick != engine.is_sick() {
            report(&engine, &machine, &health);
        }
        let sleep = sleep(&engine, &machine, &view.borrow());
        // Without a bus nobody changes the view.
        let changes = view.has_changed().is_ok();
        input = tokio::select! {
            biased;
            Some((room, input)) = looks.next() => {
                reserved -= room;
                input
            }
            _ = view.changed(), if changes => Input::Woke,
            changed = lease.changed() => {
                if changed.is_err() {
                    return;
                }
                Input::Woke
            }
            () = left => Input::Woke,
            () = targets => Input::Woke,
            () = tokio::time::sleep(sleep) => Input::Woke,
        };
    }
}

fn sleep(engine: &Engine, machine: &Lookout, view: &View) -> Duration {
    let now = clock::now();
    let wake = machine
        .wake_at()
        .after(now)
        .map_or(LONGEST_SLEEP, |(d, _)| d);
    let window = view
        .until
        .map_or(LONGEST_SLEEP, |until| until.since(now.wall));
    // Past its end, a window has nothing more to say.
    let window = if window.is_zero() {
        LONGEST_SLEEP
    } else {
        window
    };
    let targets = engine.targets.wakes_in(now.mono).unwrap_or(LONGEST_SLEEP);
    wake.min(window).min(targets).min(LONGEST_SLEEP)
}

impl Facts {
    fn news(&mut self, engine: &Engine, view: &View, reserved: usize) -> Vec<Input> {
        let now = clock::now();
        let shares = engine.in_flight.shares();
        let free = engine.in_flight.free() + reserved;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let new = Self {
            ranges: view.claimable(now.wall).to_vec(),
            free: count(free.min(shares.left)),
            suspects: count(engine.in_flight.suspects()),
            rooms: engine.targets.rooms(now.mono),
            startable: engine.lease.incarnation().is_some(),
            draining: engine.lease.is_draining() || engine.superseded.is_cancelled(),
            full: shares.full,
        };
        let mut news = Vec::new();
        if new.draining && !self.draining {
            news.push(Input::Drained);
        }
        if new.suspects != self.suspects {
            news.push(Input::Suspects(new.suspects));
        }
        if new.free != self.free {
            let total = count(engine.in_flight.capacity());
            let free = new.free;
            news.push(Input::Slots { free, total });
        }
        if new.rooms != self.rooms {
            news.push(Input::Waiting(new.rooms.clone()));
        }
        if new.ranges != self.ranges {
            news.push(Input::RangesChanged(new.ranges.clone()));
        }
        if new.startable != self.startable {
            let startable = new.startable;
            news.push(Input::Lease { startable });
        }
        *self = new;
        news
    }
}

/// One look; answers how much room it was given, too.
async fn look(
    engine: Arc<Engine>,
    order: Order,
    room: Vec<Room>,
    without: BTreeSet<SagaName>,
) -> (usize, Input) {
    let given = room.len();
    let number = order.look;
    let not_asked = Input::NotAsked { look: number };
    let Some(incarnation) = engine.lease.incarnation() else {
        return (given, not_asked);
    };
    if room.is_empty() {
        return (given, not_asked);
    }
    let pending: Vec<Pending> = room.iter().map(|_| engine.in_flight.pending()).collect();
    // Looked at after the nonces are announced: a drain waits for those, and only for those.
    if engine.lease.is_draining() {
        return (given, not_asked);
    }
    let way = way(&order.rows);
    let claim = Claim {
        look: order.rows,
        nonces: pending.iter().map(Pending::nonce).collect(),
        suspects: order.suspects,
        without,
    };
    let sent_at = clock::now().mono;
    let ranges = match &claim.look {
        Look::Due { ranges } => ranges.clone(),
        Look::Orphans | Look::Overdue { .. } | Look::Waiting { .. } => Vec::new(),
    };
    let answer = engine.store.claim(incarnation, &claim).await;
    engine
        .meter
        .took(POLL_SECONDS, clock::now().mono.since(sent_at));
    match answer {
        Ok(claims) => {
            let claimed = u32::try_from(claims.rows.len()).unwrap_or(u32::MAX);
            engine.launch_all(incarnation, claims.rows, room, way);
            drop(pending);
            engine.met(claims.disabled, claims.quarantined).await;
            let backlog = engine.backlog(ranges).await;
            let look = number;
            let looked = Input::Looked {
                look,
                claimed,
                backlog,
            };
            (given, looked)
        }
        Err(error) => {
            // What it may have claimed all the same shows as strays at the next renewals.
            engine.meter.count(POLL_FAILURES);
            tracing::debug!(%error, way, "a look was not answered");
            (given, Input::Unreachable { look: number })
        }
    }
}

impl Engine {
    fn is_sick(&self) -> bool {
        self.polled.borrow().is_some_and(|health| health.sick)
    }

    /// Why the node is sick, when it is.
    pub(super) fn sick(&self) -> Option<&'static str> {
        self.is_sick().then_some(SICK)
    }

    /// Ends that a look met on its way.
    async fn met(&self, disabled: Vec<TransactionId>, quarantined: Vec<TransactionId>) {
        let ids: Vec<TransactionId> = disabled.into_iter().chain(quarantined).collect();
        if ids.is_empty() {
            return;
        }
        for id in &ids {
            self.waits.ended(*id, None);
        }
        match self.store.outcomes(&ids).await {
            Ok(ends) => {
                for end in ends {
                    self.announce_met(end).await;
                }
            }
            Err(error) => tracing::warn!(%error, ?ids, "have ended, and nobody could be told how"),
        }
    }

    /// Counted for the node's own ranges only, and no more often than heartbeats tell it.
    async fn backlog(&self, ranges: Vec<Range>) -> Option<Backlog> {
        let now = clock::now().mono;
        let due = *self.backlog_due.borrow() <= now;
        if ranges.is_empty() || !due {
            return None;
        }
        self.backlog_due
            .send_replace(now.plus(self.timing.heartbeat / 2));
        self.store.backlog(&ranges).await.ok()
    }
}

fn way(look: &Look) -> &'static str {
    match look {
        Look::Due { .. } => "due",
        Look::Orphans => "orphans",
        Look::Overdue { .. } => "overdue",
        Look::Waiting { .. } => "waiting",
    }
}

/// What heartbeats and metrics tell of the looks.
fn report(engine: &Engine, machine: &Lookout, ring: &mpsc::Sender<ring_core::orchestrator::Input>) {
    let health = machine.health(clock::now().mono);
    #[expect(clippy::cast_precision_loss, reason = "a metric")]
    engine.meter.set(BACKLOG, health.backlog as f64);
    let oldest = Duration::from_millis(health.oldest_due_ms);
    engine.meter.set(OLDEST_DUE_SECONDS, oldest.as_secs_f64());
    let before = engine.polled.send_replace(Some(health));
    match (before.is_some_and(|b| b.sick), health.sick) {
        (false, true) => tracing::warn!("{SICK}"),
        (true, false) => tracing::info!("the store answers again, and transactions may start"),
        (true, true) | (false, false) => {}
    }
    // A full queue means that a newer measurement comes soon anyway.
    let told = ring.try_send(ring_core::orchestrator::Input::Measured(health));
    tracing::trace!(told = told.is_ok(), "measured");
}
