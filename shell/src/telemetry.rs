//! Every metric's name in one list, the labels that all of them carry, and (features) where logs
//! and numbers go.
//!
//! Decides names and labels. Libraries only count through the `metrics` facade; recorders and
//! subscribers are installed by binaries.

use std::sync::Arc;

use metrics::{Label, SharedString, counter, gauge, histogram};
use ring_core::{id::Scope, wire::Role};

#[cfg(feature = "telemetry")]
mod log;
#[cfg(feature = "http")]
mod recorder;

#[cfg(feature = "telemetry")]
pub use log::{Format, LogError, install_log};
#[cfg(feature = "http")]
pub use recorder::{Numbers, install_recorder};

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its name ends in `_total`.
    Counter,
    /// A value now.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it says, with its unit and its own labels.
    pub says: &'static str,
}

macro_rules! metrics_list {
    ($($(#[$doc:meta])* $id:ident: $kind:ident $name:literal, $says:literal;)*) => {
        $(
            #[doc = $says]
            pub const $id: Metric = Metric { name: $name, kind: Kind::$kind, says: $says };
        )*
        /// All metrics of the ring, in this order.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics_list! {
    MESSAGES_DROPPED: Counter "ringsaga_ring_messages_dropped_total",
        "Messages dropped, by reason: garbled, oversized, version, subject, disconnected, full, unsent";
    MESSAGES_RECEIVED: Counter "ringsaga_ring_messages_received_total",
        "Messages of the contract received, by kind: published, event, asked, overheard, answered";
    MESSAGES_PUBLISHED: Counter "ringsaga_ring_messages_published_total",
        "Windows, probes and events handed to the NATS client";
    REQUESTS: Counter "ringsaga_ring_requests_total",
        "Requests asked, by result: ok, no_responders, timed_out, garbled";
    REQUEST_SECONDS: Histogram "ringsaga_ring_request_seconds",
        "Seconds from a request to its answer";
    BUS_CONNECTED: Gauge "ringsaga_ring_nats_connected",
        "1 while NATS is connected, else 0";
    BUS_RECONNECTS: Counter "ringsaga_ring_nats_reconnects_total",
        "Connections to NATS after the first";
    BUS_ERRORS: Counter "ringsaga_ring_nats_errors_total",
        "Errors told by the NATS server or client, by reason: permission, authorization, slow_consumer, other";
    STALLS: Counter "ringsaga_ring_stalls_total",
        "Wakes that came over a second late: a blocked runtime, a paused process, a suspend";
    REGISTRY_SECONDS: Histogram "ringsaga_ring_registry_seconds",
        "Seconds an order to Redis took";
    REGISTRY_UNREACHABLE: Counter "ringsaga_ring_registry_unreachable_total",
        "Orders to Redis that got no answer";
    LEADER: Gauge "ringsaga_ring_leader",
        "1 on the leading master, else 0";
    TERM: Gauge "ringsaga_ring_term",
        "The master's term";
    DEGRADED: Gauge "ringsaga_ring_degraded",
        "1 while something needed is gone and the role goes on without it, else 0";
    MEMBERS: Gauge "ringsaga_ring_members",
        "Live members: a master's slaves, a slave's orchestrators";
    FROZEN_SHARE: Gauge "ringsaga_ring_frozen_share",
        "Frozen share of the ring in the current window, 0 to 1, the largest of all services";
    CLOCK_OFFSET: Gauge "ringsaga_ring_clock_offset_seconds",
        "Own clock against the reference: Redis for a master, the master for a slave";
    WINDOWS_GRANTED: Gauge "ringsaga_ring_grants",
        "Grants held for the current window";
}

/// Counts with the labels region, cluster and role, and never an id: labels stay few.
#[derive(Clone, Debug)]
pub struct Meter {
    labels: Vec<Label>,
}

impl Meter {
    /// For one role in a scope.
    #[must_use]
    pub fn new(scope: &Scope, role: Role) -> Self {
        Self {
            labels: vec![
                Label::new("region", shared(scope.region.as_str())),
                Label::new("cluster", shared(scope.cluster.as_str())),
                Label::from_static_parts("role", role_name(role)),
            ],
        }
    }

    /// Adds one.
    pub fn count(&self, metric: Metric) {
        counter!(metric.name, self.labels.clone()).increment(1);
    }

    /// Counts many at once.
    pub fn add(&self, metric: Metric, many: u64) {
        counter!(metric.name, self.labels.clone()).increment(many);
    }

    /// Adds one with one more label; its values must be few and known.
    pub fn count_as(&self, metric: Metric, label: &'static str, value: &'static str) {
        let mut labels = self.labels.clone();
        labels.push(Label::from_static_parts(label, value));
        counter!(metric.name, labels).increment(1);
    }

    /// Sets a value.
    pub fn set(&self, metric: Metric, value: f64) {
        gauge!(metric.name, self.labels.clone()).set(value);
    }

    /// Records a duration in seconds.
    pub fn took(&self, metric: Metric, duration: std::time::Duration) {
        histogram!(metric.name, self.labels.clone()).record(duration.as_secs_f64());
    }
}

/// Labels are cloned at every count: so they are not copied.
fn shared(text: &str) -> SharedString {
    SharedString::from_shared(Arc::from(text))
}

/// The role's word in names and labels.
#[must_use]
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Master => "master",
        Role::Slave => "slave",
        Role::Orchestrator => "orchestrator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_and_are_unique() {
        let mut names: Vec<_> = METRICS.iter().map(|m| m.name).collect();
        for metric in METRICS {
            assert!(metric.name.starts_with("ringsaga_ring_"), "{metric:?}");
            let total = metric.name.ends_with("_total");
            assert_eq!(metric.kind == Kind::Counter, total, "{metric:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}
