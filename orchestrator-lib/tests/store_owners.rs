//! One lease a process: death is written once, a renewal can't undo it, and nothing stays orphaned
//! under a living lease.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use ring_core::store::{Look, Renewed, Written};
use store_support::*;

#[tokio::test]
async fn the_dead_can_not_renew_and_open_a_new_incarnation_instead() -> Checked {
    let bench = Bench::new().await?;
    let dead = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    bench.kill(dead.me, &other).await?;
    assert_eq!(dead.store.renew(dead.me, LEASE).await?, Renewed::Dead);
    let again = dead.store.open(&process("a", &["buy"]), LEASE).await?;
    assert!(again > dead.me);
    assert!(matches!(
        dead.store.renew(again, LEASE).await?,
        Renewed::Held { .. }
    ));
    assert_eq!(dead.store.renew(dead.me, LEASE).await?, Renewed::Dead);
    Ok(())
}

/// An opening that is not answered in time is asked again, and both succeed: whichever the process
/// heard of can claim.
#[tokio::test]
async fn of_two_openings_that_overlap_each_can_claim() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.parked("buy", "one").await?;
    node.parked("buy", "two").await?;
    let later = node.store.open(&process("a", &["buy"]), LEASE).await?;
    assert_eq!(node.due(1).await?.len(), 1, "by the first");
    let store = node.store;
    let later = Node { store, me: later };
    assert_eq!(later.due(1).await?.len(), 1, "by the second");
    Ok(())
}

#[tokio::test]
async fn a_claim_without_a_lease_is_an_error_and_not_an_empty_answer() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.store.close_lease(node.me).await?;
    let error = node.due(1).await.unwrap_err();
    assert!(error.to_string().contains("claim"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_late_lease_that_nobody_buried_is_renewed() -> Checked {
    let bench = Bench::new().await?;
    let late = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    bench
        .run("update ringsaga.owner set lease_until = now() - interval '1 h' where instance = 'a'")
        .await?;
    assert!(matches!(
        late.store.renew(late.me, LEASE).await?,
        Renewed::Held { .. }
    ));
    assert_eq!(other.store.declare_dead(other.me).await?, []);
    Ok(())
}

/// Whatever the order of the two, either the renewal holds and nobody is buried, or the death
/// stands and the renewal is refused.
#[tokio::test]
async fn a_renewal_that_races_the_burial_ends_one_way_or_the_other() -> Checked {
    let bench = Bench::new().await?;
    let other = bench.node("other", &["buy"]).await?;
    let (mut held, mut dead) = (0, 0);
    for round in 0..40 {
        let racer = bench.node(&format!("r{round}"), &["buy"]).await?;
        bench
            .run(&format!(
                "update ringsaga.owner set lease_until = now() - interval '1 ms' \
                 where incarnation = {}",
                racer.me.0
            ))
            .await?;
        let (renewed, buried) = futures_util::try_join!(
            racer.store.renew(racer.me, LEASE),
            other.store.declare_dead(other.me),
        )?;
        match renewed {
            Renewed::Held { .. } => {
                assert_eq!(buried, []);
                held += 1;
            }
            Renewed::Dead => {
                assert_eq!(buried.len(), 1);
                dead += 1;
            }
        }
        let later = racer.store.renew(racer.me, LEASE).await?;
        assert_eq!(later == Renewed::Dead, !buried.is_empty());
        racer.store.close().await;
    }
    assert_eq!(held + dead, 40);
    Ok(())
}

/// The burial waits for nobody: an owner's row that a renewal holds is skipped.
#[tokio::test]
async fn a_renewal_under_way_protects_from_the_burial() -> Checked {
    let bench = Bench::new().await?;
    let late = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    bench
        .run("update ringsaga.owner set lease_until = now() - interval '1 s' where instance = 'a'")
        .await?;
    let mut session = bench.session().await?;
    let renewal = session.transaction().await?;
    renewal
        .execute(
            "update ringsaga.owner set lease_until = now() + interval '1 h' \
             where incarnation = $1 and dead_at is null",
            &[&late.me.0],
        )
        .await?;
    assert_eq!(other.store.declare_dead(other.me).await?, []);
    renewal.commit().await?;
    assert_eq!(other.store.declare_dead(other.me).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_stray_is_shown_by_the_renewal_and_goes_back_with_a_raised_epoch() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let stray = node.started("buy", "k").await?;
    let Renewed::Held { running, .. } = node.store.renew(node.me, LEASE).await? else {
        return Err("dead".into());
    };
    assert_eq!(running, [(stray.id, stray.fence)]);
    let back = node.store.hand_back(node.me, &running).await?;
    assert_eq!(back, [stray.id]);
    assert_eq!(node.store.hand_back(node.me, &running).await?, []);
    let late = node.store.write(next(&stray, 1)).await?;
    assert_eq!(late, Written::Lost, "a late answer is worthless");
    let row = node.due(1).await?.remove(0);
    assert!(!row.doubt, "nothing was called");
    assert_eq!(row.fence.epoch, 3);
    Ok(())
}

#[tokio::test]
async fn an_orderly_end_hands_everything_back_and_counts_no_death() -> Checked {
    let bench = Bench::new().await?;
    let ending = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    ending.started("buy", "k").await?;
    assert_eq!(ending.store.close_lease(ending.me).await?, 1);
    assert!(other.claim(Look::Orphans, 10).await?.rows.is_empty());
    let row = other.due(10).await?.remove(0);
    assert_eq!((row.deaths, row.doubt), (0, true));
    ending.store.close().await;
    assert!(ending.store.write(next(&row, 1)).await.is_err());
    Ok(())
}

#[tokio::test]
async fn the_long_dead_are_forgotten_unless_a_row_names_them() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let named = bench.node("named", &["buy"]).await?;
    let unnamed = bench.node("unnamed", &["buy"]).await?;
    named.started("buy", "k").await?;
    bench.kill(named.me, &node).await?;
    bench.kill(unnamed.me, &node).await?;
    assert_eq!(node.store.forget_dead().await?, 0, "only a day later");
    bench
        .run("update ringsaga.owner set dead_at = dead_at - interval '25 h'")
        .await?;
    assert_eq!(node.store.forget_dead().await?, 1);
    node.claim(Look::Orphans, 1).await?;
    assert_eq!(node.store.forget_dead().await?, 1);
    Ok(())
}
