//! Orders that reach further than a retry: policies, wake-ups, closing, purging, moving, and
//! orders about many.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::{num::NonZeroU32, time::Duration};

use orchestrator_lib::store::{
    Answer, Bulk, By, Closed, Filter, Operator, Policy, Purge, Refusal, Verb,
};
use ring_core::{
    id::{Cluster, Region, SagaName, Scope},
    saga::State,
    store::Written,
};
use store_support::{desk::*, *};
use uuid::Uuid;

#[tokio::test]
async fn a_policy_of_its_own_is_read_with_the_next_claim() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let id = node.parked("buy", "k").await?;
    let policy = Policy::new(Some(3), Duration::from_millis(5), HOUR)?;
    assert!(matches!(
        ordered(&desk, &Verb::Policy(Some(policy)), id).await,
        Answer::Done { .. }
    ));
    let claimed = node.due(10).await?;
    let retry = claimed[0].retry.unwrap();
    assert_eq!(
        (retry.attempts, retry.base, retry.cap),
        (Some(3), policy.base, policy.cap)
    );
    // Who runs it is not disturbed.
    assert!(matches!(
        ordered(&desk, &Verb::Policy(None), id).await,
        Answer::Done { .. }
    ));
    assert!(matches!(
        node.store.write(next(&claimed[0], 1)).await?,
        Written::Done { .. }
    ));
    assert!(Policy::new(None, HOUR, Duration::from_secs(1)).is_err());
    Ok(())
}

#[tokio::test]
async fn a_signal_counts_once_and_its_owner_hears_it() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let run = node.started("buy", "k").await?;
    let signal = Verb::Signal {
        id: Uuid::new_v4(),
        name: step("approve"),
        value: json("true"),
    };
    for _ in 0..2 {
        assert!(matches!(
            ordered(&desk, &signal, run.id).await,
            Answer::Done { .. }
        ));
    }
    let cancel = Verb::Cancel { id: Uuid::new_v4() };
    assert!(matches!(
        ordered(&desk, &cancel, run.id).await,
        Answer::Done { .. }
    ));
    let (heard, wakes) = node.store.hear(run.id).await?;
    assert_eq!((heard, wakes.len()), (2, 2));
    let audited: i64 = bench.ask("select count(*) from ringsaga.audit").await?;
    assert_eq!(audited, 2);
    let other = node.parked("buy", "other").await?;
    let again = ordered(&desk, &cancel, other).await;
    assert!(matches!(again, Answer::Done { .. }));
    let (heard, _) = node.store.hear(other).await?;
    assert_eq!(heard, 1, "one order, two transactions");
    let taken = refused(ordered(&desk, &signal, other).await);
    assert!(matches!(taken, Refusal::State { .. }), "another's signal");
    let good = completed(&node, "good").await?;
    assert!(matches!(
        refused(ordered(&desk, &cancel, good).await),
        Refusal::State { .. }
    ));
    Ok(())
}

#[tokio::test]
async fn what_is_closed_by_hand_tells_the_parent_that_waits() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let parent = paused(&node, "parent").await?.id;
    let child = terminated(&node, "child", "no").await?;
    let born = format!(
        "update ringsaga.transaction set parent = '{parent}', parent_step = 'ship' \
         where id = '{child}'"
    );
    bench.run(&born).await?;
    let close = Verb::Close {
        end: Closed::Completed(json("7")),
        reference: "ticket 12".to_owned(),
    };
    assert!(matches!(
        ordered(&desk, &close, child).await,
        Answer::Done { .. }
    ));
    let shown = desk.show(child).await?.unwrap();
    assert_eq!(
        (shown.summary.state, shown.result.as_deref()),
        (State::Completed, Some("7"))
    );
    let claimed = node.due(10).await?;
    assert_eq!(claimed.iter().map(|c| c.id).collect::<Vec<_>>(), [parent]);
    assert_eq!(claimed[0].wakes.len(), 1, "{:?}", claimed[0].wakes);
    assert!(matches!(
        refused(ordered(&desk, &close, parent).await),
        Refusal::State { .. }
    ));
    Ok(())
}

