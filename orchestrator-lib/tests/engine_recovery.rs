//! Forward and backward recovery on a real Postgres: what is called, in which order, with which
//! keys, and how it ends.

mod support;

use std::time::Duration;

use orchestrator_lib::{Ended, Error, Node, Retry};
use support::{Checked, Lab, Reply, end, quick, saga};

#[tokio::test]
async fn a_saga_runs_to_its_end_and_returns_its_last_result() -> Checked {
    let lab = Lab::new().await?;
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let Ended::Completed(output) = end(&node, started.id).await? else {
        panic!("not completed");
    };
    assert_eq!(output.read::<String>()?, "c7");
    assert_eq!(lab.ledger.calls(), ["a", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn a_failing_step_pauses_and_goes_on_exactly_there() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("b", vec![Reply::Transient; 4]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "b", "b", "b", "c"]);
    assert_eq!(
        lab.ledger.keys().len(),
        3,
        "a key a step, whatever the attempt"
    );
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_compensated_in_reverse_without_the_refused_step() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("c", [Reply::Business]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let Ended::Compensated { reason } = end(&node, started.id).await? else {
        panic!("not compensated");
    };
    assert!(reason.contains("declined"), "{reason}");
    assert_eq!(lab.ledger.calls(), ["a", "b", "c", "undo b", "undo a"]);
    assert_eq!(lab.ledger.given("b"), Some(Some("b7".into())));
    Ok(())
}

#[tokio::test]
async fn a_step_in_doubt_is_compensated_too_although_refused_later() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("c", [Reply::Unknown, Reply::Business]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let ended = end(&node, started.id).await?;
    assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    let calls = ["a", "b", "c", "c", "undo c", "undo b", "undo a"];
    assert_eq!(lab.ledger.calls(), calls);
    assert_eq!(lab.ledger.given("c"), Some(None));
    Ok(())
}

#[tokio::test]
async fn a_compensation_that_fails_is_retried_in_place() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("c", [Reply::Business]);
    lab.ledger.next("undo b", vec![Reply::Transient; 4]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let ended = end(&node, started.id).await?;
    assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    assert_eq!(
        lab.ledger.calls().last().map(String::as_str),
        Some("undo a")
    );
    Ok(())
}

#[tokio::test]
async fn a_compensation_refused_for_good_terminates_and_stops_there() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("c", [Reply::Business]);
    lab.ledger.next("undo b", [Reply::Persistent]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let ended = end(&node, started.id).await?;
    assert!(matches!(ended, Ended::Terminated { .. }), "{ended:?}");
    assert_eq!(lab.ledger.calls(), ["a", "b", "c", "undo b"]);
    Ok(())
}

#[tokio::test]
async fn a_panic_is_a_failure_of_that_step_and_leaves_it_in_doubt() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("b", [Reply::Panic, Reply::Business]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let ended = end(&node, started.id).await?;
    assert!(matches!(ended, Ended::Compensated { .. }), "{ended:?}");
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "undo b", "undo a"]);
    Ok(())
}

#[tokio::test]
async fn a_call_over_its_time_limit_is_dropped_and_unknown() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger
        .next("a", [Reply::Slow(Duration::from_secs(3600))]);
    let slow = || {
        use orchestrator_lib::{Saga, Step};
        Saga::<u32>::new("slow", 1)
            .step(
                Step::new("a", support::act)
                    .compensate(support::undo)
                    .retry(Retry::never())
                    .time_limit(Duration::from_millis(100)),
            )
            .build()
    };
    let node = lab.node_with("n1", slow()?).await?;
    let started = node.start(&slow()?, "k", 7).await?;
    let Ended::Compensated { reason } = end(&node, started.id).await? else {
        panic!("not compensated");
    };
    assert!(reason.contains("100ms"), "{reason}");
    assert_eq!(lab.ledger.calls(), ["a", "undo a"]);
    Ok(())
}

#[tokio::test]
async fn the_same_key_is_the_same_transaction_and_another_input_is_refused() -> Checked {
    let lab = Lab::new().await?;
    let node = lab.node("n1").await?;
    let saga = saga(quick()).build()?;
    let first = node.start(&saga, "k", 7).await?;
    let again = node.start(&saga, "k", 7).await?;
    assert!(first.is_new && !again.is_new);
    assert_eq!(first.id, again.id);
    let other = node.start(&saga, "k", 8).await.unwrap_err();
    assert!(
        matches!(other, Error::KeyUsed { by, .. } if by == first.id),
        "{other}"
    );
    end(&node, first.id).await?;
    assert_eq!(lab.ledger.calls(), ["a", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn bad_starts_are_refused_with_a_sentence_and_store_nothing() -> Checked {
    use orchestrator_lib::{Saga, Step};
    let lab = Lab::new().await?;
    let text = |name: &str| {
        Saga::<String>::new(name, 1)
            .step(Step::new("a", async |_, _: String| Ok(())))
            .build()
    };
    let node = Node::builder(lab.config("n1")?)
        .saga(text("text")?)
        .start()
        .await?;
    let unknown = node
        .start(&text("other")?, "k", "x".into())
        .await
        .unwrap_err();
    assert!(unknown.to_string().contains("text v1"), "{unknown}");
    let large = node
        .start(&text("text")?, "k", "x".repeat(300_000))
        .await
        .unwrap_err();
    assert!(large.to_string().contains("bytes"), "{large}");
    let no_key = node
        .start(&text("text")?, "", "x".into())
        .await
        .unwrap_err();
    assert!(matches!(no_key, Error::Key { bytes: 0 }), "{no_key}");
    Ok(())
}
