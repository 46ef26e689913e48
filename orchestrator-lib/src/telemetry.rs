//! Every metric of transactions, in one list. Counted through the `metrics` facade: a service
//! keeps its own recorder. Labels are region, cluster, role and the few words named here; never an
//! id or a saga's name.

pub use ring_shell::telemetry::{Kind, Metric};

macro_rules! metrics_list {
    ($($id:ident: $kind:ident $name:literal, $says:literal;)*) => {
        $(
            #[doc = $says]
            pub const $id: Metric = Metric { name: $name, kind: Kind::$kind, says: $says };
        )*
        /// All metrics of transactions, in this order.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics_list! {
    STARTED: Counter "ringsaga_tx_started_total",
        "Starts asked, by result: new, same, refused, busy";
    CLAIMED: Counter "ringsaga_tx_claimed_total",
        "Transactions claimed, by way: due, orphans, overdue, waiting";
    STOPPED: Counter "ringsaga_tx_stopped_total",
        "Runs that stopped, by result: completed, compensated, terminated, disabled, quarantined, parked, handed_back, lost, unrunnable, refused";
    CALLS: Counter "ringsaga_tx_calls_total",
        "Calls of steps, by result: done, transient, business, persistent, unknown";
    CALLS_HELD: Counter "ringsaga_tx_calls_held_total",
        "Calls not made because of their target, by why: down, busy, budget";
    TARGETS_DOWN: Gauge "ringsaga_tx_targets_down",
        "Targets that fail for every caller here: their transactions wait for them";
    TARGET_CHANGES: Counter "ringsaga_tx_target_changes_total",
        "Targets that went down or came back, by change: down, up";
    CALL_SECONDS: Histogram "ringsaga_tx_call_seconds",
        "Seconds a call took";
    WRITE_SECONDS: Histogram "ringsaga_tx_write_seconds",
        "Seconds until a write was answered, its wait for a batch included";
    POLL_SECONDS: Histogram "ringsaga_tx_poll_seconds",
        "Seconds a look for transactions took";
    POLL_FAILURES: Counter "ringsaga_tx_poll_failures_total",
        "Looks that the store did not answer";
    IN_FLIGHT: Gauge "ringsaga_tx_in_flight",
        "Transactions that run here now";
    BACKLOG: Gauge "ringsaga_tx_backlog",
        "Due transactions in the node's own ranges, as last polled";
    OLDEST_DUE_SECONDS: Gauge "ringsaga_tx_oldest_due_seconds",
        "Age of the oldest due one of them";
    LEASE_HELD: Gauge "ringsaga_tx_lease_held",
        "1 while this process holds its lease in the store, else 0";
    LEASES_LOST: Counter "ringsaga_tx_leases_lost_total",
        "Times this process was declared dead";
    STRAYS: Counter "ringsaga_tx_strays_total",
        "Rows stored as run here that nothing runs, handed back";
    COMMITS: Counter "ringsaga_tx_commits_total",
        "Batches of writes and starts sent to the store";
    COMMIT_ROWS: Counter "ringsaga_tx_commit_rows_total",
        "Writes and starts in those batches";
    COMMITS_AMBIGUOUS: Counter "ringsaga_tx_commits_ambiguous_total",
        "Batches sent again because their answer was lost";
    COMMITS_UNCONFIRMED: Counter "ringsaga_tx_commits_unconfirmed_total",
        "Commits that no synchronous standby confirmed, as Postgres warned";
    RETRY_NODE_MISSING: Gauge "ringsaga_tx_retry_node_missing",
        "1 while the service has transactions waiting and no live retry node, else 0";
    EXECUTOR_MISSING: Gauge "ringsaga_tx_executor_missing",
        "Transactions that wait for code which no live process has";
    ALERTS: Counter "ringsaga_tx_alerts_total",
        "Alerts found in the store, by kind: terminated, irreversible-failed, disabled, quarantined, executor-missing, compensation-failing, restored";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_and_are_unique() {
        let mut names: Vec<_> = METRICS.iter().map(|m| m.name).collect();
        for metric in METRICS {
            assert!(metric.name.starts_with("ringsaga_tx_"), "{metric:?}");
            let total = metric.name.ends_with("_total");
            assert_eq!(metric.kind == Kind::Counter, total, "{metric:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}
