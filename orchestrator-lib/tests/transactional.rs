//! Steps inside the store's own database transaction: exactly once, whatever dies when.

mod support;

use std::time::Duration;

use orchestrator_lib::{
    Config, Context, Ended, Node, Retry, Saga, SagaBuilder, Step, StepError, StoreTransaction,
};
use ring_local::Scope;
use support::{Checked, LONG, Lab, Reply, act, end, quick, relay::relay, undo};

/// What the steps do is a row each; the ledger decides what happens after that.
const TABLE: &str = "create table entry (step text, constraint first check (step <> 'never'))";

/// Its SQL first, then what the ledger says.
async fn apply(cx: Context, input: u32, tx: StoreTransaction) -> Result<String, StepError> {
    let sql = "insert into entry values ($1)";
    tx.execute(sql, &[&cx.step()]).await?;
    act(cx, input).await
}

async fn revert(
    cx: Context,
    input: u32,
    result: Option<String>,
    tx: StoreTransaction,
) -> Result<(), StepError> {
    let sql = "insert into entry values ('undo ' || $1)";
    tx.execute(sql, &[&cx.step()]).await?;
    undo(cx, input, result).await
}

fn bank(retry: Retry) -> SagaBuilder<u32> {
    let step = |name| {
        Step::transactional(name, apply)
            .compensate_transactional(revert)
            .retry(retry)
            .retry_compensation(retry.until_the_lifetime_ends())
    };
    Saga::new("bank", 1).step(step("a")).step(step("b"))
}

async fn lab() -> Result<Lab, Box<dyn std::error::Error>> {
    let lab = Lab::new().await?;
    lab.sql(TABLE).await?;
    Ok(lab)
}

async fn entries(lab: &Lab) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    texts(lab, "select step from entry order by step").await
}

