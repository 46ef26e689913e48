//! Values for the statements of people, how many pages each may touch, and the index it must use.
#![allow(clippy::too_many_lines, reason = "a table")]

use super::cases::Case;

const FIRST_ID: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
const LAST_ID: &str = "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid";

pub(crate) fn cases() -> Vec<(&'static str, Case)> {
    let texts = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    let one = "(select id from ringsaga.transaction limit 1)";
    let deed = |more: &[&str]| {
        let first = texts(&[one, "'eu'", "'main'", "1", "'eva'", "'because'"]);
        [first, texts(more)].concat()
    };
    let walk = |from, to| {
        let place = texts(&["'eu'", "'main'", "'walk'", from, to]);
        let any = vec!["null".to_owned(); 12];
        [place, any, texts(&["10000", "50"])].concat()
    };
    vec![
        ("show_more", (texts(&[one]), 50, "wake_of_transaction")),
        ("why", (texts(&[one]), 100, "transaction_pkey")),
        (
            "keyed",
            (
                texts(&["'eu'", "'main'", "'7'", "null", "null"]),
                500,
                "idempotency_pkey",
            ),
        ),
        ("list", (walk(LAST_ID, FIRST_ID), 2_000, "transaction_pkey")),
        (
            "list_oldest",
            (walk(FIRST_ID, LAST_ID), 2_000, "transaction_pkey"),
        ),
        (
            "list_reach",
            (
                texts(&["true", LAST_ID, FIRST_ID, "10000"]),
                11_000,
                "transaction_pkey",
            ),
        ),
        ("op_retry", (deed(&[]), 50, "transaction_")),
        (
            "op_restore",
            (deed(&["'restore'", "1000", "false"]), 50, "transaction_"),
        ),
        (
            "op_skip",
            (deed(&["'n'", "'1'", "'ref'", "1000"]), 100, "transaction_"),
        ),
        ("op_policy", (deed(&["'{}'"]), 50, "transaction_")),
        (
            "op_close",
            (deed(&["'completed'", "'1'", "'ref'"]), 100, "transaction_"),
        ),
        (
            "op_rehome",
            (deed(&["'us'", "'main'"]), 100, "transaction_"),
        ),
        (
            "op_refused",
            (texts(&[one, "'eu'", "'main'"]), 50, "transaction_"),
        ),
        (
            "op_wake",
            (
                texts(&[
                    "gen_random_uuid()",
                    "'signal'",
                    "'{}'",
                    one,
                    "'eu'",
                    "'main'",
                    "'eva'",
                    "'because'",
                ]),
                50,
                "transaction_",
            ),
        ),
        (
            "op_purge",
            (
                texts(&[
                    "'eu'", "'main'", "null", "0", FIRST_ID, "100", "'eva'", "'old'", "'s1'",
                ]),
                3_000,
                "transaction_pkey",
            ),
        ),
        (
            "describe",
            (
                texts(&["'s1'", "1", "'d'", "'{a,b}'"]),
                20,
                "definition_saga_version_digest_key",
            ),
        ),
    ]
}
