//! Claims: nobody gets a row twice, only the dead lose theirs, and a row that kills its processes
//! ends up alone and then in quarantine.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::{collections::BTreeSet, time::Duration};

use ring_core::{
    saga::State,
    store::{Look, Taken, Written},
    token::Range,
};
use store_support::*;

const DUE: Duration = Duration::ZERO;

#[tokio::test]
async fn claims_that_race_for_the_same_rows_share_them_without_a_double() -> Checked {
    let bench = Bench::new().await?;
    let first = bench.node("a", &["buy"]).await?;
    let second = bench.node("b", &["buy"]).await?;
    for i in 0..200 {
        first.parked("buy", &format!("k{i}")).await?;
    }
    let mut taken = BTreeSet::new();
    let mut total = 0;
    while total < 200 {
        let (a, b, c) = futures_util::try_join!(first.due(17), second.due(17), async {
            second
                .claim(Look::Overdue { by: DUE }, 9)
                .await
                .map(|c| c.rows)
        },)?;
        let got = a.len() + b.len() + c.len();
        assert!(got > 0, "{total} of 200 and nothing more");
        total += got;
        taken.extend(a.into_iter().chain(b).chain(c).map(|row| row.id));
    }
    assert_eq!((taken.len(), total), (200, 200));
    Ok(())
}

/// Between looking and locking, the row is claimed by a session that had it locked: the claim
/// re-checks the whole predicate and leaves it.
#[tokio::test]
async fn a_row_claimed_between_look_and_lock_is_left() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let id = node.parked("buy", "k").await?;
    let mut other = bench.session().await?;
    let claim = other.transaction().await?;
    claim
        .execute(
            "update ringsaga.transaction set state = 'running', owner = 999, due_at = null, \
             epoch = 1 where id = $1",
            &[&id.0],
        )
        .await?;
    assert!(node.due(10).await?.is_empty(), "locked: skipped");
    claim.commit().await?;
    assert!(node.due(10).await?.is_empty(), "taken");
    Ok(())
}

#[tokio::test]
async fn only_tokens_of_the_given_ranges_are_claimed() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    for i in 0..60 {
        let mut start = start("buy", &format!("k{i}"), None);
        // Many in one slot, so that the edges cut through it.
        start.token = ring_core::token::Token(i64::from(i) - 30);
        node.store.start(None, start).await?;
    }
    let ranges = vec![Range::new(-10, -5)?, Range::new(7, 9)?];
    let claimed = node
        .claim(
            Look::Due {
                ranges: ranges.clone(),
            },
            100,
        )
        .await?;
    assert_eq!(claimed.rows.len(), 9);
    let backlog = node.store.backlog(&ranges).await?;
    assert_eq!(backlog.due, 0);
    assert_eq!(node.store.backlog(&[Range::RING]).await?.due, 51);
    Ok(())
}

#[tokio::test]
async fn a_living_owners_rows_are_not_claimable_however_late_its_lease_is() -> Checked {
    let bench = Bench::new().await?;
    let owner = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    let claimed = owner.started("buy", "k").await?;
    bench
        .run("update ringsaga.owner set lease_until = now() - interval '1 h' where instance = 'a'")
        .await?;
    assert!(other.claim(Look::Orphans, 10).await?.rows.is_empty());
    let written = owner.store.write(next(&claimed, 1)).await?;
    assert_eq!(written, Written::Done { wake_seq: 0 });
    Ok(())
}

#[tokio::test]
async fn the_rows_of_the_dead_go_on_elsewhere_in_doubt_and_fence_the_zombie() -> Checked {
    let bench = Bench::new().await?;
    let dead = bench.node("a", &["buy"]).await?;
    let heir = bench.node("b", &["buy"]).await?;
    let claimed = dead.started("buy", "k").await?;
    dead.store.write(next(&claimed, 1)).await?;
    bench.kill(dead.me, &heir).await?;
    let row = heir.claim(Look::Orphans, 10).await?.rows.remove(0);
    assert_eq!(row.taken, Taken::Orphaned);
    assert!(row.doubt);
    assert_eq!((row.position, row.deaths, row.fence.epoch), (at(1), 1, 2));
    assert_eq!(row.log, [done(0)]);
    assert_eq!(dead.store.write(next(&claimed, 2)).await?, Written::Lost);
    let written = heir.store.write(next(&row, 1)).await?;
    assert_eq!(written, Written::Done { wake_seq: 0 });
    Ok(())
}