#[tokio::test]
async fn a_purge_takes_only_what_ended_well_and_is_old() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let old = completed(&node, "old").await?;
    let young = completed(&node, "young").await?;
    let long = completed(&node, "long").await?;
    let bad = terminated(&node, "bad", "no").await?;
    let age = "update ringsaga.transaction set created_at = created_at - interval '3 days', \
               expires_at = expires_at - interval '3 days', \
               settled_at = settled_at - interval '2 days' where id <> ";
    bench
        .run(&format!("{age} '{young}' and settled_at is not null"))
        .await?;
    let live = format!(
        "update ringsaga.transaction set expires_at = now() + interval '9 days' where id = '{long}'"
    );
    bench.run(&live).await?;
    let purge = Purge {
        service: None,
        saga: Some(SagaName::new("sell")?),
        retention: HOUR,
    };
    let others = desk.purge(&purge, None, &eva()).await?;
    assert_eq!(others.transactions, 0, "another saga's are left");
    let purge = Purge {
        saga: Some(SagaName::new("buy")?),
        ..purge
    };
    let purged = desk.purge(&purge, None, &eva()).await?;
    assert_eq!((purged.transactions, purged.next), (1, None));
    for (id, there) in [(old, false), (young, true), (long, true), (bad, true)] {
        assert_eq!(desk.show(id).await?.is_some(), there, "{id}");
    }
    let left = format!(
        "select (select count(*) from ringsaga.payload where transaction = '{old}') \
         + (select count(*) from ringsaga.step where transaction = '{old}') \
         + (select count(*) from ringsaga.idempotency where transaction = '{old}')"
    );
    assert_eq!(bench.ask::<i64>(&left).await?, 0);
    assert!(
        node.started("buy", "old").await.is_ok(),
        "the key is free again"
    );
    Ok(())
}

#[tokio::test]
async fn rehoming_waits_for_the_dead_and_fences_what_still_runs_there() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let (run, id) = (
        node.started("buy", "run").await?,
        paused(&node, "tried").await?.id,
    );
    let to = Scope {
        region: Region::new("us")?,
        cluster: Cluster::new("main")?,
    };
    let verb = Verb::Rehome { to: to.clone() };
    for id in [run.id, id] {
        let lives = refused(ordered(&desk, &verb, id).await);
        assert!(
            matches!(lives, Refusal::State { .. }),
            "its owners live: {lives:?}"
        );
    }
    bench
        .run("update ringsaga.owner set lease_until = now() - interval '1 min'")
        .await?;
    for id in [run.id, id] {
        assert!(matches!(
            ordered(&desk, &verb, id).await,
            Answer::Done { .. }
        ));
    }
    assert_eq!(node.store.write(next(&run, 1)).await?, Written::Lost);
    assert!(desk.show(run.id).await?.is_none());
    let there = Operator::new(&bench.config, to)?;
    let shown = there.show(run.id).await?.unwrap();
    assert_eq!(
        (shown.summary.state, shown.summary.doubt),
        (State::Paused, true)
    );
    assert_eq!(there.keyed("run", None, None).await?.len(), 1);
    assert_eq!(desk.keyed("run", None, None).await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_bulk_restore_is_previewed_bounded_told_row_by_row_and_safe_to_repeat() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    for n in 0..5 {
        terminated(&node, &format!("bad-{n}"), "no").await?;
    }
    completed(&node, "good").await?;
    let bulk = |most| Bulk {
        filter: Filter::default(),
        verb: restore(),
        most,
        rate: NonZeroU32::new(1_000).unwrap(),
    };
    let preview = desk.preview(&bulk(3), 2).await?;
    assert_eq!(
        (preview.count, preview.more, preview.first.len()),
        (3, true, 2)
    );
    let mut told = 0;
    let tally = desk.order_all(&bulk(3), &eva(), |_, _| told += 1).await?;
    assert_eq!((tally.done, told), (3, 3));
    let tally = desk.order_all(&bulk(10), &eva(), |_, _| told += 1).await?;
    assert_eq!((tally.done, tally.refused, tally.failed), (2, 0, 0));
    let tally = desk.order_all(&bulk(10), &eva(), |_, _| told += 1).await?;
    assert_eq!((tally.done, told), (0, 5));
    Ok(())
}

#[test]
fn who_and_why_must_be_said() {
    assert_eq!(By::new(" ", "x").unwrap_err().what, "actor");
    assert_eq!(By::new("eva", "").unwrap_err().what, "reason");
    assert!(By::new("eva", &"x".repeat(1_001)).is_err());
}
