//! Every metric that an alert rule names exists.

use std::collections::BTreeSet;

const RULES: &str = include_str!("../../infra/prometheus/rules.yml");

#[test]
fn every_metric_in_the_alert_rules_exists() {
    let metrics = [
        orchestrator_lib::telemetry::METRICS,
        ring_shell::telemetry::METRICS,
        ring_notifier::telemetry::METRICS,
    ];
    let known: BTreeSet<&str> = metrics.concat().iter().map(|metric| metric.name).collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named: BTreeSet<&str> = RULES
        .split(|c| !is_word(c))
        .filter(|word| word.starts_with("ringsaga_"))
        .collect();
    assert!(named.len() > 5, "{named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
