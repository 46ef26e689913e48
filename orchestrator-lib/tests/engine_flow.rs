//! Flows on a real Postgres: groups, decisions, timers, signals, cancels, probes, limits.

mod support;

use std::{sync::Arc, time::Duration};

use orchestrator_lib::{
    Context, Ended, Group, Heard, Key, Node, Probe, Reached, Saga, Step, StepError, TransactionId,
};
use support::{Checked, LONG, Lab, Ledger, Reply, act, end, quick, undo};
use tokio::sync::Semaphore;
use uuid::Uuid;

type Made = Result<Saga<u32>, orchestrator_lib::Mistakes>;

fn step(name: &'static str) -> Step<u32, String> {
    Step::new(name, act)
        .compensate(undo)
        .retry(quick())
        .retry_compensation(quick().until_the_lifetime_ends())
}

fn trip() -> Made {
    Saga::new("trip", 1)
        .step(step("book"))
        .parallel(
            Group::new()
                .step(step("flight"))
                .step(step("hotel"))
                .step(step("car")),
        )
        .step(step("pay"))
        .build()
}

#[tokio::test]
async fn members_of_a_group_run_side_by_side_and_the_flow_goes_on_after_all() -> Checked {
    let lab = Lab::new().await?;
    let gate = Arc::new(Semaphore::new(0));
    for name in ["flight", "hotel", "car"] {
        lab.ledger.next(name, [Reply::Held(Arc::clone(&gate))]);
    }
    let node = lab.node_with("n1", trip()?).await?;
    let started = node.start(&trip()?, "k", 7).await?;
    // All three are under way before any of them answers.
    lab.ledger.called(&["book", "flight", "hotel", "car"]).await;
    gate.add_permits(3);
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls().last().map(String::as_str), Some("pay"));
    Ok(())
}

#[tokio::test]
async fn a_failed_group_is_undone_one_by_one_in_reverse() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("pay", [Reply::Business]);
    let node = lab.node_with("n1", trip()?).await?;
    let started = node.start(&trip()?, "k", 7).await?;
    let Ended::Compensated { reason } = end(&node, started.id).await? else {
        panic!("not undone");
    };
    assert!(reason.contains("pay"), "{reason}");
    let calls = lab.ledger.calls();
    assert_eq!(
        calls[5..],
        ["undo car", "undo hotel", "undo flight", "undo book"]
    );
    Ok(())
}

#[tokio::test]
async fn a_refused_member_undoes_only_what_was_applied() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("hotel", [Reply::Business]);
    let node = lab.node_with("n1", trip()?).await?;
    let started = node.start(&trip()?, "k", 7).await?;
    assert!(matches!(
        end(&node, started.id).await?,
        Ended::Compensated { .. }
    ));
    let undone: Vec<String> = lab
        .ledger
        .calls()
        .into_iter()
        .filter(|c| c.starts_with("undo"))
        .collect();
    assert_eq!(undone, ["undo car", "undo flight", "undo book"]);
    Ok(())
}

#[tokio::test]
async fn a_paused_member_is_retried_and_its_done_siblings_are_not() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("hotel", vec![Reply::Transient; 4]);
    let node = lab.node_with("n1", trip()?).await?;
    let started = node.start(&trip()?, "k", 7).await?;
    assert!(end(&node, started.id).await?.is_completed());
    let count = |name: &str| lab.ledger.calls().iter().filter(|c| *c == name).count();
    assert_eq!((count("flight"), count("hotel"), count("car")), (1, 5, 1));
    Ok(())
}

