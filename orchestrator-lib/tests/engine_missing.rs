//! A version that dies out: what it left running is not forgotten.

mod support;

use std::time::Duration;

use orchestrator_lib::{Node, Saga, Step};
use support::{Checked, LONG, Lab, Reply, act, end, quick, saga};

#[tokio::test]
async fn orphans_of_the_last_node_of_a_version_are_parked_and_go_on_with_the_next() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger
        .next("a", [Reply::Slow(Duration::from_secs(3600))]);
    let old = lab.node("n1").await?;
    let newer = Saga::<u32>::new("three-steps", 2)
        .step(Step::new("a", act))
        .build()?;
    let newer = Node::builder(lab.config("n2")?)
        .saga(newer)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let started = old.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("a", 1).await;
    drop(old);
    tokio::time::timeout(LONG, parked(&lab)).await??;
    let back = lab.node("n3").await?;
    // It was pushed a minute; nobody wants to wait that long here.
    lab.sql("update ringsaga.transaction set due_at = now() where state = 'paused'")
        .await?;
    assert!(end(&back, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "a", "b", "c"]);
    newer.drain().await;
    Ok(())
}

/// Waits until a transaction is parked.
async fn parked(lab: &Lab) -> Result<(), tokio_postgres::Error> {
    let url = lab.database.url();
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let asked = "select from ringsaga.transaction where state = 'paused'";
    while client.query(asked, &[]).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
