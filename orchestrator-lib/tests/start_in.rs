//! Starting inside the caller's own database transaction, on a real Postgres.

mod support;

use std::time::Duration;

use orchestrator_lib::{
    Error, Node, Saga, Step, StepError,
    store::{Config, migrate},
};
use ring_local::TestDatabase;
use support::{Checked, Lab, end, eventually, quick, saga};
use tokio_postgres::{Client, IsolationLevel, NoTls};

async fn session(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A node, and a caller's connection with a table of its own and nothing of ours in its path.
async fn caller(lab: &Lab) -> Result<(Node, Client), Box<dyn std::error::Error>> {
    let node = lab.node("n1").await?;
    lab.sql("create schema app; create table app.orders (id int primary key)")
        .await?;
    let client = session(lab.database.url()).await?;
    client.batch_execute("set search_path = app").await?;
    Ok((node, client))
}

async fn count(client: &Client, table: &str) -> Result<i64, tokio_postgres::Error> {
    let sql = format!("select count(*) from {table}");
    client.query_one(&sql, &[]).await?.try_get(0)
}

#[tokio::test]
async fn it_exists_with_the_callers_commit_and_runs_here_at_once() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let tx = &mut client.transaction().await?;
    tx.execute("insert into orders values (1)", &[]).await?;
    let pending = node.start_in(tx, &saga, "k", 7).await?;
    assert!(pending.is_new());
    assert!(matches!(
        node.wait(pending.id(), Duration::from_millis(50)).await,
        Err(Error::NoTransaction(_))
    ));
    assert_eq!(lab.ledger.calls(), Vec::<String>::new());
    let limit: String = tx.query_one("show lock_timeout", &[]).await?.try_get(0)?;
    assert_eq!(limit, "0", "the caller's own settings come back");
    tx.batch_execute("commit").await?;
    let started = pending.committed().await;
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn a_rollback_leaves_nothing() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let mut tx = client.transaction().await?;
    let pending = node.start_in(&mut tx, &saga, "k", 7).await?;
    tx.rollback().await?;
    pending.committed().await;
    for table in ["transaction", "payload", "idempotency"] {
        assert_eq!(count(&client, &format!("ringsaga.{table}")).await?, 0);
    }
    // The key is free, with any input.
    let started = node.start(&saga, "k", 8).await?;
    assert!(started.is_new && end(&node, started.id).await?.is_completed());
    Ok(())
}

#[tokio::test]
async fn whoever_does_not_say_that_it_committed_leaves_it_to_the_ring() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let mut tx = client.transaction().await?;
    let pending = node
        .start_in(&mut tx, &saga(quick()).build()?, "k", 7)
        .await?;
    let id = pending.id();
    drop(pending);
    tx.commit().await?;
    assert!(end(&node, id).await?.is_completed());
    Ok(())
}

#[tokio::test]
async fn the_same_key_is_the_same_transaction_also_within_one_callers_transaction() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let before = node.start(&saga, "old", 1).await?;
    let mut tx = client.transaction().await?;
    let first = node.start_in(&mut tx, &saga, "k", 7).await?;
    let again = node.start_in(&mut tx, &saga, "k", 7).await?;
    assert_eq!((first.id(), again.is_new()), (again.id(), false));
    let old = node.start_in(&mut tx, &saga, "old", 1).await?;
    assert_eq!((old.id(), old.is_new()), (before.id, false));
    tx.commit().await?;
    let started = again.committed().await;
    assert!(end(&node, started.id).await?.is_completed());
    old.committed().await;
    assert!(end(&node, before.id).await?.is_completed());
    assert_eq!(lab.ledger.calls().len(), 6);
    Ok(())
}

