//! The outbox to a receiver that misbehaves, on real Postgres and real HTTP.

mod stage;

use std::{collections::BTreeSet, time::Duration};

use orchestrator_lib::store::AlertKind;
use ring_notifier::{Hook, Target};
use stage::*;

/// Fast, so that a test ends soon.
fn oncall(receiver: &Receiver) -> Hook {
    Hook::new("oncall", Target::generic(receiver.address(), "s3cret"))
        .per_minute(6_000)
        .first_pause(Duration::from_millis(50))
}

#[tokio::test]
async fn a_hook_that_fails_is_asked_again_with_the_same_id() -> Checked {
    let (stage, receiver) = (Stage::new().await?, Receiver::start("").await?);
    receiver.next([Reply::Status(500), Reply::Status(302)]);
    stage.raise("terminated", 1).await?;
    let notifier = stage.notifier(vec![oncall(&receiver)])?;
    stage.wait_for_delivered(1).await?;
    notifier.stop().await?;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 3);
    let ids: BTreeSet<String> = requests
        .iter()
        .map(|r| r.json()["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1);
    Ok(())
}

#[tokio::test]
async fn wecom_that_refuses_in_a_200_is_asked_again() -> Checked {
    let stage = Stage::new().await?;
    let receiver = Receiver::start(r#"{"errcode":0,"errmsg":"ok"}"#).await?;
    receiver.next([Reply::Body(r#"{"errcode":-1,"errmsg":"system busy"}"#)]);
    stage.raise("terminated", 2).await?;
    let team = Hook::new("team", Target::wecom(receiver.address()))
        .per_minute(6_000)
        .first_pause(Duration::from_millis(50));
    let notifier = stage.notifier(vec![team])?;
    stage.wait_for_delivered(2).await?;
    notifier.stop().await?;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2, "both alerts in one message, twice");
    let content = requests[1].json()["markdown"]["content"].to_string();
    assert!(content.contains("2 terminated"), "{content}");
    Ok(())
}

#[tokio::test]
async fn two_notifiers_deliver_each_alert_once() -> Checked {
    let (stage, receiver) = (Stage::new().await?, Receiver::start("").await?);
    let one = stage.notifier(vec![oncall(&receiver)])?;
    let two = stage.notifier(vec![oncall(&receiver)])?;
    stage.raise("disabled", 40).await?;
    stage.wait_for_delivered(40).await?;
    one.stop().await?;
    two.stop().await?;
    let requests = receiver.requests();
    let ids: BTreeSet<String> = requests
        .iter()
        .map(|r| r.json()["id"].to_string())
        .collect();
    assert_eq!((requests.len(), ids.len()), (40, 40));
    Ok(())
}

#[tokio::test]
async fn a_notifier_killed_between_send_and_mark_leaves_it_to_another_with_the_same_id() -> Checked
{
    let (stage, receiver) = (Stage::new().await?, Receiver::start("").await?);
    receiver.next([Reply::Silence]);
    stage.raise("quarantined", 1).await?;
    let first = stage.notifier(vec![oncall(&receiver)])?;
    receiver.wait_for(1).await;
    first.kill().await;
    stage
        .sql("update ringsaga.alert_delivery set due_at = now()")
        .await?;
    let second = stage.notifier(vec![oncall(&receiver)])?;
    stage.wait_for_delivered(1).await?;
    second.stop().await?;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].json()["id"], requests[1].json()["id"]);
    Ok(())
}

#[tokio::test]
async fn a_hook_that_never_works_is_given_up_with_its_error_and_again_on_a_persons_word() -> Checked
{
    let (stage, receiver) = (Stage::new().await?, Receiver::start("").await?);
    receiver.next([Reply::Status(500), Reply::Status(500)]);
    stage.raise("terminated", 1).await?;
    let notifier = stage.notifier(vec![oncall(&receiver).attempts(2)])?;
    let alerts = stage.alerts()?;
    eventually("given up", async || {
        let listed = alerts.list(false, 10).await.unwrap_or_default();
        let delivery = listed.first().and_then(|line| line.delivery.clone());
        delivery.is_some_and(|d| d.given_up_at.is_some())
    })
    .await;
    let listed = alerts.list(false, 10).await?;
    let delivery = listed[0].delivery.as_ref().ok_or("no delivery")?;
    assert_eq!((delivery.hook.as_str(), delivery.attempts), ("oncall", 2));
    let error = delivery.error.clone().unwrap_or_default();
    assert!(
        error.contains("500") && !error.contains("693a91f6"),
        "{error}"
    );
    assert_eq!(alerts.try_again("oncall").await?, 1);
    stage.wait_for_delivered(1).await?;
    assert!(alerts.list(false, 10).await?.is_empty());
    notifier.stop().await
}

#[tokio::test]
async fn an_address_that_nobody_answers_at_is_not_in_the_error() -> Checked {
    let stage = Stage::new().await?;
    stage.raise("terminated", 1).await?;
    let nobody = Target::generic("http://127.0.0.1:9/hook?key=693a91f6", "s3cret");
    let hook = Hook::new("nobody", nobody).attempts(1);
    let notifier = stage.notifier(vec![hook])?;
    let alerts = stage.alerts()?;
    let mut error = String::new();
    eventually("an error", async || {
        let listed = alerts.list(false, 10).await.unwrap_or_default();
        let delivery = listed.first().and_then(|line| line.delivery.clone());
        error = delivery.and_then(|d| d.error).unwrap_or_default();
        !error.is_empty()
    })
    .await;
    assert!(!error.contains("693a91f6"), "{error}");
    notifier.stop().await
}

#[tokio::test]
async fn a_pause_that_a_receiver_asks_for_holds_all_its_alerts_back() -> Checked {
    let (stage, receiver) = (Stage::new().await?, Receiver::start("").await?);
    let other = Receiver::start("").await?;
    receiver.next([Reply::RetryAfter("3600")]);
    stage.raise("terminated", 5).await?;
    let hooks = vec![
        oncall(&receiver),
        Hook::new("other", Target::generic(other.address(), "s3cret")).per_minute(6_000),
    ];
    let notifier = stage.notifier(hooks)?;
    other.wait_for(5).await;
    stage.wait_for_delivered(5).await?;
    let alerts = stage.alerts()?;
    eventually("one attempt", async || {
        let listed = alerts.list(false, 10).await.unwrap_or_default();
        let tried = listed.iter().filter_map(|l| l.delivery.as_ref());
        tried.filter(|d| d.error.is_some()).count() == 1
    })
    .await;
    notifier.stop().await?;
    assert_eq!(receiver.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_hook_hears_only_the_kinds_it_asked_for() -> Checked {
    let (stage, receiver) = (Stage::new().await?, Receiver::start("").await?);
    stage.raise("disabled", 2).await?;
    stage.raise("restored", 2).await?;
    let hook = oncall(&receiver).only([AlertKind::Restored]);
    let notifier = stage.notifier(vec![hook])?;
    stage.wait_for_delivered(2).await?;
    notifier.stop().await?;
    let requests = receiver.requests();
    assert!(requests.iter().all(|r| r.json()["kind"] == "restored"));
    assert!(stage.alerts()?.list(false, 10).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_test_goes_straight_to_the_hook() -> Checked {
    let receiver = Receiver::start("").await?;
    let scope = ring_core::id::Scope {
        region: "eu".parse()?,
        cluster: "main".parse()?,
    };
    ring_notifier::send_test(&oncall(&receiver), &scope).await?;
    assert_eq!(receiver.requests()[0].json()["kind"], "test");
    receiver.next([Reply::Status(403)]);
    let refused = ring_notifier::send_test(&oncall(&receiver), &scope).await;
    assert!(refused.is_err_and(|e| e.to_string().contains("403")));
    Ok(())
}
