//! What nobody can continue is noticed: code that no living process has, and services without a
//! retry node.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use orchestrator_lib::store::Store;
use ring_core::store::Incarnation;
use store_support::*;

/// A node of a service that retries nothing.
async fn standard(bench: &Bench) -> Result<Node, Box<dyn std::error::Error>> {
    let store: Store = bench.store()?;
    let mut process = process("standard", &["buy"]);
    process.retry_node = false;
    let me: Incarnation = store.open(&process, LEASE).await?;
    Ok(Node { store, me })
}

#[tokio::test]
async fn orphans_that_nobody_can_run_are_reported_before_they_are_parked() -> Checked {
    let bench = Bench::new().await?;
    let gone = bench.node("gone", &["sell"]).await?;
    let node = bench.node("a", &["buy"]).await?;
    gone.started("sell", "orphan").await?;
    node.started("buy", "own").await?;
    assert!(node.store.missing().await?.is_empty(), "its owner lives");
    bench.kill(gone.me, &node).await?;
    let missing = node.store.missing().await?;
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].saga.as_str(), "sell");
    assert_eq!(missing[0].transactions, 1);
    bench.node("back", &["sell"]).await?;
    assert!(node.store.missing().await?.is_empty(), "somebody can");
    Ok(())
}

#[tokio::test]
async fn a_service_with_waiting_work_and_no_retry_node_is_noticed() -> Checked {
    let bench = Bench::new().await?;
    let node = standard(&bench).await?;
    node.parked("buy", "k").await?;
    let seen = node.store.retry_nodes().await?;
    assert_eq!((seen.present, seen.waiting), (false, 1));
    bench.node("b", &["buy"]).await?;
    assert!(node.store.retry_nodes().await?.present);
    Ok(())
}

#[tokio::test]
async fn what_waits_for_a_target_waits_for_a_retry_node_too() -> Checked {
    let bench = Bench::new().await?;
    let node = standard(&bench).await?;
    node.parked("buy", "k").await?;
    bench
        .run("update ringsaga.transaction set waiting_on = 'payment'")
        .await?;
    assert_eq!(node.store.retry_nodes().await?.waiting, 1);
    Ok(())
}

#[tokio::test]
async fn orphans_of_a_dead_standard_node_wait_for_a_retry_node() -> Checked {
    let bench = Bench::new().await?;
    let (dead, living) = (standard(&bench).await?, standard(&bench).await?);
    dead.started("buy", "orphan").await?;
    living.started("buy", "own").await?;
    assert_eq!(living.store.retry_nodes().await?.waiting, 0);
    bench.kill(dead.me, &living).await?;
    assert_eq!(living.store.retry_nodes().await?.waiting, 1);
    Ok(())
}
