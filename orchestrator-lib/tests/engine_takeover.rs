//! Nodes that come, go and die, on one real Postgres.

mod support;

use std::time::{Duration, Instant};

use orchestrator_lib::Ended;
use support::{Checked, Lab, Reply, end, quick, saga};

/// Lease, plus what the design promises on top.
const TAKEOVER: Duration = Duration::from_secs(3 + 4);

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test measures the takeover")]
async fn another_node_goes_on_after_a_death_without_repeating_what_is_done() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger
        .next("b", [Reply::Slow(Duration::from_secs(3600))]);
    let first = lab.node("n1").await?;
    let second = lab.node("n2").await?;
    let started = first.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    drop(first);
    let died = Instant::now();
    lab.ledger.wait_for("c", 1).await;
    let took = died.elapsed();
    assert!(end(&second, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "c"]);
    assert_eq!(lab.ledger.keys().len(), 3);
    assert!(took <= TAKEOVER + Duration::from_secs(1), "took {took:?}");
    Ok(())
}

#[tokio::test]
async fn a_drain_hands_back_what_does_not_end_within_the_grace_period() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger
        .next("b", [Reply::Slow(Duration::from_secs(3600))]);
    let first = lab.node("n1").await?;
    let started = first.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    let drained = first.drain().await;
    assert_eq!(drained.handed_back, 1, "{drained:?}");
    assert!(first.ended().await.is_ok());
    assert!(first.start(&saga(quick()).build()?, "k2", 7).await.is_err());
    let second = lab.node("n2").await?;
    assert!(end(&second, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn a_drain_lets_a_running_step_end_and_repeats_nothing() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger
        .next("b", [Reply::Slow(Duration::from_millis(500))]);
    let first = lab.node("n1").await?;
    let started = first.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    first.drain().await;
    let second = lab.node("n2").await?;
    assert!(end(&second, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn two_nodes_on_one_database_run_each_step_once() -> Checked {
    let lab = Lab::new().await?;
    let (one, two) = (lab.node("n1").await?, lab.node("n2").await?);
    lab.ledger.next("b", vec![Reply::Transient; 60]);
    let saga = saga(quick()).build()?;
    let mut all = Vec::new();
    for n in 0..40 {
        let node = if n % 2 == 0 { &one } else { &two };
        all.push(node.start(&saga, format!("k{n}"), n).await?.id);
    }
    for id in all {
        // Asked at the other node too: ends are found in the store.
        assert!(end(&one, id).await?.is_completed());
    }
    let calls = lab.ledger.calls();
    let count = |name| calls.iter().filter(|c| *c == name).count();
    assert_eq!((count("a"), count("b"), count("c")), (40, 100, 40));
    Ok(())
}

#[tokio::test]
async fn a_standard_node_leaves_retrying_to_a_retry_node() -> Checked {
    use orchestrator_lib::Node;
    let lab = Lab::new().await?;
    lab.ledger.next("b", vec![Reply::Transient; 3]);
    let plain = Node::builder(lab.config("n1")?)
        .saga(saga(quick()).build()?)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let started = plain.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 3).await;
    let retry = lab.node("n2").await?;
    assert!(end(&retry, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "b", "b", "c"]);
    // The one that started it learns of the end, too.
    assert!(matches!(
        end(&plain, started.id).await?,
        Ended::Completed(_)
    ));
    Ok(())
}

#[tokio::test]
async fn a_node_alone_is_ready_and_says_that_it_has_no_bus() -> Checked {
    let lab = Lab::new().await?;
    let node = lab.node("n1").await?;
    assert_eq!(node.ready(), Vec::<String>::new());
    assert!(node.degraded()[0].contains("NATS"), "{:?}", node.degraded());
    Ok(())
}
