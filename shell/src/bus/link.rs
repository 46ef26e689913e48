//! Whether the connection is up, and what its events mean: one log line a change, one count each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, Event, ServerError};
use ring_core::{bus::Told, time::Mono, wire};
use tokio::sync::{mpsc, watch};

use crate::{
    clock,
    tasks::Spawner,
    telemetry::{BUS_CONNECTED, BUS_ERRORS, BUS_RECONNECTS, Meter},
};

/// How long the client may take to work through a new connection.
const SETTLING: Duration = Duration::from_secs(2);

/// While NATS is not there, it is said again after this.
const REMINDER: Duration = Duration::from_secs(30);

/// Of errors of one kind at most one is logged in this time; all are counted.
const QUIET: Duration = Duration::from_secs(10);

/// A connection younger than this is not left for want of answers: while nobody leads there are
/// none on any server.
const NEW: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(super) struct Link {
    state: Arc<watch::Sender<State>>,
    /// When a server error may be logged again, on the clock for time limits.
    quiet_until: Arc<AtomicU64>,
    /// The same for full subscriptions.
    quiet_when_full: Arc<AtomicU64>,
    /// The same for the client's own errors.
    quiet_when_failing: Arc<AtomicU64>,
    meter: Meter,
}

#[derive(Clone, Debug, Default)]
struct State {
    up: bool,
    /// Counts connections, so that a change too short to be seen is still told.
    ups: u64,
    /// When this connection came up.
    since: Mono,
    /// Its end is wanted.
    closing: bool,
    closed: bool,
    unusable: Option<String>,
}