#[tokio::test]
async fn another_input_is_refused_and_the_caller_goes_on() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let before = node.start(&saga, "k", 1).await?;
    let mut tx = client.transaction().await?;
    tx.execute("insert into orders values (1)", &[]).await?;
    let refused = node.start_in(&mut tx, &saga, "k", 2).await;
    assert!(
        matches!(refused, Err(Error::KeyUsed { by, .. }) if by == before.id),
        "{refused:?}"
    );
    tx.execute("insert into orders values (2)", &[]).await?;
    tx.commit().await?;
    assert_eq!(count(&client, "orders").await?, 2);
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_being_stored_is_in_progress_and_the_caller_goes_on() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let mut other = session(lab.database.url()).await?;
    let mut first = other.transaction().await?;
    node.start_in(&mut first, &saga, "k", 7).await?;
    let mut tx = client.transaction().await?;
    tx.execute("insert into orders values (1)", &[]).await?;
    let busy = node.start_in(&mut tx, &saga, "k", 7).await;
    assert!(matches!(busy, Err(Error::InProgress { .. })), "{busy:?}");
    // The plain start waits for nobody either.
    let busy = node.start(&saga, "k", 7).await;
    assert!(matches!(busy, Err(Error::InProgress { .. })), "{busy:?}");
    first.rollback().await?;
    let pending = node.start_in(&mut tx, &saga, "k", 7).await?;
    tx.commit().await?;
    assert!(pending.is_new());
    assert!(
        end(&node, pending.committed().await.id)
            .await?
            .is_completed()
    );
    assert_eq!(count(&client, "orders").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_serializable_caller_is_told_to_repeat_its_whole_transaction() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let level = IsolationLevel::Serializable;
    let mut tx = client
        .build_transaction()
        .isolation_level(level)
        .start()
        .await?;
    // The snapshot is taken before the key is stored by somebody else.
    tx.execute("insert into orders values (1)", &[]).await?;
    let by = node.start(&saga, "k", 7).await?;
    let repeat = node.start_in(&mut tx, &saga, "k", 7).await;
    assert!(
        matches!(repeat, Err(Error::RetryTransaction(_))),
        "{repeat:?}"
    );
    tx.rollback().await?;
    let mut tx = client
        .build_transaction()
        .isolation_level(level)
        .start()
        .await?;
    let pending = node.start_in(&mut tx, &saga, "k", 7).await?;
    assert_eq!((pending.id(), pending.is_new()), (by.id, false));
    tx.commit().await?;
    Ok(())
}

#[tokio::test]
async fn another_database_is_refused_and_the_caller_goes_on() -> Checked {
    let lab = Lab::new().await?;
    let node = lab.node("n1").await?;
    let saga = saga(quick()).build()?;
    let other = TestDatabase::create(lab.set.addresses()).await?;
    for with_a_store in [false, true] {
        if with_a_store {
            migrate(&Config::new(other.url())).await?;
        }
        let mut client = session(other.url()).await?;
        let mut tx = client.transaction().await?;
        let refused = node.start_in(&mut tx, &saga, "k", 7).await;
        assert!(matches!(refused, Err(Error::OtherDatabase)), "{refused:?}");
        tx.batch_execute("create table goes_on ()").await?;
        tx.rollback().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_start_that_is_dropped_half_way_leaves_the_caller_as_it_was() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = saga(quick()).build()?;
    let mut other = session(lab.database.url()).await?;
    let mut first = other.transaction().await?;
    node.start_in(&mut first, &saga, "k", 7).await?;
    let mut tx = client.transaction().await?;
    tx.execute("insert into orders values (1)", &[]).await?;
    // It waits for the other session's key.
    let start = node.start_in(&mut tx, &saga, "k", 7);
    let dropped = tokio::time::timeout(Duration::from_millis(100), start).await;
    assert!(dropped.is_err());
    tx.execute("insert into orders values (2)", &[]).await?;
    tx.commit().await?;
    assert_eq!(count(&client, "orders").await?, 2);
    assert_eq!(count(&client, "ringsaga.transaction").await?, 0);
    Ok(())
}

#[tokio::test]
async fn one_that_is_claimed_already_is_not_run_twice() -> Checked {
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let gate = lab.ledger.hold("a");
    let saga = saga(quick()).build()?;
    let mut tx = client.transaction().await?;
    let pending = node.start_in(&mut tx, &saga, "k", 7).await?;
    let again = node.start_in(&mut tx, &saga, "k", 7).await?;
    tx.commit().await?;
    let started = pending.committed().await;
    lab.ledger.wait_for("a", 1).await;
    again.committed().await;
    gate.add_permits(1);
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "c"]);
    eventually("nothing is left", || lab.ledger.calls().len() == 3).await;
    Ok(())
}

#[tokio::test]
async fn a_saga_that_the_node_does_not_run_is_refused_without_harm() -> Checked {
    async fn nothing(_: orchestrator_lib::Context, _: u32) -> Result<(), StepError> {
        Ok(())
    }
    let lab = Lab::new().await?;
    let (node, mut client) = caller(&lab).await?;
    let saga = Saga::<u32>::new("unknown", 1)
        .step(Step::new("a", nothing))
        .build()?;
    let mut tx = client.transaction().await?;
    let refused = node.start_in(&mut tx, &saga, "k", 7).await;
    assert!(
        matches!(refused, Err(Error::UnknownSaga { .. })),
        "{refused:?}"
    );
    tx.execute("insert into orders values (1)", &[]).await?;
    tx.commit().await?;
    Ok(())
}
