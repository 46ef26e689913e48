//! Values for every statement of the engine, how many pages it may touch, and the index it must use.
#![allow(clippy::too_many_lines, reason = "a table")]

use std::collections::BTreeMap;

use super::{alert_cases, operator_cases};

/// Values, pages at most, index.
pub(crate) type Case = (Vec<String>, u64, &'static str);

/// A hundred of the own running rows.
fn own(column: &str) -> String {
    format!(
        "array(select {column} from (select * from ringsaga.transaction where owner = 1 \
         order by id limit 100) t)"
    )
}

/// A hundred new things.
fn new(column: &str) -> String {
    format!("array(select {column} from generate_series(1, 100) g)")
}

/// A step done in each of a hundred of the own running rows.
const WRITES: &str = "array(select row(id, epoch, nonce, 4, direction, seq, null, 'running', \
    direction, seq + 1, null, 0, false, null, false, true, null, null, 'step', direction, seq, \
    'done', null, false, '1', null, 1, now(), now())::ringsaga.write_1 \
    from (select * from ringsaga.transaction where owner = 1 order by id limit 100) t)";

/// A hundred new transactions.
const STARTS: &str = "array(select row(gen_random_uuid(), g, 's1', 1, 'new' || g, '{}', 3600000, \
    gen_random_uuid())::ringsaga.start_1 from generate_series(1, 100) g)";

/// Values for every statement, how many pages it may touch, and the index it must use.
pub(crate) fn cases() -> BTreeMap<&'static str, Case> {
    let texts = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    let scope = texts(&["'eu'", "'main'", "'orders'"]);
    let twelfth = texts(&["'{-9223372036854775808}'", "'{-7686143364045646508}'"]);
    let claim = [
        texts(&["1"]),
        scope.clone(),
        texts(&["'{1,2,3,4,5}'"]),
        vec![new("gen_random_uuid()")],
        texts(&["true"]),
    ]
    .concat();
    let with = |base: &[String], more: &[&str]| [base.to_vec(), texts(more)].concat();
    let commit = [texts(&[WRITES]), with(&scope, &["1", STARTS])].concat();
    let keys = ["'s1'::text", "'new' || g", "'{}'::text"].map(new).to_vec();
    let one = "(select id from ringsaga.transaction limit 1)";
    let engine = [
        (
            "claim_due",
            (
                [claim.clone(), twelfth.clone()].concat(),
                3_000,
                "transaction_due",
            ),
        ),
        (
            "claim_waiting",
            (
                [claim.clone(), twelfth.clone(), texts(&["'payment'"])].concat(),
                3_000,
                "transaction_waiting",
            ),
        ),
        (
            "waited_for",
            (
                with(&scope, &["array['payment', 'stock', 'post']"]),
                100,
                "transaction_waiting",
            ),
        ),
        (
            "claim_overdue",
            (with(&claim, &["10000"]), 4_000, "transaction_overdue"),
        ),
        (
            "claim_orphans",
            (with(&claim, &["5"]), 4_000, "transaction_owned"),
        ),
        (
            "adopt",
            (
                vec!["1".into(), new("gen_random_uuid()")],
                2_000,
                "transaction_owned",
            ),
        ),
        (
            "missing_push",
            (
                [texts(&["1"]), scope.clone(), texts(&["100", "5"])].concat(),
                5_000,
                "transaction_overdue",
            ),
        ),
        (
            "missing_report",
            (scope.clone(), 6_000, "transaction_overdue"),
        ),
        (
            "backlog",
            (
                [scope.clone(), twelfth, texts(&["1000"])].concat(),
                1_500,
                "transaction_due",
            ),
        ),
        ("write", (texts(&[WRITES]), 2_500, "transaction_pkey")),
        (
            "write_around",
            (texts(&[WRITES]), 3_000, "transaction_pkey"),
        ),
        ("silent", (texts(&[WRITES]), 600, "transaction_pkey")),
        ("commit", (commit, 4_000, "idempotency_pkey")),
        (
            "start_read",
            ([scope.clone(), keys].concat(), 1_000, "idempotency_pkey"),
        ),
        ("inputs", (vec![own("id")], 600, "payload_pkey")),
        (
            "start_in",
            (
                [
                    texts(&["(select store_id from ringsaga.store)"]),
                    scope.clone(),
                    texts(&[
                        "gen_random_uuid()",
                        "7",
                        "'s1'",
                        "1",
                        "'new'",
                        "'1'",
                        "1000",
                    ]),
                ]
                .concat(),
                60,
                "Index",
            ),
        ),
        (
            "take_started",
            (
                [
                    texts(&["1"]),
                    scope.clone(),
                    texts(&["'{1}'", "gen_random_uuid()", one]),
                ]
                .concat(),
                60,
                "transaction_pkey",
            ),
        ),
        (
            "fate",
            (
                texts(&[one, "1", "gen_random_uuid()", "1"]),
                50,
                "transaction_pkey",
            ),
        ),
        ("wakes", (vec![own("id")], 600, "wake_of_transaction")),
        (
            "child_start",
            (
                [
                    scope.clone(),
                    texts(&[
                        one,
                        "1",
                        "gen_random_uuid()",
                        "'step'",
                        "gen_random_uuid()",
                        "7",
                        "'s1'",
                        "1",
                        "'child'",
                        "'{}'",
                        "1000",
                    ]),
                ]
                .concat(),
                100,
                "idempotency_pkey",
            ),
        ),
        (
            "child_undo",
            (
                [
                    texts(&["gen_random_uuid()", "'cancel'", "'{}'"]),
                    scope.clone(),
                    texts(&["'s1'", "'k1'", "1000"]),
                ]
                .concat(),
                100,
                "idempotency_pkey",
            ),
        ),
        ("hear", (texts(&[one]), 50, "transaction_pkey")),
        ("log", (vec![own("id")], 1_000, "step_pkey")),
        ("outcome", (vec![own("id")], 1_000, "transaction_pkey")),
        (
            "hand_back",
            (
                [texts(&["1"]), ["id", "epoch", "nonce"].map(own).to_vec()].concat(),
                3_500,
                "transaction_pkey",
            ),
        ),
        ("owner_bury", (with(&scope, &["1"]), 50, "owner_living")),
        ("owner_renew", (texts(&["1", "6000"]), 50, "owner_pkey")),
        ("owner_running", (texts(&["1"]), 2_000, "transaction_owned")),
        ("owner_forget", (scope.clone(), 50, "owner_dead")),
        (
            "owner_release",
            (texts(&["1"]), 15_000, "transaction_owned"),
        ),
        ("owner_close", (texts(&["1"]), 50, "owner_pkey")),
        (
            "wake",
            (
                texts(&["gen_random_uuid()", "'signal'", "'{}'", one]),
                50,
                "transaction_pkey",
            ),
        ),
        ("show", (texts(&[one]), 50, "transaction_pkey")),
        ("retry_nodes", (scope, 100, "transaction_due")),
        (
            "define",
            (
                texts(&["'s1'", "1", "'d'"]),
                20,
                "definition_saga_version_digest_key",
            ),
        ),
    ];
    engine
        .into_iter()
        .chain(alert_cases::cases())
        .chain(operator_cases::cases())
        .collect()
}