#[tokio::test]
async fn nothing_is_claimed_or_started_without_a_lease() -> Checked {
    let bench = Bench::new().await?;
    let dead = bench.node("a", &["buy"]).await?;
    let other = bench.node("b", &["buy"]).await?;
    other.parked("buy", "k").await?;
    bench.kill(dead.me, &other).await?;
    assert!(dead.due(10).await?.is_empty());
    let begun = start("buy", "k2", Some(nonce()));
    let answer = dead.store.start(Some(dead.me), begun).await?;
    assert_eq!(answer, ring_core::store::Started::NoLease);
    Ok(())
}

#[tokio::test]
async fn rows_of_a_version_this_node_lacks_are_left_to_those_that_have_it() -> Checked {
    let bench = Bench::new().await?;
    let able = bench.node("able", &["buy", "sell"]).await?;
    let unable = bench.node("unable", &["buy"]).await?;
    able.parked("sell", "k").await?;
    assert!(unable.due(10).await?.is_empty());
    let hour = Duration::from_secs(3_600);
    assert!(
        unable
            .claim(Look::Overdue { by: DUE }, 10)
            .await?
            .rows
            .is_empty()
    );
    assert_eq!(unable.store.push_missing(unable.me, 10).await?.rows, 0);
    // Whoever owns the range may be the unable one: no waiting for it to be overdue.
    assert_eq!(
        able.claim(Look::Overdue { by: hour }, 10).await?.rows.len(),
        1
    );
    able.parked("buy", "k").await?;
    assert!(
        able.claim(Look::Overdue { by: hour }, 10)
            .await?
            .rows
            .is_empty(),
        "everybody can run this one: the ring's owner takes it"
    );
    Ok(())
}

#[tokio::test]
async fn what_nobody_living_can_run_is_pushed_and_reported_without_an_attempt() -> Checked {
    let bench = Bench::new().await?;
    let gone = bench.node("gone", &["sell"]).await?;
    let node = bench.node("a", &["buy"]).await?;
    gone.parked("sell", "parked").await?;
    gone.started("sell", "running").await?;
    bench.kill(gone.me, &node).await?;
    assert!(node.claim(Look::Orphans, 10).await?.rows.is_empty());
    assert_eq!(node.store.push_missing(node.me, 10).await?.rows, 2);
    assert_eq!(node.store.push_missing(node.me, 10).await?.rows, 0);
    let missing = node.store.missing().await?;
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].transactions, 2);
    let kept: i64 = bench
        .ask(
            "select count(*) from ringsaga.transaction where state = 'paused' and attempts = 0 \
             and due_at > now() + interval '50 s'",
        )
        .await?;
    assert_eq!(kept, 2);
    let back = bench.node("back", &["sell"]).await?;
    bench
        .run("update ringsaga.transaction set due_at = now()")
        .await?;
    let rows = back.due(10).await?;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows.iter().filter(|row| row.doubt).count(), 1, "the orphan");
    Ok(())
}

#[tokio::test]
async fn a_lifetime_that_is_over_disables_whatever_the_versions_of_the_looker() -> Checked {
    let bench = Bench::new().await?;
    let gone = bench.node("gone", &["sell"]).await?;
    let node = bench.node("a", &["buy"]).await?;
    node.parked("buy", "own").await?;
    gone.parked("sell", "foreign").await?;
    gone.started("sell", "orphan").await?;
    bench.kill(gone.me, &node).await?;
    bench
        .run(
            "update ringsaga.transaction set expires_at = now() - interval '1 s', \
             due_at = case when due_at is not null then now() - interval '2 s' end",
        )
        .await?;
    let ranges = vec![Range::RING];
    let claims = node.claim(Look::Due { ranges }, 10).await?;
    assert_eq!((claims.rows.len(), claims.disabled.len()), (0, 1));
    let pushed = node.store.push_missing(node.me, 10).await?;
    assert_eq!(pushed.disabled, 2);
    let id = claims.disabled[0];
    let outcome = node.store.outcomes(&[id]).await?.remove(0);
    assert_eq!(outcome.state, State::Disabled);
    assert_eq!(outcome.error.as_deref(), Some("its lifetime is over"));
    Ok(())
}

