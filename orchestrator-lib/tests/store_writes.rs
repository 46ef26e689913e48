//! Writes: guarded by epoch and nonce, recognised when sent again, and never hurt by a neighbour.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::time::Duration;

use orchestrator_lib::store::Woke;
use ring_core::{
    id::StepName,
    saga::{Ending, Payload, Text},
    store::{Look, To, Write, Written},
};
use store_support::*;
use uuid::Uuid;

const DONE: Written = Written::Done { wake_seq: 0 };
const ALREADY: Written = Written::Already { wake_seq: 0 };

#[tokio::test]
async fn a_write_sent_again_changes_nothing_and_says_so() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let first = next(&claimed, 1);
    assert_eq!(node.store.write(first.clone()).await?, DONE);
    assert_eq!(node.store.write(first.clone()).await?, ALREADY);
    let second = next(&claimed, 2);
    assert_eq!(node.store.write(second).await?, DONE);
    assert_eq!(node.store.write(first).await?, Written::Lost, "overtaken");
    let steps: i64 = bench.ask("select count(*) from ringsaga.step").await?;
    assert_eq!(steps, 2);
    Ok(())
}

#[tokio::test]
async fn parking_settling_and_handing_back_are_recognised_too() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    for (key, of) in [
        ("park", park as fn(&_, _) -> Write),
        ("settle", |c: &_, _| settle(c)),
        ("back", |c: &_, _| hand_back(c)),
    ] {
        let claimed = node.started("buy", key).await?;
        let write = of(&claimed, Duration::from_secs(60));
        assert_eq!(node.store.write(write.clone()).await?, DONE, "{key}");
        assert_eq!(node.store.write(write).await?, ALREADY, "{key}");
        let late = Write {
            number: 2,
            ..next(&claimed, 1)
        };
        assert_eq!(node.store.write(late).await?, Written::Lost, "{key}");
    }
    Ok(())
}

/// A claim by somebody else is under way when the old owner writes: it waits outside the batch and
/// then has lost, and no second record exists.
#[tokio::test]
async fn a_zombie_that_writes_while_its_row_is_claimed_records_nothing() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let mut other = bench.session().await?;
    let claim = other.transaction().await?;
    let id = claimed.id.0;
    claim
        .execute(
            "update ringsaga.transaction set epoch = epoch + 1, nonce = gen_random_uuid() \
             where id = $1",
            &[&id],
        )
        .await?;
    let zombie = tokio::spawn({
        let (store, write) = (node.store.clone(), next(&claimed, 1));
        async move { store.write(write).await }
    });
    // The writer has met the locked row once another write went through behind it.
    let neighbour = node.started("buy", "other").await?;
    assert_eq!(node.store.write(next(&neighbour, 1)).await?, DONE);
    assert!(!zombie.is_finished());
    claim.commit().await?;
    assert_eq!(zombie.await??, Written::Lost);
    let steps: i64 = bench
        .ask(&format!(
            "select count(*) from ringsaga.step where transaction = '{id}'"
        ))
        .await?;
    assert_eq!(steps, 0);
    Ok(())
}

#[tokio::test]
async fn a_row_held_and_let_go_is_written_after_all() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let mut other = bench.session().await?;
    let held = other.transaction().await?;
    held.execute(
        "select from ringsaga.transaction where id = $1 for update",
        &[&claimed.id.0],
    )
    .await?;
    let write = tokio::spawn({
        let (store, write) = (node.store.clone(), next(&claimed, 1));
        async move { store.write(write).await }
    });
    let neighbour = node.started("buy", "other").await?;
    assert_eq!(node.store.write(next(&neighbour, 1)).await?, DONE);
    held.rollback().await?;
    assert_eq!(write.await??, DONE);
    Ok(())
}

