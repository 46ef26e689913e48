//! The statements, one a file; each file says why it looks the way it does.

/// Plans are pinned: with the statistics of a fresh table the planner takes hash joins and
/// sequential scans and keeps them (a third of the speed). `tests/store_plans.rs` looks at them.
pub const PINS: &str = "set enable_seqscan = off; set enable_hashjoin = off; \
    set enable_mergejoin = off; set enable_material = off; set enable_bitmapscan = off; \
    set jit = off; ";

/// Reads a statement's file, or puts it together from pieces that others share.
macro_rules! statement {
    ($file:literal) => { include_str!(concat!("../../sql/", $file, ".sql")) };
    ($file:literal $($piece:literal)+) => {
        concat!($(include_str!(concat!("../../sql/", $piece, ".sql"))),+)
    };
}

/// Lists the statements.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $file:literal $(of $($piece:literal)+)?;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = statement!($file $($($piece)+)?);)*

        /// Every statement with its file's name, for the test that looks at their plans.
        pub const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

statements! {
    ADOPT = "adopt";
    ALERT_AGAIN = "alert_again";
    ALERT_DELIVERED = "alert_delivered";
    ALERT_FAILED = "alert_failed";
    ALERT_FORGET = "alert_forget";
    ALERT_LIST = "alert_list";
    ALERT_RAISE_COMPENSATING = "alert_raise_compensating";
    ALERT_RAISE_MISSING = "alert_raise_missing";
    ALERT_SPREAD = "alert_spread";
    ALERT_TAKE = "alert_take";
    ALERT_TELL = "alert_tell";
    BACKLOG = "backlog";
    CHILD_START = "child_start";
    CHILD_UNDO = "child_undo" of "wake/child" "wake/kept" "wake/child_answer";
    CLAIM_DUE = "claim_due" of "claim/due" "claim/claimed";
    CLAIM_ORPHANS = "claim_orphans" of "claim/orphans" "claim/claimed";
    CLAIM_OVERDUE = "claim_overdue" of "claim/overdue" "claim/claimed";
    CLAIM_WAITING = "claim_waiting" of "claim/waiting" "claim/claimed";
    /// Writes and starts together.
    COMMIT = "commit" of "commit/straight" "commit/moved" "commit/started"
        "commit/written_answer" "commit/both_answer";
    COUNTS = "counts";
    DEFINE = "define";
    DESCRIBE = "describe";
    FATE = "fate";
    HAND_BACK = "hand_back";
    HEAR = "hear";
    INPUTS = "inputs";
    KEYED = "keyed";
    LIST = "list" of "list/columns" "list/newest" "list/filters" "list/newest_first";
    LIST_OLDEST = "list_oldest"
        of "list/columns" "list/oldest" "list/filters" "list/oldest_first";
    LIST_REACH = "list_reach";
    LOG = "log";
    MISSING_PUSH = "missing_push";
    MISSING_REPORT = "missing_report";
    OP_CLOSE = "op_close";
    OP_POLICY = "op_policy";
    OP_PURGE = "op_purge";
    OP_REFUSED = "op_refused";
    OP_REHOME = "op_rehome";
    OP_RESTORE = "op_restore";
    OP_RETRY = "op_retry";
    OP_SKIP = "op_skip";
    OP_WAKE = "op_wake" of "wake/order" "wake/kept" "wake/order_answer";
    OUTCOME = "outcome";
    OWNER_BURY = "owner_bury";
    OWNER_CLOSE = "owner_close";
    OWNER_FORGET = "owner_forget";
    OWNER_OPEN = "owner_open";
    OWNER_RELEASE = "owner_release";
    OWNER_RENEW = "owner_renew";
    OWNER_RUNNING = "owner_running";
    PROBE_READ = "probe_read";
    PROBE_SET = "probe_set";
    RETRY_NODES = "retry_nodes";
    SHOW = "show";
    SHOW_MORE = "show_more";
    SILENT = "silent";
    STANDING = "standing";
    START_IN = "start_in";
    START_READ = "start_read";
    TAKE_STARTED = "take_started";
    WAITED_FOR = "waited_for";
    WAKE = "wake" of "wake/open" "wake/kept" "wake/open_answer";
    WAKES = "wakes";
    WHY = "why";
    /// Writes alone.
    WRITE = "write" of "commit/straight" "commit/moved" "commit/written_answer";
    /// The same, but a row that somebody else holds is left out at once.
    WRITE_AROUND = "write_around" of "commit/around" "commit/moved" "commit/written_answer";
}

#[cfg(test)]
mod tests {
    use ring_core::store::SUSPECT_FROM;

    use super::*;

    #[test]
    fn suspects_begin_where_the_core_says() {
        let mut seen = 0;
        for (name, statement) in ALL {
            for comparison in ["deaths >= ", "deaths < "] {
                for (at, found) in statement.match_indices(comparison) {
                    let rest = &statement[at + found.len()..];
                    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
                    // Parameters are told; "< 1" asks whether this death makes it a suspect.
                    if !number.is_empty() && (comparison, number.as_str()) != ("deaths < ", "1") {
                        assert_eq!(number, SUSPECT_FROM.to_string(), "{name}");
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 0);
    }
}
