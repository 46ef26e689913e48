//! What goes over NATS, and that sagas run without a master, too.

mod support;

use std::time::Duration;

use futures_util::StreamExt as _;
use orchestrator_lib::{Node, Saga, Step};
use ring_local::Role;
use support::{Checked, LONG, Lab, Reply, act, end, quick, saga};

impl Lab {
    async fn heard(&self) -> Result<async_nats::Subscriber, Box<dyn std::error::Error>> {
        let at = self.set.addresses();
        let password = at.nats_password(Role::Observer);
        let client = async_nats::ConnectOptions::with_user_and_password(
            Role::Observer.user().into(),
            password,
        )
        .custom_inbox_prefix(Role::Observer.inbox_prefix())
        .connect(at.nats_url.as_str())
        .await?;
        let subject = format!("ring.{}.{}.event.>", self.scope.region, self.scope.cluster);
        let heard = client.subscribe(subject).await?;
        client.flush().await?;
        Ok(heard)
    }
}

async fn event(
    heard: &mut async_nats::Subscriber,
    kind: &str,
) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let found = async {
        while let Some(message) = heard.next().await {
            let body: serde_json::Value = serde_json::from_slice(&message.payload)?;
            if body["kind"] == kind {
                return Ok(body);
            }
        }
        Err("the subscription ended".into())
    };
    tokio::time::timeout(LONG, found).await?
}

#[tokio::test]
async fn a_terminated_transaction_is_an_event_without_its_payload() -> Checked {
    let lab = Lab::new().await?;
    let mut heard = lab.heard().await?;
    lab.ledger.next("c", [Reply::Business]);
    lab.ledger.next("undo b", [Reply::Persistent]);
    let mut config = lab.config("n1")?;
    config.nats = Some(lab.nats());
    let node = Node::builder(config)
        .saga(saga(quick()).build()?)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let event = event(&mut heard, "tx-terminated").await?;
    assert_eq!(event["transaction"], started.id.to_string());
    assert_eq!(event["reason"], "no such account");
    assert_eq!(event["by"]["id"], "n1");
    Ok(())
}

#[tokio::test]
async fn without_a_master_sagas_run_and_are_retried_and_the_node_says_degraded() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("b", vec![Reply::Transient; 4]);
    let mut config = lab.config("n1")?;
    config.nats = Some(lab.nats());
    let node = Node::builder(config)
        .saga(saga(quick()).build()?)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    assert!(end(&node, started.id).await?.is_completed());
    assert_eq!(node.ready(), Vec::<String>::new());
    let degraded = node.degraded();
    assert!(degraded.iter().any(|r| r.contains("slave")), "{degraded:?}");
    node.drain().await;
    assert!(node.ended().await.is_ok());
    Ok(())
}

#[tokio::test]
async fn what_no_live_node_can_run_is_told_and_goes_on_when_one_can() -> Checked {
    let lab = Lab::new().await?;
    let mut heard = lab.heard().await?;
    lab.ledger
        .next("a", [Reply::Slow(Duration::from_secs(3600))]);
    let old = lab.node("n1").await?;
    let started = old.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("a", 1).await;
    old.drain().await;
    let other = Saga::<u32>::new("other", 1)
        .step(Step::new("a", act))
        .build()?;
    let mut config = lab.config("n2")?;
    config.nats = Some(lab.nats());
    let node = Node::builder(config)
        .saga(other)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let event = event(&mut heard, "executor-missing").await?;
    assert_eq!(event["saga"], "three-steps");
    assert_eq!(event["transactions"], 1);
    let back = lab.node("n3").await?;
    // It was pushed a minute; nobody wants to wait that long here.
    lab.sql("update ringsaga.transaction set due_at = now() where state = 'paused'")
        .await?;
    assert!(end(&back, started.id).await?.is_completed());
    node.drain().await;
    Ok(())
}

#[tokio::test]
async fn a_service_without_a_retry_node_is_told() -> Checked {
    let lab = Lab::new().await?;
    let mut heard = lab.heard().await?;
    lab.ledger.next("a", vec![Reply::Transient; 3]);
    let mut config = lab.config("n1")?;
    config.nats = Some(lab.nats());
    let node = Node::builder(config)
        .saga(saga(quick()).build()?)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    node.start(&saga(quick()).build()?, "k", 7).await?;
    let event = event(&mut heard, "retry-node-missing").await?;
    assert_eq!(event["transactions"], 1);
    Ok(())
}

#[tokio::test]
async fn a_target_that_goes_down_and_comes_back_is_told_once_each() -> Checked {
    let lab = Lab::new().await?;
    let mut heard = lab.heard().await?;
    let saga = Saga::<u32>::new("pay", 1)
        .step(Step::new("a", act).retry(quick()).target("payment"))
        .build()?;
    let mut config = lab.config("n1")?;
    config.nats = Some(lab.nats());
    let node = Node::builder(config)
        .saga(saga.clone())
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    // Five in a row open the breaker; the rest are probes.
    lab.ledger.next("a", vec![Reply::Transient; 9]);
    let mut all = Vec::new();
    for n in 0..10 {
        all.push(node.start(&saga, format!("k{n}"), n).await?.id);
    }
    let down = event(&mut heard, "target-down").await?;
    assert_eq!(down["target"], "payment");
    assert_eq!(down["by"]["id"], "n1");
    let mut others = Vec::new();
    let up = async {
        while let Some(message) = heard.next().await {
            let body: serde_json::Value = serde_json::from_slice(&message.payload)?;
            if body["kind"] == "target-up" {
                return Ok(body);
            }
            others.push(body["kind"].clone());
        }
        Err::<_, Box<dyn std::error::Error>>("the subscription ended".into())
    };
    let up = tokio::time::timeout(LONG, up).await??;
    assert_eq!(up["target"], "payment");
    assert!(
        !others.iter().any(|kind| kind == "target-down"),
        "{others:?}"
    );
    for id in all {
        assert!(end(&node, id).await?.is_completed());
    }
    Ok(())
}