async fn texts(lab: &Lab, sql: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let url = lab.database.url();
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let rows = client.query(sql, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Ends the step's connections as a broken network or a failover would.
async fn terminate_steps(lab: &Lab) -> Result<usize, Box<dyn std::error::Error>> {
    let sql = "select pg_terminate_backend(pid)::text from pg_stat_activity \
        where application_name = 'ringsaga step' and datname = current_database()";
    Ok(texts(lab, sql).await?.len())
}

#[tokio::test]
async fn effect_and_record_are_one_commit() -> Checked {
    let lab = lab().await?;
    let node = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = node.start(&bank(quick()).build()?, "k", 7).await?;
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    let together = "select s.name from entry e join ringsaga.step s \
        on s.name = e.step and s.xmin::text = e.xmin::text order by 1";
    assert_eq!(texts(&lab, together).await?, ["a", "b"]);
    Ok(())
}

#[tokio::test]
async fn a_node_that_dies_between_sql_and_commit_applied_nothing() -> Checked {
    let lab = lab().await?;
    let _gate = lab.ledger.hold("b");
    let first = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = first.start(&bank(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    drop(first);
    let second = lab.node_with("n2", bank(quick()).build()?).await?;
    assert!(end(&second, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b"]);
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    Ok(())
}

/// Orphaned, and then refused: a call of a participant would be in doubt and compensated.
#[tokio::test]
async fn a_step_without_a_record_is_not_in_doubt_after_a_death() -> Checked {
    let lab = lab().await?;
    let _gate = lab.ledger.hold("b");
    let first = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = first.start(&bank(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    lab.ledger.next("b", [Reply::Business]);
    drop(first);
    let second = lab.node_with("n2", bank(quick()).build()?).await?;
    let ended = end(&second, started.id).await?;
    assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "undo a"]);
    assert_eq!(entries(&lab).await?, ["a", "undo a"]);
    Ok(())
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_commit_is_retried() -> Checked {
    let lab = lab().await?;
    let gate = lab.ledger.hold("b");
    let node = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = node.start(&bank(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    assert_eq!(terminate_steps(&lab).await?, 1);
    gate.add_permits(1);
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b"]);
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    Ok(())
}

/// The second node takes the row while the first one's SQL is done and not committed.
#[tokio::test]
async fn a_zombie_that_lost_its_row_commits_nothing() -> Checked {
    let lab = lab().await?;
    let gate = lab.ledger.hold("b");
    let first = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = first.start(&bank(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    // Another session is the new owner: what it writes into the row is what a claim writes.
    lab.sql(
        "update ringsaga.transaction set epoch = epoch + 1, nonce = gen_random_uuid(), \
         last_write = 0",
    )
    .await?;
    gate.add_permits(1);
    lab.ledger.wait_for_answer("b").await;
    all_ended(&lab).await?;
    assert_eq!(entries(&lab).await?, ["a"]);
    drop(first);
    let second = lab.node_with("n2", bank(quick()).build()?).await?;
    assert!(end(&second, started.id).await?.is_completed());
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    Ok(())
}

/// Waits until no step's database transaction is open.
async fn all_ended(lab: &Lab) -> Checked {
    let open = "select pid::text from pg_stat_activity where xact_start is not null \
        and application_name = 'ringsaga step' and datname = current_database()";
    let all = async {
        while !texts(lab, open).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    tokio::time::timeout(LONG, all).await?
}

#[tokio::test]
async fn a_refusal_leaves_no_row_and_undoes_what_was_done() -> Checked {
    let lab = lab().await?;
    lab.ledger.next("b", [Reply::Business]);
    let node = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = node.start(&bank(quick()).build()?, "k", 7).await?;
    let ended = end(&node, started.id).await?;
    assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    assert_eq!(entries(&lab).await?, ["a", "undo a"]);
    assert_eq!(lab.ledger.given("a"), Some(Some("a7".into())));
    Ok(())
}

/// None of these was applied, so step `b` is not compensated.
#[tokio::test]
async fn panics_and_unknown_errors_are_rolled_back_and_not_in_doubt() -> Checked {
    let lab = lab().await?;
    let never = || bank(Retry::never()).build();
    let node = lab.node_with("n1", never()?).await?;
    for (key, reply) in [("p", Reply::Panic), ("u", Reply::Unknown)] {
        lab.ledger.next("b", [reply]);
        let started = node.start(&never()?, key, 7).await?;
        let ended = end(&node, started.id).await?;
        assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    }
    assert_eq!(entries(&lab).await?, ["a", "a", "undo a", "undo a"]);
    Ok(())
}

#[tokio::test]
async fn a_constraint_that_fails_at_the_commit_is_a_refusal() -> Checked {
    let lab = lab().await?;
    lab.sql(
        "create table parent (id int primary key); \
         create table child (id int references parent deferrable initially deferred)",
    )
    .await?;
    async fn orphan(_: Context, input: u32, tx: StoreTransaction) -> Result<(), StepError> {
        let id = i32::try_from(input)?;
        tx.execute("insert into child values ($1)", &[&id]).await?;
        Ok(())
    }
    let saga = || bank(quick()).step(Step::transactional("c", orphan)).build();
    let node = lab.node_with("n1", saga()?).await?;
    let started = node.start(&saga()?, "k", 7).await?;
    let Ended::Compensated { reason } = end(&node, started.id).await? else {
        return Err("not compensated".into());
    };
    assert!(reason.contains("foreign key"), "{reason}");
    assert_eq!(entries(&lab).await?, ["a", "b", "undo a", "undo b"]);
    Ok(())
}

#[tokio::test]
async fn a_step_that_commits_by_itself_or_keeps_the_transaction_is_found_out() -> Checked {
    async fn commits(_: Context, _: u32, tx: StoreTransaction) -> Result<(), StepError> {
        tx.batch_execute("rollback; begin").await?;
        Ok(())
    }
    async fn keeps(_: Context, _: u32, tx: StoreTransaction) -> Result<(), StepError> {
        tokio::spawn(async move {
            tokio::time::sleep(LONG).await;
            drop(tx);
        });
        Ok(())
    }
    async fn swallows(_: Context, _: u32, tx: StoreTransaction) -> Result<(), StepError> {
        drop(tx.batch_execute("select 1 / 0").await);
        Ok(())
    }
    let lab = lab().await?;
    let once = |name: &'static str| Saga::<u32>::new(name, 1);
    let torn = once("torn")
        .step(Step::transactional("s", commits))
        .build()?;
    let kept = once("kept")
        .step(Step::transactional("s", keeps).retry(Retry::never()))
        .build()?;
    let swallowed = once("swallowed")
        .step(Step::transactional("s", swallows).retry(Retry::never()))
        .build()?;
    let all = [&torn, &kept, &swallowed];
    let mut builder = Node::builder(lab.config("n1")?).retry_node(true);
    for saga in all {
        builder = builder.saga(saga.clone());
    }
    let node = builder.start().await?;
    let wanted = ["return instead", "beyond its return", "aborted"];
    for (saga, wanted) in all.into_iter().zip(wanted) {
        let started = node.start(saga, "k", 7).await?;
        let Ended::Compensated { reason } = end(&node, started.id).await? else {
            return Err("not compensated".into());
        };
        assert!(reason.contains(wanted), "{reason}");
    }
    Ok(())
}

/// The server was told to commit and is ended in the middle of it.
#[tokio::test]
async fn a_commit_that_breaks_off_is_looked_up_and_repeated() -> Checked {
    let lab = lab().await?;
    // The commit waits in a deferred trigger until the test lets go of a lock.
    lab.sql(
        "create function hang() returns trigger language plpgsql as $$ begin \
           perform pg_advisory_xact_lock(4711); return null; end $$; \
         create constraint trigger hang after insert on entry deferrable initially deferred \
           for each row when (new.step = 'b') execute function hang()",
    )
    .await?;
    let url = lab.database.url();
    let (holder, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    holder
        .batch_execute("select pg_advisory_lock(4711)")
        .await?;
    let node = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = node.start(&bank(quick()).build()?, "k", 7).await?;
    let waiting = "select pid::text from pg_stat_activity where wait_event = 'advisory' \
        and application_name = 'ringsaga step' and datname = current_database()";
    let all = async {
        while texts(&lab, waiting).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    tokio::time::timeout(LONG, all).await??;
    assert_eq!(terminate_steps(&lab).await?, 1);
    drop(holder);
    connection.abort();
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    Ok(())
}

/// The commit took place, and its answer is lost on the way.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_looked_up_and_not_repeated() -> Checked {
    let lab = lab().await?;
    let gate = lab.ledger.hold("b");
    let (url, cut) = relay(&lab).await?;
    let node = Node::builder(relayed(&lab, url)?)
        .saga(bank(quick()).build()?)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let started = node.start(&bank(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    cut.send_replace(1);
    gate.add_permits(1);
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(*cut.borrow(), 0, "an answer was lost");
    assert_eq!(lab.ledger.calls(), ["a", "b"]);
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    Ok(())
}

fn relayed(lab: &Lab, url: String) -> Result<Config, Box<dyn std::error::Error>> {
    let Scope { region, cluster } = &lab.scope;
    let mut config = Config::new(region, cluster, "orders", "n1", url)?;
    let like = lab.config("n1")?;
    (config.migrate_on_start, config.timing) = (true, like.timing);
    Ok(config)
}

#[tokio::test]
async fn a_compensation_whose_process_dies_is_done_once() -> Checked {
    let lab = lab().await?;
    lab.ledger.next("b", [Reply::Business]);
    let _gate = lab.ledger.hold("undo a");
    let first = lab.node_with("n1", bank(quick()).build()?).await?;
    let started = first.start(&bank(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("undo a", 1).await;
    drop(first);
    let second = lab.node_with("n2", bank(quick()).build()?).await?;
    let ended = end(&second, started.id).await?;
    assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    assert_eq!(entries(&lab).await?, ["a", "undo a"]);
    Ok(())
}

/// Something woke the transaction while its last step ran: the record that settles it is refused,
/// the SQL undone, and the step is run again once the wake-up is read.
#[tokio::test]
async fn a_wake_up_during_the_last_step_repeats_it_without_an_attempt() -> Checked {
    let lab = lab().await?;
    let gate = lab.ledger.hold("b");
    let saga = || bank(Retry::never()).build();
    let node = lab.node_with("n1", saga()?).await?;
    let started = node.start(&saga()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    lab.sql("update ringsaga.transaction set wake_seq = wake_seq + 1")
        .await?;
    gate.add_permits(1);
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(entries(&lab).await?, ["a", "b"]);
    Ok(())
}

/// The pool is smaller than what runs; settings of one step are not the next one's.
#[tokio::test]
async fn many_at_once_share_a_few_connections_and_no_settings() -> Checked {
    async fn sets(_: Context, _: u32, tx: StoreTransaction) -> Result<String, StepError> {
        let row = tx.query_one("show search_path", &[]).await?;
        tx.batch_execute("set search_path = elsewhere").await?;
        Ok(row.try_get(0)?)
    }
    let lab = lab().await?;
    let saga = Saga::<u32>::new("many", 1)
        .step(Step::transactional("s", sets))
        .build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let mut all = Vec::new();
    for n in 0..40 {
        all.push(node.start(&saga, format!("k{n}"), n).await?.id);
    }
    for id in all {
        let Ended::Completed(path) = end(&node, id).await? else {
            return Err("not completed".into());
        };
        assert_eq!(path.read::<String>()?, "\"$user\", public");
    }
    Ok(())
}
