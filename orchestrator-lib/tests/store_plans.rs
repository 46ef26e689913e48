//! The plans of every statement, on the statistics of a fresh table and on good ones: no table is
//! read from end to end, and a claim reads a bounded number of pages whatever the backlog.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::collections::BTreeSet;

use orchestrator_lib::store::sql;
use store_support::{cases::cases, *};
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
        if ["write", "write_around", "commit"].contains(&name) {
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
    let ids = "'ffffffff-ffff-ffff-ffff-ffffffffffff', '00000000-0000-0000-0000-000000000000'";
    let filter = format!(
        "'eu', 'main', 'unfortunate', {ids}, 'orders', '{{quarantined}}', null, null, null, null, null, null, null, null, null, null, '10000', '50'"
    );
    let (plan, pages) = explain(&session, "list", &filter).await?;
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
