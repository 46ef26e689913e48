//! A parent that undoes its child while the child ends: the child goes back from its very last
//! step, whichever comes first.

use std::time::Duration;

use orchestrator_lib::store::{ChildStarted, Error};
use ring_core::{
    id::StepName,
    saga::State,
    store::{Claimed, Written},
};
use tokio::task::JoinHandle;

use super::{
    Rules,
    lane::{Fallible, Lane},
};
use crate::store_support::{self as support, Checked, LEASE, Node};

const KEY: &str = "the parent's step";

/// A parent's child that did step 0 and is about to end with step 1.
async fn child(lane: &Lane) -> Fallible<Claimed> {
    let process = support::process("first", &["buy"]);
    let me = lane.keeper.store.open(&process, LEASE).await?;
    let node = Node {
        store: lane.keeper.store.clone(),
        me,
    };
    let parent = node.started("buy", "parent").await?;
    let start = support::start("buy", KEY, None);
    let of = (parent.id, parent.fence);
    let step = StepName::new("ship")?;
    let begun = node.store.start_child(of, &step, &start).await?;
    assert_eq!(begun, ChildStarted::There);
    let mut child = node.due(1).await?.remove(0);
    node.store.write(support::next(&child, 1)).await?;
    child.position = support::at(1);
    Ok(child)
}

fn undo(lane: &Lane) -> JoinHandle<Result<Option<State>, Error>> {
    let store = lane.actors[1].store.clone();
    tokio::spawn(async move {
        let saga = support::capability("buy").saga;
        store.undo_child(&saga, KEY, Duration::from_secs(60)).await
    })
}

/// Somebody waits for such a lock in this lane's database; other tests share the server.
async fn waits(lane: &Lane, for_what: &str) -> Fallible<()> {
    let waiting = format!(
        "select count(*) from pg_stat_activity \
         where datname = current_database() and wait_event_type = 'Lock' and {for_what}"
    );
    for _ in 0..5_000 {
        if lane.desk.query_one(&waiting, &[]).await?.get::<_, i64>(0) > 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err("nobody waits".into())
}

/// The child's end is held before its commit, the parent's order comes and waits, both go on.
/// Returns how the child stands then.
async fn undone_while_it_ends(rules: Rules) -> Fallible<(String, String, i64)> {
    let mut lane = Lane::new(rules, "").await?;
    let child = child(&lane).await?;
    let close = "select pg_advisory_lock(ascii('x'), 1)";
    lane.desk.query(close, &[]).await?;
    let mut write = support::settle(&child);
    write.number = 2;
    let store = lane.actors[0].store.clone();
    let ends = tokio::spawn(async move { store.write(write).await });
    waits(&lane, "wait_event = 'advisory'").await?;
    let undone = undo(&lane);
    waits(&lane, "wait_event <> 'advisory'").await?;
    let open = "select pg_advisory_unlock_all()";
    lane.desk.query(open, &[]).await?;
    assert_eq!(ends.await??, Written::Done { wake_seq: 0 });
    assert!(undone.await??.is_some(), "the child is there");
    let row = "select state, direction, seq from ringsaga.transaction where id = $1";
    let row = lane.desk.query_one(row, &[&child.id.0]).await?;
    let stands = (row.get("state"), row.get("direction"), row.get("seq"));
    lane.clear(&[]).await?;
    lane.close().await;
    Ok(stands)
}

#[tokio::test]
async fn a_child_undone_while_it_ends_goes_back_from_its_last_step() -> Checked {
    let (state, direction, seq) = undone_while_it_ends(Rules::default()).await?;
    let stands = (state.as_str(), direction.as_str(), seq);
    assert_eq!(stands, ("paused", "compensating", 1));
    Ok(())
}

#[tokio::test]
async fn the_suite_notices_an_undo_that_looks_at_old_records() -> Checked {
    let rule = ("and not child.late".to_owned(), String::new());
    let stands = undone_while_it_ends(Rules::new(vec![rule])).await;
    // Refused by a constraint, or begun too low: never from the last step.
    let sound = ("paused".to_owned(), "compensating".to_owned(), 1);
    assert!(stands.ok() != Some(sound));
    Ok(())
}
