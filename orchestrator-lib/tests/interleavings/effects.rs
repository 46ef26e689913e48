//! What each verb may do to a row, one function a verb: the second writing of the statements, in
//! words that look at one committed change. Knows nothing of other sessions.

use ring_core::store::{To, Write};

use super::{
    history::{Change, History, Version},
    lane::Session,
    verb::{Scene, Verb},
};

pub(crate) type Judged = Result<(), String>;

/// Columns that a claim, a push and a wake leave as they are.
const PLACE: &[&str] = &[
    "direction",
    "seq",
    "attempts",
    "created_at",
    "progressed_at",
];

/// Columns that the record of one step of a group leaves as they are.
const PLACE_ONLY: &[&str] = &[
    "direction",
    "seq",
    "attempts",
    "doubt",
    "state",
    "opened_at",
];

fn check(holds: bool, what: &str) -> Judged {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Whatever the verb: what never happens to a row.
pub(crate) fn always(old: &Version, new: &Version) -> Judged {
    let identity = [
        "id",
        "region",
        "cluster",
        "service",
        "token",
        "definition",
        "created_at",
    ];
    check(old.same(new, &identity), "the identity changed")?;
    let (epoch, then) = (old.number("epoch"), new.number("epoch"));
    check(
        then == epoch || then == epoch + 1,
        "the epoch went back or jumped",
    )?;
    let nonce = old.0["nonce"] == new.0["nonce"];
    check(then > epoch || nonce, "another nonce under the same epoch")?;
    check(
        new.number("wake_seq") >= old.number("wake_seq"),
        "a wake-up was forgotten",
    )?;
    let back = old.text("direction") == "compensating" && new.text("direction") == "forward";
    check(!back, "forward again after compensation began")?;
    one_of_three(new)
}

/// Exactly one of owner, due time and end.
pub(crate) fn one_of_three(row: &Version) -> Judged {
    let three = ["owner", "due_at", "settled_at"].map(|c| usize::from(row.has(c)));
    check(
        three.iter().sum::<usize>() == 1,
        "not exactly one of owner, due and settled",
    )?;
    check(
        (row.text("state") == "running") == row.has("owner"),
        "running without owner",
    )?;
    check(
        (row.text("state") == "paused") == row.has("due_at"),
        "parked without due time",
    )
}

/// One committed change of a row by a session.
pub(crate) fn judge(session: &Session, scene: &Scene, change: &Change, seen: &History) -> Judged {
    let Some(old) = &change.old else {
        return check(
            matches!(session.verb, Verb::Start | Verb::StartParked),
            "only a start stores a row",
        );
    };
    let new = &change.new;
    check(
        !old.is_settled() || matches!(session.verb, Verb::Restore | Verb::ByHand),
        "a settled row changed",
    )?;
    if let Some(write) = scene.write(session.verb) {
        return written(&write, old, new);
    }
    match session.verb {
        Verb::ClaimDue | Verb::ClaimOwn | Verb::ClaimOverdue | Verb::ClaimWaiting => {
            check(
                old.text("state") == "paused",
                "claimed a row that is not parked",
            )?;
            claimed(session, scene, change, old)
        }
        Verb::ClaimOrphans => {
            check(old.text("state") == "running", "an orphan is running")?;
            check(dead(seen, old), "its owner is not dead")?;
            check(new.0["doubt"] == true, "an orphan is in doubt")?;
            claimed(session, scene, change, old)
        }
        Verb::Stray => {
            check(fenced(scene, old), "handed back by a stranger")?;
            raised(old, new)
        }
        Verb::Close => {
            check(
                old.number("owner") == scene.first.0,
                "released another's row",
            )?;
            raised(old, new)
        }
        Verb::Push => pushed(change, old, seen),
        Verb::Restore | Verb::RetryNow | Verb::ByHand => {
            ordered(session.verb, scene, change, old, seen)
        }
        Verb::Wake | Verb::WakeSame | Verb::Cancel => woken(change, old, seen),
        _ => Err(format!("{} changed a row", session.verb.word())),
    }
}

fn fenced(scene: &Scene, old: &Version) -> bool {
    let fence = scene.claimed.fence;
    old.text("state") == "running"
        && u64::try_from(old.number("epoch")) == Ok(fence.epoch)
        && old.uuid("nonce") == Some(fence.nonce.0)
}

fn dead(seen: &History, row: &Version) -> bool {
    let owner = seen.owner(row.number("owner"));
    owner.is_some_and(|owner| owner.has("dead_at"))
}

fn raised(old: &Version, new: &Version) -> Judged {
    check(
        new.number("epoch") == old.number("epoch") + 1,
        "the epoch stayed",
    )?;
    check(old.same(new, PLACE), "its place changed")?;
    check(new.text("state") == "paused", "it was not parked")
}

fn written(write: &Write, old: &Version, new: &Version) -> Judged {
    let epoch = u64::try_from(old.number("epoch"));
    check(
        epoch == Ok(write.fence.epoch),
        "written under a later epoch",
    )?;
    check(
        old.uuid("nonce") == Some(write.fence.nonce.0),
        "written without the nonce",
    )?;
    check(
        old.text("state") == "running",
        "written to a row that does not run",
    )?;
    check(
        old.number("seq") == i64::from(write.from.seq),
        "written from elsewhere",
    )?;
    let stays = matches!(write.to, To::Stay);
    check(
        !stays || old.same(new, PLACE_ONLY),
        "a group's record moved the row",
    )?;
    let number = i64::from(write.number);
    check(old.number("last_write") < number, "written twice")?;
    check(
        new.number("last_write") == number,
        "not the write that was sent",
    )?;
    let conditional = matches!(write.to, To::Park { .. } | To::Settle { .. });
    let seen = u64::try_from(old.number("wake_seq")) == Ok(write.wake_seq);
    check(!conditional || seen, "parked or settled over a wake-up")?;
    let back = i64::from(matches!(write.to, To::HandBack { .. }));
    check(
        new.number("epoch") == old.number("epoch") + back,
        "the epoch of a write",
    )
}

fn claimed(session: &Session, scene: &Scene, change: &Change, old: &Version) -> Judged {
    let new = &change.new;
    check(
        new.number("epoch") == old.number("epoch") + 1,
        "claimed without a new epoch",
    )?;
    let nonce = new.uuid("nonce");
    let own = session.marks.nonces.iter().any(|n| Some(n.0) == nonce);
    check(own, "claimed under a nonce of nobody")?;
    check(
        new.number("last_write") == 0,
        "the writes of a claim count from 1",
    )?;
    check(old.same(new, PLACE), "a claim moved it")?;
    check(old.0["wake_seq"] == new.0["wake_seq"], "a claim woke it")?;
    let due = old.time("due_at").is_none_or(|due| due <= change.at);
    let waits = session.verb == Verb::ClaimWaiting && old.text("waiting_on") == "payment";
    check(due || waits, "claimed before it was due")?;
    let me = if session.verb == Verb::ClaimOwn {
        scene.first
    } else {
        session.actor.me
    };
    match new.text("state") {
        "running" => check(new.number("owner") == me.0, "claimed for another"),
        "disabled" => {
            let over = old.time("expires_at").is_some_and(|end| end <= change.at);
            check(over, "disabled before its lifetime's end")
        }
        "quarantined" => check(new.number("deaths") >= 5, "quarantined too early"),
        other => Err(format!("a claim made it {other}")),
    }
}

fn pushed(change: &Change, old: &Version, seen: &History) -> Judged {
    let parked = old.text("state") == "paused";
    check(parked || dead(seen, old), "pushed a living owner's row")?;
    let due = old.time("due_at").is_none_or(|due| due <= change.at);
    check(due, "pushed before it was due")?;
    check(old.same(&change.new, PLACE), "a push used an attempt")?;
    check(
        change.new.number("epoch") == old.number("epoch") + 1,
        "the epoch stayed",
    )
}

fn ordered(verb: Verb, scene: &Scene, change: &Change, old: &Version, seen: &History) -> Judged {
    let state = old.text("state");
    let sad = matches!(state, "disabled" | "terminated" | "quarantined");
    let fits = match verb {
        Verb::Restore => sad,
        Verb::RetryNow => state == "paused",
        _ => sad || state == "paused",
    };
    check(fits, "ordered what does not fit how it stands")?;
    let raised = change.new.number("epoch") == old.number("epoch") + 1;
    check(raised, "the epoch of an order")?;
    let epoch = u64::try_from(old.number("epoch"));
    check(epoch == Ok(scene.epoch), "ordered what had changed")?;
    let mut audits = seen.of("audit");
    check(
        audits.any(|audit| audit.xid == change.xid),
        "ordered without audit",
    )
}

fn woken(change: &Change, old: &Version, seen: &History) -> Judged {
    let new = &change.new;
    let one = new.number("wake_seq") == old.number("wake_seq") + 1;
    check(one, "a wake-up is counted once")?;
    check(old.same(new, PLACE), "a wake-up moved it")?;
    let kept = ["state", "epoch", "owner", "last_write", "doubt", "deaths"];
    check(old.same(new, &kept), "a wake-up changed more than it may")?;
    let due = new.time("due_at").is_none_or(|due| due <= change.at);
    check(due, "woken and not due")?;
    check(
        !new.has("waiting_on"),
        "woken and still waiting for a target",
    )?;
    let mut wakes = seen.of("wake");
    check(
        wakes.any(|wake| wake.xid == change.xid),
        "counted without its message",
    )
}
