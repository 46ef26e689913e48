//! The master machine's words, its registry, and what is seen of it.

use std::time::Duration;

use ring_core::{
    bus,
    master::{Input, Master, Order},
    registry::Told,
    time::{Mono, Now},
    window::Term,
    wire::MasterStatus,
};
use ring_shell::{
    drive::{Perform, Step},
    telemetry::{CLOCK_OFFSET, DEGRADED, FROZEN_SHARE, LEADER, MEMBERS, Meter, TERM},
    view::Publisher,
};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::registry::Orders;

/// A status costs more than an input: it is taken again only after this.
const STATUS: Duration = Duration::from_secs(1);

/// A master as its loop last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Why it could not do its work; empty when it could.
    pub reasons: Vec<String>,
    /// Its term while it leads.
    pub leading: Option<Term>,
    /// Why it works with less than it should have.
    pub degraded: Option<String>,
    /// Its view of the ring, at most a second old; `None` until it leads.
    pub status: Option<MasterStatus>,
}

#[derive(Debug)]
pub(crate) struct Ports {
    registry: Option<(Orders, UnboundedReceiver<Told>)>,
    view: Publisher<Seen>,
    meter: Meter,
    last: Option<Seen>,
    status_at: Mono,
}

impl Ports {
    pub(crate) fn new(
        registry: Option<(Orders, UnboundedReceiver<Told>)>,
        view: Publisher<Seen>,
        meter: Meter,
    ) -> Self {
        Self {
            registry,
            view,
            meter,
            last: None,
            status_at: Mono::default(),
        }
    }

    fn look(&mut self, master: &Master, now: Now) -> Seen {
        let leading = master.leading();
        let last = self.last.as_ref();
        let old = now.mono.since(self.status_at) >= STATUS
            || last.is_none_or(|seen| seen.leading != leading);
        let status = if leading.is_none() {
            None
        } else if old {
            self.status_at = now.mono;
            Some(master.status(now))
        } else {
            last.and_then(|seen| seen.status.clone())
        };
        Seen {
            reasons: master.ready(now).into_iter().map(str::to_owned).collect(),
            leading,
            degraded: master.degraded().map(str::to_owned),
            status,
        }
    }

    // One line a change: an outage must not flood the log.
    fn say(&self, seen: &Seen) {
        let last = self.last.as_ref();
        let was_leading = last.and_then(|seen| seen.leading);
        if was_leading != seen.leading {
            match seen.leading {
                Some(term) => tracing::info!(%term, "leading"),
                None => tracing::info!("leading no longer"),
            }
        }
        let was_degraded = last.and_then(|seen| seen.degraded.as_deref());
        if was_degraded != seen.degraded.as_deref() {
            match &seen.degraded {
                Some(reason) => tracing::warn!(reason, "degraded"),
                None => tracing::info!("no longer degraded"),
            }
        }
        let was_ready = last.is_some_and(|seen| seen.reasons.is_empty());
        if was_ready != seen.reasons.is_empty() {
            if was_ready {
                tracing::warn!(reasons = seen.reasons.join("; "), "not ready");
            } else {
                tracing::info!("ready");
            }
        }
    }

    fn measure(&self, seen: &Seen) {
        let flag = |on: bool| if on { 1.0 } else { 0.0 };
        self.meter.set(LEADER, flag(seen.leading.is_some()));
        self.meter.set(DEGRADED, flag(seen.degraded.is_some()));
        let Some(status) = &seen.status else {
            // Only the leader counts them, else a sum over masters would count twice.
            self.meter.set(FROZEN_SHARE, 0.0);
            self.meter.set(MEMBERS, 0.0);
            return;
        };
        let frozen = status.cuts.iter().map(|cut| cut.frozen_ppm).max();
        let frozen = f64::from(frozen.unwrap_or(0)) / 1_000_000.0;
        self.meter.set(FROZEN_SHARE, frozen);
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        {
            self.meter.set(TERM, status.term.number as f64);
            self.meter.set(MEMBERS, status.slaves.len() as f64);
            if let Some(ms) = status.clock_offset_ms {
                self.meter.set(CLOCK_OFFSET, ms as f64 / 1000.0);
            }
        }
    }
}

impl Perform for Ports {
    type Machine = Master;

    fn started(&self) -> Input {
        Input::Started
    }

    fn woke(&self) -> Input {
        Input::Woke
    }

    fn drained(&self) -> Input {
        Input::Drained
    }

    fn told(&self, told: bus::Told) -> Input {
        Input::Bus(told)
    }

    fn perform(&mut self, order: Order) -> Step {
        match order {
            Order::Bus(op) => return Step::Bus(op),
            Order::Stop(end) => return Step::Stop(end),
            Order::Registry(op) => {
                // A master that is alone orders nothing of it.
                if let Some((orders, _)) = &self.registry {
                    orders.perform(op);
                }
            }
        }
        Step::Done
    }

    async fn completed(&mut self) -> Input {
        let told = match &mut self.registry {
            Some((_, told)) => told.recv().await,
            None => None,
        };
        match told {
            Some(told) => Input::Registry(told),
            // The queue ends with the role's tasks, and the loop before them.
            None => std::future::pending().await,
        }
    }

    fn observe(&mut self, master: &Master, now: Now) {
        let seen = self.look(master, now);
        self.say(&seen);
        if self.last.as_ref() != Some(&seen) {
            self.measure(&seen);
        }
        self.view.publish(now, seen.clone());
        self.last = Some(seen);
    }
}