#[tokio::test]
async fn fenced_lost_and_malformed_rows_never_fail_their_neighbours() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let mut writes = Vec::new();
    let mut expected = Vec::new();
    for i in 0..40_u32 {
        let claimed = node.started("buy", &format!("k{i}")).await?;
        let mut write = next(&claimed, 1);
        let answer = match i % 4 {
            0 => DONE,
            1 => {
                write.fence.epoch += 1;
                Written::Lost
            }
            2 => {
                write.fence.nonce = nonce();
                Written::Lost
            }
            _ => {
                // There is no such row.
                write.id = ring_core::id::TransactionId(Uuid::new_v4());
                Written::Lost
            }
        };
        writes.push(write);
        expected.push(answer);
    }
    let bad = node.started("buy", "bad").await?;
    let broken = Write {
        to: To::Settle {
            ending: Ending::Completed(Payload::new("\"\0\"")?),
            why: None,
        },
        ..next(&bad, 1)
    };
    writes.push(broken);
    let tasks: Vec<_> = writes
        .into_iter()
        .map(|write| {
            let store = node.store.clone();
            tokio::spawn(async move { store.write(write).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await??);
    }
    let last = answers.pop();
    assert!(matches!(last, Some(Written::Invalid(_))), "{last:?}");
    assert_eq!(answers, expected);
    Ok(())
}

/// A trigger stands for data that only the server refuses: the batch is halved until it is found.
#[tokio::test]
async fn data_that_only_the_server_refuses_is_found_in_its_batch() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    bench
        .run("alter table ringsaga.step add constraint bad check (result <> '\"bad\"')")
        .await?;
    let mut tasks = Vec::new();
    for i in 0..64_u32 {
        let claimed = node.started("buy", &format!("k{i}")).await?;
        let mut write = next(&claimed, 1);
        if i == 37 {
            let mut entry = done(0);
            entry.attempt = ring_core::saga::Attempt::Done(Payload::new("\"bad\"")?);
            write.entry = Some(entry);
        }
        let store = node.store.clone();
        tasks.push(async move { store.write(write).await });
    }
    let answers = futures_util::future::join_all(tasks).await;
    for (i, answer) in answers.into_iter().enumerate() {
        match answer? {
            Written::Invalid(_) => assert_eq!(i, 37),
            other => assert_eq!(other, DONE, "{i}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn parking_and_settling_are_refused_after_a_wake_up_and_accepted_with_it() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let mut claimed = node.started("buy", "k").await?;
    let (wake, body) = (Uuid::new_v4(), Payload::null());
    let name = StepName::new("approve")?;
    let woke = node.store.signal(wake, claimed.id, &name, &body).await?;
    assert_eq!(woke, Woke::Stored(1));
    let again = node.store.signal(wake, claimed.id, &name, &body).await?;
    assert_eq!(again, Woke::Already);
    let woken = Written::Woken { wake_seq: 1 };
    let minute = Duration::from_secs(60);
    assert_eq!(node.store.write(park(&claimed, minute)).await?, woken);
    assert_eq!(node.store.write(settle(&claimed)).await?, woken);
    let moved = node.store.write(next(&claimed, 1)).await?;
    assert_eq!(moved, Written::Done { wake_seq: 1 }, "a record returns it");
    claimed.wake_seq = 1;
    claimed.position = at(1);
    let write = Write {
        number: 2,
        ..park(&claimed, minute)
    };
    assert_eq!(
        node.store.write(write).await?,
        Written::Done { wake_seq: 1 }
    );
    let woke = node
        .store
        .signal(Uuid::new_v4(), claimed.id, &name, &body)
        .await?;
    assert_eq!(woke, Woke::Stored(2));
    assert_eq!(node.due(10).await?.len(), 1, "a parked one is due at once");
    Ok(())
}

#[tokio::test]
async fn a_pause_never_reaches_beyond_the_lifetime() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let write = park(&claimed, Duration::from_secs(1_000_000));
    assert_eq!(node.store.write(write).await?, DONE);
    let within: bool = bench
        .ask("select due_at = expires_at from ringsaga.transaction")
        .await?;
    assert!(within);
    Ok(())
}

#[tokio::test]
async fn a_success_is_never_replaced_and_a_pause_is() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    assert_eq!(
        node.store.write(park(&claimed, Duration::ZERO)).await?,
        DONE
    );
    let again = node.due(1).await?.remove(0);
    assert_eq!(again.log.len(), 1);
    assert!(again.doubt);
    assert_eq!((again.attempts, again.fence.epoch), (1, 2));
    assert_eq!(node.store.write(next(&again, 1)).await?, DONE);
    // Whatever the row says later, the record of a success stays.
    bench
        .run("update ringsaga.transaction set seq = 0, last_write = 0")
        .await?;
    let mut other = park(&again, Duration::ZERO);
    other.number = 2;
    assert_eq!(node.store.write(other).await?, DONE);
    let row = node.due(1).await?.remove(0);
    assert_eq!(row.log.first(), Some(&done(0)));
    Ok(())
}

#[tokio::test]
async fn a_row_is_owned_or_due_or_settled_and_never_two_of_these() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.started("buy", "k").await?;
    for bad in [
        "due_at = now()",
        "owner = null",
        "state = 'paused'",
        "state = 'completed'",
        "settled_at = now()",
        "waiting_on = 'payment'",
    ] {
        let changed = bench
            .run(&format!("update ringsaga.transaction set {bad}"))
            .await;
        assert!(changed.is_err(), "{bad}");
    }
    Ok(())
}

#[tokio::test]
async fn what_waits_for_a_target_is_claimed_when_that_target_works_again() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let mut write = park(&claimed, Duration::from_secs(600));
    write.entry = None;
    if let To::Park {
        waiting_on, why, ..
    } = &mut write.to
    {
        *waiting_on = Some("payment".to_owned());
        *why = Text::new("the breaker is open");
    }
    assert_eq!(node.store.write(write).await?, DONE);
    assert!(node.due(10).await?.is_empty());
    let ranges = vec![ring_core::token::Range::RING];
    let waiting = |target: &str| Look::Waiting {
        target: target.to_owned(),
        ranges: ranges.clone(),
    };
    assert!(node.claim(waiting("stock"), 10).await?.rows.is_empty());
    assert_eq!(node.claim(waiting("payment"), 10).await?.rows.len(), 1);
    Ok(())
}
