//! The slave machine's words and what is seen of it.

use ring_core::{
    bus::Told,
    slave::{Input, Order, Slave},
    time::Now,
    window::Grant,
};
use ring_shell::{
    drive::{Perform, Step},
    telemetry::{CLOCK_OFFSET, Meter, WINDOWS_GRANTED},
    view::Publisher,
};

/// A slave as its loop last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Why it is not ready; empty when it is.
    pub reasons: Vec<String>,
    /// Its own grants that are not over.
    pub grants: Vec<Grant>,
    /// What it granted out of them.
    pub issued: Vec<Grant>,
    /// Its clock less the master's, in milliseconds.
    pub clock_offset_ms: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct Ports {
    view: Publisher<Seen>,
    meter: Meter,
    was_ready: bool,
}

impl Ports {
    pub(crate) fn new(view: Publisher<Seen>, meter: Meter) -> Self {
        Self {
            view,
            meter,
            was_ready: false,
        }
    }
}

impl Perform for Ports {
    type Machine = Slave;

    fn started(&self) -> Input {
        Input::Started
    }

    fn woke(&self) -> Input {
        Input::Woke
    }

    fn drained(&self) -> Input {
        Input::Drained
    }

    fn told(&self, told: Told) -> Input {
        Input::Bus(told)
    }

    fn perform(&mut self, order: Order) -> Step {
        match order {
            Order::Bus(op) => Step::Bus(op),
            Order::Stop(end) => Step::Stop(end),
        }
    }

    fn observe(&mut self, slave: &Slave, now: Now) {
        let seen = Seen {
            reasons: slave.ready(now).into_iter().map(str::to_owned).collect(),
            grants: slave.grants(now).cloned().collect(),
            issued: slave.issued(now).cloned().collect(),
            clock_offset_ms: slave.clock_offset_ms(),
        };
        if seen.reasons.is_empty() != self.was_ready {
            self.was_ready = seen.reasons.is_empty();
            if self.was_ready {
                tracing::info!("ready");
            } else {
                tracing::warn!(reasons = seen.reasons.join("; "), "not ready");
            }
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts and milliseconds are small"
        )]
        {
            self.meter.set(WINDOWS_GRANTED, seen.grants.len() as f64);
            if let Some(ms) = seen.clock_offset_ms {
                self.meter.set(CLOCK_OFFSET, ms as f64 / 1000.0);
            }
        }
        self.view.publish(now, seen);
    }
}