/// One transaction kills whoever runs it; fifty innocents run beside it. It ends in quarantine
/// after five deaths, the last three as the only suspect, and no innocent does.
#[tokio::test]
async fn a_killer_is_quarantined_and_innocents_are_not() -> Checked {
    let bench = Bench::new().await?;
    let undertaker = bench.node("undertaker", &[]).await?;
    let mut node = bench.node("n0", &["buy"]).await?;
    let killer = node.started("buy", "killer").await?.id;
    for i in 0..50 {
        node.started("buy", &format!("k{i}")).await?;
    }
    let mut quarantined = Vec::new();
    let mut deaths = 0;
    for round in 1..200 {
        bench.kill(node.me, &undertaker).await?;
        deaths += 1;
        node = bench.node(&format!("n{round}"), &["buy"]).await?;
        let mut runs_killer = false;
        loop {
            // Suspects one at a time; the others all at once.
            let claims = node.claim(Look::Orphans, 100).await?;
            quarantined.extend(claims.quarantined);
            let suspects = claims.rows.iter().filter(|row| row.deaths >= 2).count();
            assert!(suspects <= 1, "{suspects} suspects at once");
            let none = claims.rows.is_empty();
            for row in &claims.rows {
                if row.id == killer {
                    runs_killer = true;
                } else {
                    // An innocent that is reached before the process dies records its outcome.
                    let innocent = if deaths < 2 { None } else { Some(settle(row)) };
                    if let Some(write) = innocent {
                        node.store.write(write).await?;
                    }
                }
            }
            if none || runs_killer {
                break;
            }
        }
        if !runs_killer {
            break;
        }
    }
    assert_eq!(quarantined, [killer]);
    assert_eq!(deaths, 5);
    let innocents: i64 = bench
        .ask("select count(*) from ringsaga.transaction where state = 'quarantined'")
        .await?;
    assert_eq!(innocents, 1);
    Ok(())
}

#[tokio::test]
async fn a_second_suspect_is_not_claimed_while_one_runs() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.parked("buy", "one").await?;
    node.parked("buy", "two").await?;
    node.parked("buy", "innocent").await?;
    bench
        .run(
            "update ringsaga.transaction t set deaths = 2 from ringsaga.payload p \
             where p.transaction = t.id and p.key <> 'innocent'",
        )
        .await?;
    let look = || Look::Due {
        ranges: vec![Range::RING],
    };
    let none = node.claim_with(look(), 10, false).await?.rows;
    assert_eq!(none.iter().filter(|row| row.deaths >= 2).count(), 0);
    assert_eq!(none.len(), 1, "the innocent one");
    let first = node.claim(look(), 10).await?.rows;
    assert_eq!(first.len(), 1);
    let named: bool = bench
        .ask(&format!(
            "select suspect = '{}' from ringsaga.owner",
            first[0].id
        ))
        .await?;
    assert!(named, "its id stands in the owner's row");
    assert!(node.claim(look(), 10).await?.rows.is_empty());
    node.store.write(settle(&first[0])).await?;
    assert_eq!(node.claim(look(), 10).await?.rows.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_hand_back_keeps_the_deaths_and_a_recorded_outcome_forgets_them() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.parked("buy", "k").await?;
    bench
        .run("update ringsaga.transaction set deaths = 1")
        .await?;
    let row = node.due(1).await?.remove(0);
    node.store.write(hand_back(&row)).await?;
    let row = node.due(1).await?.remove(0);
    assert_eq!((row.deaths, row.fence.epoch), (1, 3));
    node.store.write(park(&row, DUE)).await?;
    assert_eq!(node.due(1).await?.remove(0).deaths, 0);
    Ok(())
}

/// The sweeper takes the oldest due ones, in whatever order their ids are.
#[tokio::test]
async fn a_sweep_takes_what_is_due_the_longest() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let mut ids = Vec::new();
    for i in 0..8 {
        ids.push(node.parked("buy", &format!("k{i}")).await?);
    }
    ids.sort_unstable();
    bench
        .run(
            "update ringsaga.transaction t set due_at = now() - r.n * interval '1 min' \
             from (select id, row_number() over (order by id) as n from ringsaga.transaction) r \
             where r.id = t.id",
        )
        .await?;
    let by = Duration::from_secs(1);
    let look = Look::Overdue { by };
    let mut taken = node.claim(look, 2).await?.rows;
    taken.sort_unstable_by_key(|row| row.id);
    let taken: Vec<_> = taken.iter().map(|row| row.id).collect();
    assert_eq!(taken, ids[6..]);
    Ok(())
}

/// A row that can't be read stays where it is; its neighbours go on.
#[tokio::test]
async fn a_row_that_can_not_be_read_blocks_no_other() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    for key in ["seq", "input", "log", "good"] {
        node.parked("buy", key).await?;
    }
    bench
        .run(
            "update ringsaga.transaction t set seq = 4294967296 from ringsaga.payload p \
             where p.transaction = t.id and p.key = 'seq'; \
             update ringsaga.payload set input = repeat('x', 300000) where key = 'input'; \
             insert into ringsaga.step select transaction, 'forward', -1, 'step', 'done', null, \
             false, '1', null, 1, now(), now(), 1, now() from ringsaga.payload where key = 'log'",
        )
        .await?;
    let rows = node.due(10).await?;
    assert_eq!(rows.len(), 1);
    let written = node.store.write(next(&rows[0], 1)).await?;
    assert!(matches!(written, Written::Done { .. }));
    Ok(())
}