#[tokio::test]
async fn a_decision_chooses_the_steps_that_follow() -> Checked {
    let lab = Lab::new().await?;
    let parcel = || {
        Saga::<u32>::new("parcel", 1)
            .branch(
                "route",
                |_, weight| Ok(if *weight > 30 { "freight" } else { "post" }),
                |cases| {
                    cases
                        .case("freight", |flow| flow.step(step("book")).step(step("load")))
                        .case("post", |flow| flow.step(step("stamp")))
                },
            )
            .when(
                "insured",
                |_, weight| Ok(*weight > 50),
                |flow| flow.step(step("insure")),
            )
            .step(step("send"))
            .build()
    };
    let node = lab.node_with("n1", parcel()?).await?;
    let light = node.start(&parcel()?, "light", 7).await?;
    assert!(end(&node, light.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["stamp", "send"]);
    lab.ledger.next("send", [Reply::Business]);
    let heavy = node.start(&parcel()?, "heavy", 70).await?;
    assert!(matches!(
        end(&node, heavy.id).await?,
        Ended::Compensated { .. }
    ));
    assert_eq!(
        lab.ledger.calls()[2..],
        [
            "book",
            "load",
            "insure",
            "send",
            "undo insure",
            "undo load",
            "undo book"
        ]
    );
    Ok(())
}

const APPROVAL: Key<String> = Key::new("approval");

fn expense(deadline: Duration) -> Made {
    Saga::new("expense", 1)
        .step(step("file"))
        .step(Step::signal(APPROVAL).within(deadline))
        .step(Step::new("pay", paid))
        .build()
}

async fn paid(cx: Context, input: u32) -> Result<String, StepError> {
    let by = cx.result(APPROVAL)?;
    act(cx, input).await.map(|_| by)
}

#[tokio::test]
async fn a_signal_is_the_result_of_the_step_that_waits_for_it() -> Checked {
    let lab = Lab::new().await?;
    let saga = expense(LONG)?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    let reached = node
        .wait_for_step(id, Key::<String>::new("file"), LONG)
        .await?;
    assert_eq!(reached, Reached::Done("file7".into()));
    let click = Uuid::new_v4();
    let kept = node.signal(click, id, APPROVAL, &"ann".to_owned()).await?;
    assert_eq!(kept, Heard::Kept);
    let again = node.signal(click, id, APPROVAL, &"ann".to_owned()).await?;
    assert_ne!(again, Heard::Kept);
    assert_eq!(result(&node, id).await?, "ann");
    let bob = "bob".to_owned();
    let late = node.signal(Uuid::new_v4(), id, APPROVAL, &bob).await?;
    assert_eq!(late, Heard::Ended);
    Ok(())
}

#[tokio::test]
async fn a_signal_that_comes_early_is_kept() -> Checked {
    let lab = Lab::new().await?;
    let saga = expense(LONG)?;
    let gate = Arc::new(Semaphore::new(0));
    lab.ledger.next("file", [Reply::Held(Arc::clone(&gate))]);
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    lab.ledger.called(&["file"]).await;
    node.signal(Uuid::new_v4(), id, APPROVAL, &"eve".to_owned())
        .await?;
    gate.add_permits(1);
    assert_eq!(result(&node, id).await?, "eve");
    Ok(())
}

#[tokio::test]
async fn a_deadline_that_passes_undoes_or_takes_the_other_result() -> Checked {
    let lab = Lab::new().await?;
    let soon = Duration::from_millis(1_200);
    let node = lab.node_with("n1", expense(soon)?).await?;
    let id = node.start(&expense(soon)?, "k", 7).await?.id;
    let Ended::Compensated { reason } = end(&node, id).await? else {
        panic!("not undone");
    };
    assert!(reason.contains("no signal approval"), "{reason}");
    assert_eq!(lab.ledger.calls(), ["file", "undo file"]);
    node.drain().await;
    let lenient = Saga::new("lenient", 1)
        .step(
            Step::signal(APPROVAL)
                .within(soon)
                .otherwise(&"nobody".into()),
        )
        .step(Step::new("pay", paid))
        .build()?;
    let node = lab.node_with("n2", lenient.clone()).await?;
    let id = node.start(&lenient, "k", 7).await?.id;
    assert_eq!(result(&node, id).await?, "nobody");
    Ok(())
}

#[tokio::test]
async fn a_timer_waits_in_the_database_and_goes_on_at_another_node() -> Checked {
    let lab = Lab::new().await?;
    let cooling = || {
        Saga::<u32>::new("cooling", 1)
            .step(step("heat"))
            .step(Step::timer("cool", Duration::from_secs(3)))
            .step(step("serve"))
            .build()
    };
    let node = lab.node_with("n1", cooling()?).await?;
    let id = node.start(&cooling()?, "k", 7).await?.id;
    node.wait_for_step(id, Key::<String>::new("heat"), LONG)
        .await?;
    node.drain().await;
    assert_eq!(lab.ledger.calls(), ["heat"], "the timer is not over");
    let other = lab.node_with("n2", cooling()?).await?;
    assert!(end(&other, id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["heat", "serve"]);
    Ok(())
}

#[tokio::test]
async fn a_cancel_undoes_at_the_next_steps_boundary() -> Checked {
    let lab = Lab::new().await?;
    let gate = Arc::new(Semaphore::new(0));
    lab.ledger.next("hotel", [Reply::Held(Arc::clone(&gate))]);
    let node = lab.node_with("n1", trip()?).await?;
    let id = node.start(&trip()?, "k", 7).await?.id;
    lab.ledger.called(&["book", "flight", "hotel", "car"]).await;
    node.cancel(id, "ann", "wrong dates").await?;
    gate.add_permits(1);
    let Ended::Compensated { reason } = end(&node, id).await? else {
        panic!("not undone");
    };
    assert!(reason.contains("cancelled by ann: wrong dates"), "{reason}");
    let calls = lab.ledger.calls();
    assert!(!calls.contains(&"pay".to_owned()), "{calls:?}");
    assert_eq!(
        calls[4..],
        ["undo car", "undo hotel", "undo flight", "undo book"]
    );
    Ok(())
}

async fn asked(cx: Context, _: u32) -> Result<Probe<String>, StepError> {
    let ledger = cx.shared::<Ledger>()?;
    ledger.call("probe", cx.key()).await?;
    Ok(Probe::Applied("found".into()))
}

#[tokio::test]
async fn a_probe_finds_what_an_unknown_outcome_hid() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("wire", [Reply::Unknown]);
    let saga = Saga::new("wire", 1)
        .step(step("wire").probe(asked))
        .build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    assert_eq!(result(&node, id).await?, "found");
    assert_eq!(lab.ledger.calls(), ["wire", "probe"]);
    Ok(())
}

#[tokio::test]
async fn what_is_not_idempotent_goes_to_a_person_when_in_doubt() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("wire", [Reply::Unknown]);
    let saga = Saga::new("wire", 1)
        .step(step("wire").not_idempotent())
        .build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    let Ended::Terminated { reason } = end(&node, id).await? else {
        panic!("not terminated");
    };
    assert!(reason.contains("no answer"), "{reason}");
    assert_eq!(lab.ledger.calls(), ["wire"]);
    Ok(())
}

