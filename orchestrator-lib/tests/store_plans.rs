//! The plans of every statement, on the statistics of a fresh table and on good ones: no table is
//! read from end to end, and a claim reads a bounded number of pages whatever the backlog.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::collections::{BTreeMap, BTreeSet};

use orchestrator_lib::store::sql;
use store_support::*;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Statistics stay as they are: autovacuum would make a fresh table an old one.
const NO_STATISTICS: &str = "
alter table ringsaga.transaction set (autovacuum_enabled = off);
alter table ringsaga.payload set (autovacuum_enabled = off);
alter table ringsaga.step set (autovacuum_enabled = off);
alter table ringsaga.idempotency set (autovacuum_enabled = off);
";

/// 30,000 transactions: a tenth due, a twentieth running (half of them by a dead owner), a
/// twentieth waiting for a target, the rest parked for later; three steps each.
const SEED: &str = include_str!("store_support/seed.sql");

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

fn write_values() -> Vec<String> {
    [
        "id",
        "epoch",
        "nonce",
        "4",
        "direction",
        "seq",
        "null::bigint",
        "'running'::text",
        "direction",
        "seq + 1",
        "null::bigint",
        "0",
        "false",
        "null::text",
        "false",
        "true",
        "null::text",
        "null::text",
        "'step'::text",
        "direction",
        "seq",
        "'done'::text",
        "null::text",
        "false",
        "'1'::text",
        "null::text",
        "1",
        "now()",
        "now()",
    ]
    .map(own)
    .to_vec()
}

/// Values for every statement, how many pages it may touch, and the index it must use.
fn cases() -> BTreeMap<&'static str, (Vec<String>, u64, &'static str)> {
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
    let start = [
        with(&scope, &["1"]),
        [
            "gen_random_uuid()",
            "g::bigint",
            "'s1'::text",
            "1",
            "'new' || g",
            "'{}'::text",
            "3600000::bigint",
            "gen_random_uuid()",
        ]
        .map(new)
        .to_vec(),
    ]
    .concat();
    let keys = ["'s1'::text", "'new' || g", "'{}'::text"].map(new).to_vec();
    let one = "(select id from ringsaga.transaction limit 1)";
    BTreeMap::from([
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
        ("write", (write_values(), 2_500, "transaction_pkey")),
        ("start", (start, 1_500, "idempotency_pkey")),
        (
            "start_read",
            ([scope.clone(), keys].concat(), 1_000, "idempotency_pkey"),
        ),
        ("inputs", (vec![own("id")], 600, "payload_pkey")),
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
                    scope.clone(),
                    texts(&["'s1'", "'k1'", "gen_random_uuid()", "'{}'", "1000"]),
                ]
                .concat(),
                100,
                "idempotency_pkey",
            ),
        ),
        ("hear", (texts(&[one]), 50, "transaction_pkey")),
        ("log", (vec![own("id")], 1_000, "step_pkey")),
        ("present", (vec![own("id")], 600, "transaction_pkey")),
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
                texts(&["gen_random_uuid()", one, "'signal'", "'{}'"]),
                50,
                "transaction_pkey",
            ),
        ),
        ("show", (texts(&[one]), 50, "transaction_pkey")),
        (
            "restore",
            (
                texts(&[one, "1", "1000", "'eva'", "'because'"]),
                50,
                "Index Scan using transaction_",
            ),
        ),
        (
            "list",
            (
                [
                    texts(&["'eu'", "'main'"]),
                    texts(&["null", "null", "null", "null", "50"]),
                ]
                .concat(),
                500,
                "transaction_pkey",
            ),
        ),
        ("retry_nodes", (scope, 100, "transaction_due")),
        (
            "define",
            (
                texts(&["'s1'", "1", "'d'"]),
                20,
                "definition_saga_version_digest_key",
            ),
        ),
    ])
}

/// Reads everything by intent, or no table at all.
const LEFT_OUT: [&str; 5] = [
    "counts",
    "owner_open",
    "probe_read",
    "probe_set",
    "standing",
];

#[tokio::test]
async fn every_statement_has_a_case() {
    let cases = cases();
    let all: BTreeSet<&str> = sql::ALL.iter().map(|(name, _)| *name).collect();
    let known: BTreeSet<&str> = cases.keys().copied().chain(LEFT_OUT).collect();
    assert_eq!(all, known);
}

#[tokio::test]
async fn no_statement_reads_a_table_from_end_to_end_on_a_fresh_table() -> Checked {
    let bench = Bench::new().await?;
    bench.run(NO_STATISTICS).await?;
    bench.run(SEED).await?;
    check_plans(&bench.session().await?).await
}

#[tokio::test]
async fn no_statement_reads_a_table_from_end_to_end_with_good_statistics() -> Checked {
    let bench = Bench::new().await?;
    bench.run(SEED).await?;
    bench.run("analyze").await?;
    check_plans(&bench.session().await?).await
}

