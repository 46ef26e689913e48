//! From a saga that fails to the receiver's hands: a real engine, a real store, real HTTP.

mod stage;
#[path = "../../orchestrator-lib/tests/support/mod.rs"]
mod support;

use std::time::Duration;

use orchestrator_lib::{
    Recovery, Saga, Step,
    store::{Alerts, Answer, By, Operator, Verb},
};
use ring_notifier::{Hook, SIGNATURE, TIMESTAMP, Target, signature};
use stage::{Checked, Receiver, Running, eventually, session};
use support::{Lab, Reply, act, end, quick, saga};

const SECRET: &str = "a secret that both sides know";

fn oncall(receiver: &Receiver) -> Vec<Hook> {
    let target = Target::generic(receiver.address(), SECRET);
    let hook = Hook::new("oncall", target).per_minute(6_000);
    vec![hook.link("https://console.example/tx/{tx}")]
}

fn scope(lab: &Lab) -> Result<ring_core::id::Scope, Box<dyn std::error::Error>> {
    Ok(ring_core::id::Scope {
        region: lab.scope.region.parse()?,
        cluster: lab.scope.cluster.parse()?,
    })
}

fn alerts(lab: &Lab) -> Result<Alerts, Box<dyn std::error::Error>> {
    let config = orchestrator_lib::store::Config::new(lab.database.url());
    Ok(Alerts::new(&config, scope(lab)?)?)
}

#[tokio::test]
async fn a_terminated_transaction_is_told_once_and_signed_and_so_is_its_restoring() -> Checked {
    let (lab, receiver) = (Lab::new().await?, Receiver::start("").await?);
    lab.ledger.next("c", [Reply::Business]);
    lab.ledger.next("undo b", [Reply::Persistent]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    end(&node, started.id).await?;
    let notifier = Running::start(alerts(&lab)?, oncall(&receiver));
    let request = receiver.wait_for(1).await.remove(0);

    let body = request.json();
    let id = started.id.to_string();
    assert_eq!(body["kind"], "terminated");
    assert_eq!(body["tx"], id.as_str());
    assert_eq!(body["link"], format!("https://console.example/tx/{id}"));
    assert_eq!(body["saga"], "three-steps");
    assert_eq!(body["step"], "b");
    assert_eq!(body["region"], lab.scope.region.as_str());
    let text = body["text"].to_string();
    assert!(text.contains("no such account"), "{text}");
    let signed = signature(&SECRET.into(), request.header(TIMESTAMP), &request.body);
    assert_eq!(request.header(SIGNATURE), format!("sha256={signed}"));

    let config = orchestrator_lib::store::Config::new(lab.database.url());
    let operator = Operator::new(&config, scope(&lab)?)?;
    let shown = operator.show(started.id).await?.ok_or("not there")?;
    let day = Duration::from_secs(86_400);
    let verb = Verb::Restore {
        lifetime: day,
        not_applied: false,
    };
    let by = By::new("eva", "card renewed")?;
    let answer = operator.order(&verb, started.id, shown.epoch, &by).await?;
    assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    let requests = receiver.wait_for(2).await;
    assert_eq!(requests[1].json()["kind"], "restored");
    end(&node, started.id).await?;
    node.drain().await;
    notifier.stop().await?;
    assert_eq!(receiver.requests().len(), 2, "each was told once");
    Ok(())
}

#[tokio::test]
async fn an_irreversible_step_that_fails_is_a_kind_of_its_own() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("pay", [Reply::Business]);
    let saga = Saga::<u32>::new("payout", 1)
        .step(Step::new("pay", act).recovery(Recovery::Irreversible))
        .build()?;
    let node = lab.node_with("n1", saga.clone()).await?;
    let started = node.start(&saga, "k", 7).await?;
    end(&node, started.id).await?;
    let listed = alerts(&lab)?.list(false, 10).await?;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].alert.kind.as_str(), "irreversible-failed");
    assert_eq!(listed[0].alert.step.as_deref(), Some("pay"));
    node.drain().await;
    Ok(())
}

#[tokio::test]
async fn a_state_that_was_rolled_back_leaves_no_alert() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("c", [Reply::Business]);
    lab.ledger.next("undo b", [Reply::Persistent]);
    let node = lab.node("n1").await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    end(&node, started.id).await?;
    lab.sql("delete from ringsaga.alert").await?;
    let again = "update ringsaga.transaction set state = 'disabled', epoch = epoch + 1";
    lab.sql(&format!("begin; {again}; rollback")).await?;
    assert!(alerts(&lab)?.list(true, 10).await?.is_empty());
    lab.sql(again).await?;
    assert_eq!(alerts(&lab)?.list(true, 10).await?.len(), 1);
    node.drain().await;
    Ok(())
}

#[tokio::test]
async fn good_ends_raise_nothing_and_what_was_raised_is_counted_by_a_node() -> Checked {
    let lab = Lab::new().await?;
    let node = lab.node("n1").await?;
    let good = node.start(&saga(quick()).build()?, "good", 7).await?;
    end(&node, good.id).await?;
    assert!(alerts(&lab)?.list(true, 10).await?.is_empty());
    lab.ledger.next("c", [Reply::Business]);
    lab.ledger.next("undo b", [Reply::Persistent]);
    let bad = node.start(&saga(quick()).build()?, "bad", 7).await?;
    end(&node, bad.id).await?;
    let session = session(lab.database.url()).await?;
    eventually("told", async || {
        let asked = "select from ringsaga.alert where told_at is not null";
        session
            .query(asked, &[])
            .await
            .is_ok_and(|rows| rows.len() == 1)
    })
    .await;
    node.drain().await;
    Ok(())
}