async fn silent(cx: Context, _: u32) -> Result<String, StepError> {
    let ledger = cx.shared::<Ledger>()?;
    ledger.call("long", cx.key()).await?;
    if cx.attempt() > 1 {
        return Ok("at last".into());
    }
    cx.heartbeat();
    std::future::pending().await
}

#[tokio::test]
async fn a_call_that_falls_silent_is_dropped_long_before_its_time_limit() -> Checked {
    let lab = Lab::new().await?;
    let long = Step::new("long", silent)
        .heartbeat_within(Duration::from_millis(300))
        .time_limit(Duration::from_secs(3600))
        .retry(quick());
    let saga = Saga::new("long", 1).step(long).build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    assert_eq!(result(&node, id).await?, "at last");
    Ok(())
}

async fn slow_undo(cx: Context, input: u32, result: Option<String>) -> Result<(), StepError> {
    tokio::time::sleep(Duration::from_millis(900)).await;
    undo(cx, input, result).await
}

#[tokio::test]
async fn a_compensation_owes_no_heartbeat() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("pay", [Reply::Business]);
    let long = Step::new("long", act)
        .compensate(slow_undo)
        .heartbeat_within(Duration::from_millis(300));
    let saga = Saga::new("long", 1).step(long).step(step("pay")).build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    assert!(matches!(end(&node, id).await?, Ended::Compensated { .. }));
    assert_eq!(lab.ledger.calls(), ["long", "pay", "undo long"]);
    Ok(())
}

#[tokio::test]
async fn what_makes_no_progress_is_disabled_long_before_its_lifetime() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("b", vec![Reply::Transient; 1_000]);
    let saga = Saga::new("idle", 1)
        .step(step("b").retry(quick().until_the_lifetime_ends()))
        .idle(Duration::from_secs(2))
        .build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let id = node.start(&saga, "k", 7).await?.id;
    let Ended::Disabled { reason } = end(&node, id).await? else {
        panic!("not disabled");
    };
    assert!(reason.contains("no progress"), "{reason}");
    Ok(())
}

async fn result(node: &Node, id: TransactionId) -> Result<String, Box<dyn std::error::Error>> {
    let ended = end(node, id).await?;
    let Ended::Completed(output) = ended else {
        return Err(format!("{ended:?}").into());
    };
    Ok(output.read()?)
}