/// Generic plans are made at first use and kept: on an empty table a wrong index looks as good as
/// the right one, and hours later it is read from end to end.
#[tokio::test]
async fn plans_made_on_an_empty_table_hold_when_it_has_grown() -> Checked {
    let (bench, grown) = (Bench::new().await?, Bench::new().await?);
    grown.run(SEED).await?;
    let samples = grown.session().await?;
    bench.run(NO_STATISTICS).await?;
    let session = bench.session().await?;
    let mut calls = Vec::new();
    for (name, (values, limit, index)) in cases() {
        let literals = literals(&samples, &values).await?;
        prepare(&session, name).await?;
        let first_use = format!("begin; execute {name} ({literals}); rollback");
        session.batch_execute(&first_use).await?;
        calls.push((name, literals, limit, index));
    }
    bench.run(SEED).await?;
    let mut wrong = Vec::new();
    for (name, literals, limit, index) in calls {
        let (plan, pages) = explain(&session, name, &literals).await?;
        if plan.contains("Seq Scan") || !plan.contains(index) || pages > limit {
            wrong.push(format!("{name}: {pages} pages, {index}\n{plan}"));
        }
        if name == "write" {
            assert!(!plan.contains("Removed by Join Filter"), "{plan}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn a_poll_that_finds_nothing_due_costs_one_probe_a_slot() -> Checked {
    let bench = Bench::new().await?;
    bench.run(SEED).await?;
    bench
        .run(
            "update ringsaga.transaction set due_at = now() + interval '30 min' \
             where due_at is not null",
        )
        .await?;
    bench.run("vacuum ringsaga.transaction").await?;
    let session = bench.session().await?;
    let (values, _, _) = &cases()["claim_due"];
    prepare(&session, "claim_due").await?;
    let literals = literals(&session, values).await?;
    let (plan, pages) = explain(&session, "claim_due", &literals).await?;
    assert!(pages < 86 * 5, "{pages} pages: {plan}");
    Ok(())
}

#[tokio::test]
async fn a_list_of_the_unfortunate_reads_no_other_rows() -> Checked {
    let bench = Bench::new().await?;
    bench.run(SEED).await?;
    let session = bench.session().await?;
    prepare(&session, "list").await?;
    let custom = "set plan_cache_mode = force_custom_plan";
    session.batch_execute(custom).await?;
    let filter = "'eu', 'main', 'orders', '{quarantined}', null, null, '50'";
    let (plan, pages) = explain(&session, "list", filter).await?;
    let indexed = plan.contains("transaction_unsettled");
    assert!(indexed && pages < 20, "{pages} pages: {plan}");
    Ok(())
}

async fn check_plans(session: &Client) -> Checked {
    let mut wrong = Vec::new();
    for (name, (values, limit, index)) in cases() {
        prepare(session, name).await?;
        let literals = literals(session, &values).await?;
        let (plan, pages) = explain(session, name, &literals).await?;
        println!("{name}: {pages} pages, at most {limit}");
        if plan.contains("Seq Scan") || !plan.contains(index) || pages > limit {
            wrong.push(format!("{name}: {pages} pages, {index}\n{plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Prepares a statement under its file's name, as the store's connections do.
async fn prepare(session: &Client, name: &str) -> Checked {
    let statement = sql::ALL.iter().find(|(file, _)| *file == name);
    let (_, statement) = statement.ok_or("no such statement")?;
    let pins = sql::PINS;
    let prepare =
        format!("{pins} set plan_cache_mode = force_generic_plan; prepare {name} as {statement}");
    Ok(session.batch_execute(&prepare).await?)
}

/// Values as literals: `execute` takes no queries.
async fn literals(
    session: &Client,
    values: &[String],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut literals = Vec::new();
    for value in values {
        let quoted = format!("select coalesce(quote_literal(({value})::text), 'null')");
        literals.push(texts(session, &quoted).await?.concat());
    }
    Ok(literals.join(", "))
}

/// The generic plan, really run and rolled back; with the pages it touched.
async fn explain(
    session: &Client,
    name: &str,
    literals: &str,
) -> Result<(String, u64), Box<dyn std::error::Error>> {
    session.batch_execute("begin").await?;
    let explain =
        format!("explain (analyze, buffers, costs off, timing off) execute {name} ({literals})");
    let lines = texts(session, &explain).await?;
    session.batch_execute("rollback").await?;
    // The first line with buffers is the whole statement's.
    let buffers = lines.iter().find(|line| line.contains("Buffers:"));
    let pages = buffers.map_or(0, |line| {
        line.split_whitespace()
            .filter(|word| word.starts_with("hit=") || word.starts_with("read="))
            .filter_map(|word| word.split('=').nth(1)?.parse::<u64>().ok())
            .sum()
    });
    Ok((lines.join("\n"), pages))
}

async fn texts(session: &Client, sql: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let messages = session.simple_query(sql).await?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        _ => None,
    });
    Ok(rows.collect())
}