impl Link {
    pub(super) fn new(meter: Meter) -> Self {
        meter.set(BUS_CONNECTED, 0.0);
        Self {
            state: Arc::new(watch::Sender::new(State::default())),
            quiet_until: Arc::default(),
            quiet_when_full: Arc::default(),
            quiet_when_failing: Arc::default(),
            meter,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state.borrow().up
    }

    /// Whether the connection is up and no longer new: a new one has been chosen just now.
    pub(super) fn is_worn(&self) -> bool {
        let state = self.state.borrow();
        state.up && clock::now().mono.since(state.since) >= NEW
    }

    /// From now on the connection's end is wanted.
    pub(super) fn closing(&self) {
        self.state.send_modify(|state| state.closing = true);
    }

    pub(super) fn unusable(&self) -> Option<String> {
        self.state.borrow().unusable.clone()
    }

    /// Completes when the connection is up.
    pub(super) async fn connected(&self) {
        self.until(|state| state.up).await;
    }

    /// Completes when the connection that is up now has gone.
    pub(super) async fn lost(&self) {
        let ups = self.state.borrow().ups;
        self.until(|state| !state.up || state.ups != ups).await;
    }

    pub(super) async fn closed(&self) {
        self.until(|state| state.closed).await;
    }

    async fn until(&self, reached: impl FnMut(&State) -> bool) {
        // Fails only when the sender is gone, and `self` holds it.
        drop(self.state.subscribe().wait_for(reached).await);
    }

    /// Takes an event of the client. Never waits: a slow callback would lose the next events.
    pub(super) fn noticed(&self, event: &Event) {
        match event {
            Event::Connected => self.state.send_modify(|state| {
                state.up = true;
                state.ups += 1;
                state.since = clock::now().mono;
            }),
            Event::Disconnected => self.state.send_modify(|state| state.up = false),
            Event::Closed => self.state.send_modify(|state| {
                state.up = false;
                state.closed = true;
            }),
            Event::LameDuckMode => tracing::info!("the NATS server is going to stop; moving"),
            Event::Draining => tracing::debug!("NATS connection draining"),
            Event::SlowConsumer(_) => {
                // One event a dropped message: the metric counts them, the log says it now and then.
                self.error("slow_consumer");
                if speaks(&self.quiet_when_full) {
                    tracing::warn!("a NATS subscription is full: its newest messages are dropped");
                }
            }
            Event::ServerError(error) => self.server_error(error),
            Event::ClientError(error) => {
                // One event a try to connect.
                self.error("other");
                if speaks(&self.quiet_when_failing) {
                    tracing::warn!(%error, "NATS client error: it tries again by itself");
                }
            }
        }
    }

    fn server_error(&self, error: &ServerError) {
        let (reason, says) = match error {
            ServerError::AuthorizationViolation => {
                ("authorization", "NATS refuses the credentials")
            }
            ServerError::SlowConsumer(_) => ("slow_consumer", "NATS finds this reader slow"),
            // Only here are refused subscriptions and publishes heard of.
            ServerError::Other(text) if text.to_ascii_lowercase().contains("permissions") => {
                ("permission", "NATS permissions forbid this")
            }
            ServerError::Other(_) => ("other", "NATS server error"),
        };
        self.error(reason);
        if speaks(&self.quiet_until) {
            tracing::error!(%error, "{says}");
        }
    }

    fn error(&self, reason: &'static str) {
        self.meter.count_as(BUS_ERRORS, "reason", reason);
    }

    /// Tells the machine of every change, once the client has subscribed again on the connection.
    pub(super) fn watch(&self, tasks: &Spawner, client: Client, told: mpsc::Sender<Told>) {
        let link = self.clone();
        tasks.spawn(async move {
            let mut changes = link.state.subscribe();
            let (mut was_up, mut ups) = (false, 0);
            // Before the first connection the machine runs already; it must not take itself for
            // connected.
            drop(told.send(Told::Disconnected).await);
            loop {
                let state = changes.borrow_and_update().clone();
                if was_up && (!state.up || state.ups != ups) {
                    link.say_down();
                    drop(told.send(Told::Disconnected).await);
                    was_up = false;
                }
                if state.up && !was_up && link.settled(&client).await {
                    link.say_up(&client, ups > 0);
                    drop(told.send(Told::Connected).await);
                    (was_up, ups) = (true, state.ups);
                } else if state.up && !was_up {
                    continue;
                }
                let changed = tokio::time::timeout(REMINDER, changes.changed()).await;
                if changed.is_err() && !was_up {
                    tracing::warn!("NATS can't be reached; trying on");
                }
            }
        });
    }

    // The client's own numbers are right only after it has worked through the new connection.
    async fn settled(&self, client: &Client) -> bool {
        let settled = tokio::time::timeout(SETTLING, client.flush()).await;
        if !matches!(settled, Ok(Ok(()))) {
            // Gone again, or stuck: the pings will tell.
            tokio::time::sleep(Duration::from_millis(10)).await;
            return false;
        }
        let most = client.max_payload();
        if most < wire::MAX_BYTES {
            let reason = format!(
                "the NATS server takes messages of {most} bytes, {} are needed: raise max_payload",
                wire::MAX_BYTES
            );
            tracing::error!("{reason}");
            self.state
                .send_modify(|state| state.unusable = Some(reason));
        }
        true
    }

    fn say_up(&self, client: &Client, again: bool) {
        self.meter.set(BUS_CONNECTED, 1.0);
        if again {
            self.meter.count(BUS_RECONNECTS);
        }
        let server = client.try_server_info().unwrap_or_default();
        tracing::info!(
            server = server.server_name,
            version = server.version,
            "NATS connected"
        );
    }

    fn say_down(&self) {
        self.meter.set(BUS_CONNECTED, 0.0);
        if self.state.borrow().closing {
            return;
        }
        tracing::warn!("NATS connection lost; publishes are dropped until it is back");
    }
}

/// Whether something may be logged again, having been quiet for [`QUIET`] since.
fn speaks(quiet_until: &AtomicU64) -> bool {
    let now = clock::now().mono;
    let may = now.0 >= quiet_until.load(Ordering::Relaxed);
    if may {
        quiet_until.store(now.plus(QUIET).0, Ordering::Relaxed);
    }
    may
}
