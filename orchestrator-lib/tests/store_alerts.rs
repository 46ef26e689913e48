//! The outbox of alerts: written by the commit that makes it true, raised once, and never on the
//! way of a good step.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::time::Duration;

use orchestrator_lib::store::{Alert, AlertKind, Alerts};
use ring_core::{
    saga::{Direction, Ending, Position, Text},
    store::{Claimed, To, Write, Written},
};
use store_support::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn terminated(claimed: &Claimed) -> Write {
    Write {
        to: To::Settle {
            ending: Ending::Terminated,
            why: Some(Text::new("card expired")),
        },
        entry: None,
        ..next(claimed, 1)
    }
}

async fn all(bench: &Bench) -> Result<Vec<Alert>, Box<dyn std::error::Error>> {
    let alerts = Alerts::new(&bench.config, scope())?;
    let listed = alerts.list(true, 1_000).await?;
    Ok(listed.into_iter().map(|line| line.alert).collect())
}

#[tokio::test]
async fn an_end_that_needs_a_person_leaves_one_alert_in_the_same_commit() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let good = node.started("buy", "good").await?;
    let bad = node.started("buy", "bad").await?;
    let write = terminated(&bad);
    assert!(matches!(
        node.store.write(settle(&good)).await?,
        Written::Done { .. }
    ));
    assert!(matches!(
        node.store.write(write.clone()).await?,
        Written::Done { .. }
    ));
    // Its answer was lost, so it is sent again.
    assert!(matches!(
        node.store.write(write).await?,
        Written::Already { .. }
    ));
    let alerts = all(&bench).await?;
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0].kind, AlertKind::IrreversibleFailed);
    assert_eq!(alerts[0].transaction, Some(bad.id));
    assert_eq!(alerts[0].saga.as_deref(), Some("buy"));
    assert_eq!(alerts[0].text, "card expired");
    Ok(())
}

#[tokio::test]
async fn an_alert_is_told_to_one_node_once() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    let bad = node.started("buy", "bad").await?;
    node.store.write(terminated(&bad)).await?;
    let (one, two) = tokio::join!(node.store.untold_alerts(9), other.store.untold_alerts(9));
    assert_eq!(one?.len() + two?.len(), 1);
    assert!(node.store.untold_alerts(9).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_missing_executor_is_raised_once_a_day_by_all_nodes_together() -> Checked {
    let bench = Bench::new().await?;
    let gone = bench.node("gone", &["sell"]).await?;
    let (one, two) = (
        bench.node("a", &["buy"]).await?,
        bench.node("b", &["buy"]).await?,
    );
    gone.started("sell", "orphan").await?;
    bench.kill(gone.me, &one).await?;
    let missing = one.store.missing().await?;
    let raised = tokio::join!(
        one.store.raise_missing(&missing),
        two.store.raise_missing(&missing),
    );
    assert_eq!(raised.0? + raised.1?, 1);
    bench
        .run("update ringsaga.alert_raised set at = at - interval '25 h'")
        .await?;
    assert_eq!(one.store.raise_missing(&missing).await?, 1);
    let alerts = all(&bench).await?;
    assert_eq!(alerts.len(), 2);
    assert!(
        alerts[0].text.contains("sell v1 missing: 1 transactions"),
        "{alerts:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_compensation_that_stands_still_is_raised_after_the_limit_and_once_a_day() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let stuck = node.started("buy", "stuck").await?;
    node.started("buy", "forward").await?;
    let write = Write {
        to: To::Next(Position {
            direction: Direction::Compensating,
            seq: 0,
        }),
        entry: None,
        ..next(&stuck, 1)
    };
    node.store.write(write).await?;
    let age = "update ringsaga.transaction set created_at = now() - interval '3 h'";
    bench.run(age).await?;
    assert_eq!(
        node.store.raise_compensating(HOUR).await?,
        0,
        "it has just begun"
    );
    let age = "update ringsaga.transaction set opened_at = now() - interval '2 h'";
    bench.run(age).await?;
    assert_eq!(node.store.raise_compensating(HOUR).await?, 1);
    assert_eq!(node.store.raise_compensating(HOUR).await?, 0);
    let alerts = all(&bench).await?;
    assert_eq!(alerts[0].kind, AlertKind::CompensationFailing);
    assert_eq!(alerts[0].transaction, Some(stuck.id));
    Ok(())
}

#[tokio::test]
async fn old_alerts_are_forgotten_with_their_deliveries() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let bad = node.started("buy", "bad").await?;
    node.store.write(terminated(&bad)).await?;
    let alerts = Alerts::new(&bench.config, scope())?;
    let wanted = [("team", AlertKind::IrreversibleFailed)];
    assert_eq!(alerts.spread(&wanted).await?, 1);
    assert_eq!(node.store.forget_alerts(HOUR).await?, 0);
    bench
        .run("update ringsaga.alert set at = at - interval '2 h'")
        .await?;
    assert_eq!(node.store.forget_alerts(HOUR).await?, 1);
    let left: i64 = bench
        .ask("select count(*) from ringsaga.alert_delivery")
        .await?;
    assert_eq!(left, 0);
    Ok(())
}

#[tokio::test]
async fn a_good_step_queues_no_trigger() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.started("buy", "good").await?;
    let session = bench.session().await?;
    let step = "explain (analyze, costs off) update ringsaga.transaction \
                set state = 'running', seq = seq + 1";
    let rows = session.query(step, &[]).await?;
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(!plan.concat().contains("Trigger"), "{plan:?}");
    Ok(())
}
