//! The notifier's numbers. Labels are region, cluster, role, the hook's name (few, from the
//! configuration) and a result.

use metrics::{Label, counter};
use orchestrator_lib::telemetry::{Kind, Metric};
use ring_core::id::Scope;

/// Alerts by what became of an attempt.
pub const DELIVERIES: Metric = Metric {
    name: "ringsaga_tx_alert_deliveries_total",
    kind: Kind::Counter,
    says: "Attempts to deliver an alert, by hook and result: delivered, failed, given_up",
};

/// All of them.
pub const METRICS: &[Metric] = &[DELIVERIES];

/// Counts deliveries of one hook.
pub(crate) fn count(scope: &Scope, hook: &str, result: &'static str, many: usize) {
    let labels = vec![
        Label::new("region", scope.region.to_string()),
        Label::new("cluster", scope.cluster.to_string()),
        Label::from_static_parts("role", "notifier"),
        Label::new("hook", hook.to_owned()),
        Label::from_static_parts("result", result),
    ];
    counter!(DELIVERIES.name, labels).increment(many as u64);
}
