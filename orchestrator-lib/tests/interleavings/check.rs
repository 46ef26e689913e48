//! The invariants, after each schedule: what was committed hangs together, every change was
//! allowed, and every answer says what happened.

use std::collections::BTreeMap;

use super::{
    answers::answered,
    effects::{self, Judged},
    history::Version,
    lane::{Seen, Session},
    verb::Verb,
    world::World,
};

/// Every invariant that does not hold, in words.
pub(crate) fn broken(seen: &Seen, world: World, disturbed: bool) -> Vec<String> {
    let mut broken = Vec::new();
    let mut judge = |what: &str, judged: Judged| {
        if let Err(why) = judged {
            broken.push(format!("{what}: {why}"));
        }
    };
    judge("versions", chain(seen));
    judge("records", records(seen));
    judge("owners", owners(seen));
    judge("conservation", conservation(seen, world));
    judge("wake-ups", wakes(seen));
    for session in &seen.sessions {
        let who = format!("{} {}", session.actor.name, session.verb.word());
        let changes = seen.history.by(session.actor.name, "transaction");
        for change in &changes {
            let judged = effects::judge(session, &seen.scene, change, &seen.history);
            judge(&who, judged);
        }
        // What is pushed and woken meanwhile is pushed again by who asks again.
        let again = session.dropped && session.verb == Verb::Push;
        let single = changes.len() <= 1 || again;
        judge(&who, ensure(single, "changed the row more than once"));
        let Some(answer) = session.answer.as_ref() else {
            judge(&who, ensure(session.dropped, "never answered"));
            continue;
        };
        judge(
            &format!("{who} answered {}", answer.word()),
            match answer.error() {
                Some(error) => {
                    let nothing = changes.is_empty()
                        && seen.history.by(session.actor.name, "step").is_empty();
                    // The one verb of two statements: half done, the lease runs out by itself.
                    let half = session.verb == Verb::Close;
                    let honest = !error.is_conflict() || nothing || disturbed || half;
                    let expected = disturbed || error.is_conflict();
                    let surprise = ensure(expected, "an error without a fault");
                    surprise.and_then(|()| ensure(honest, "a conflict, and something was done"))
                }
                None => answered(answer, session, seen, &changes, disturbed),
            },
        );
    }
    broken
}

pub(crate) fn ensure(holds: bool, what: &str) -> Judged {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Each version of a row grows out of the one before it.
fn chain(seen: &Seen) -> Judged {
    let mut last: BTreeMap<&str, &Version> = BTreeMap::new();
    for change in seen.history.of("transaction") {
        let id = change.new.text("id");
        if let Some(old) = &change.old {
            effects::always(old, &change.new)?;
            let grown = last.get(id).is_none_or(|before| *before == old);
            ensure(grown, "a version was skipped")?;
        }
        last.insert(id, &change.new);
    }
    let stands = |row: &Version| last.get(row.text("id")).is_none_or(|end| *end == row);
    ensure(
        seen.history.rows.iter().all(stands),
        "the row is not its last version",
    )
}

/// A record is committed with the write that it belongs to; a success is final.
fn records(seen: &Seen) -> Judged {
    for record in seen.history.of("step") {
        let success = record
            .old
            .as_ref()
            .is_some_and(|old| old.text("outcome") == "done");
        ensure(!success, "a success was replaced")?;
        let row = seen.history.of("transaction").find(|row| {
            row.xid == record.xid && row.new.text("id") == record.new.text("transaction")
        });
        let row = row
            .and_then(|row| row.old.as_ref())
            .ok_or("a record without its write")?;
        let epoch = row.number("epoch") == record.new.number("epoch");
        ensure(epoch, "a record under another epoch")?;
        ensure(
            row.text("state") == "running",
            "a record of a row that did not run",
        )?;
    }
    Ok(())
}

/// Death is written once, and only when the lease is over or by the one who ends.
fn owners(seen: &Seen) -> Judged {
    for change in seen.history.of("owner") {
        let Some(old) = &change.old else { continue };
        let death = change.new.has("dead_at") && !old.has("dead_at");
        if old.has("dead_at") {
            let kept = old.same(&change.new, &["dead_at", "lease_until"]);
            ensure(kept, "the dead came back")?;
        }
        let session = seen
            .sessions
            .iter()
            .find(|s| change.session.starts_with(s.actor.name));
        let closes = session.is_some_and(|s| s.verb == Verb::Close);
        let over = old.time("lease_until").is_some_and(|end| end < change.at);
        ensure(!death || closes || over, "buried alive")?;
    }
    Ok(())
}

/// Whatever existed exists once, in one state.
fn conservation(seen: &Seen, world: World) -> Judged {
    let (rows, keys) = (seen.history.rows.len(), seen.history.keys);
    let starts = |s: &Session| matches!(s.verb, Verb::Start | Verb::StartParked);
    let expected = world != World::New || seen.sessions.iter().any(starts);
    ensure(rows <= 1 && keys <= 1, "a key was stored twice")?;
    ensure(i64::try_from(rows) == Ok(keys), "a key without its row")?;
    ensure(world == World::New || rows == 1, "the row is gone")?;
    ensure(expected || rows == 0, "a row out of nothing")?;
    seen.history.rows.iter().try_for_each(effects::one_of_three)
}

/// A parked row that was woken since its last claim is due now, unless it was pushed on.
fn wakes(seen: &Seen) -> Judged {
    let raised = seen.history.of("transaction").filter(|change| {
        change
            .old
            .as_ref()
            .is_some_and(|old| old.number("wake_seq") < change.new.number("wake_seq"))
    });
    let stored = i64::try_from(raised.count());
    ensure(
        stored == Ok(seen.history.wakes),
        "messages and their count differ",
    )?;
    for row in &seen.history.rows {
        let mut unseen = false;
        for change in seen.history.of("transaction") {
            let Some(old) = &change.old else { continue };
            let pushes = seen
                .sessions
                .iter()
                .any(|s| change.session.starts_with(s.actor.name) && s.verb == Verb::Push);
            if old.number("wake_seq") < change.new.number("wake_seq") {
                unseen = true;
            } else if change.new.text("state") == "running" && old.text("state") != "running"
                || pushes
            {
                unseen = false;
            }
        }
        let due = row
            .time("due_at")
            .is_none_or(|due| due <= seen.history.clock);
        ensure(!unseen || due, "a wake-up was lost: parked and not due")?;
        let by_hand = seen.sessions.iter().any(|s| s.verb == Verb::ByHand);
        ensure(
            !unseen || by_hand || row.text("state") != "completed",
            "settled over a wake-up",
        )?;
    }
    Ok(())
}
