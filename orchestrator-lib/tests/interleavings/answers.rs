//! An answer says what happened: done where the rows show it, lost where they don't.

use orchestrator_lib::store::{self, Claims, Woke};
use ring_core::store::{Renewed, Started, Written};

use super::{
    check::ensure,
    effects::Judged,
    history::Change,
    lane::{Seen, Session},
    verb::Answer,
};

/// An answer says what happened.
pub(crate) fn answered(
    answer: &Answer,
    session: &Session,
    seen: &Seen,
    changes: &[&Change],
    disturbed: bool,
) -> Judged {
    let changed = !changes.is_empty();
    let agrees = |did: bool| ensure(did == changed, "the rows say otherwise");
    match answer {
        Answer::Claims(Ok(claims)) => claimed(claims, changes, disturbed),
        Answer::Written(Ok(written)) => match written {
            Written::Done { .. } => agrees(true),
            // By another session with the same write, or by this one before a lost answer.
            Written::Already { .. } => {
                let number = seen.scene.write(session.verb).map(|w| i64::from(w.number));
                let done = seen.history.of("transaction");
                let same =
                    done.filter(|c| Some(c.new.number("last_write")) == number && is_write(c));
                ensure(same.count() == 1, "already, and it was not written once")
            }
            Written::Lost if disturbed => Ok(()),
            Written::Lost | Written::Woken { .. } => agrees(false),
            Written::Invalid(why) => Err(why.as_str().to_owned()),
        },
        Answer::Back(Ok(back)) => ensure(
            disturbed || back.len() == changes.len(),
            "the rows say otherwise",
        ),
        Answer::Closed(Ok(released)) => ensure(
            disturbed || usize::try_from(*released) == Ok(changes.len()),
            "the rows say otherwise",
        ),
        Answer::Ordered(Ok(store::Answer::Done { .. })) => agrees(true),
        // Asked again, it finds what it did: a double click.
        Answer::Ordered(Ok(store::Answer::Refused(_)))
        | Answer::Woke(Ok(Woke::Already | Woke::NotOpen))
        | Answer::Pushed(Ok(_))
            if session.dropped =>
        {
            Ok(())
        }
        Answer::Ordered(Ok(store::Answer::Refused(_))) => agrees(false),
        Answer::Woke(Ok(Woke::Stored(_))) => agrees(true),
        Answer::Woke(Ok(Woke::Already | Woke::NotOpen)) => agrees(false),
        Answer::Pushed(Ok(pushed)) => agrees(pushed.rows == 1),
        Answer::Started(Ok(started)) => match started {
            Started::New(_) => agrees(true),
            _ => agrees(false),
        },
        Answer::Renewed(Ok(renewed)) => {
            let own = seen.history.by(session.actor.name, "owner");
            let held = matches!(renewed, Renewed::Held { .. });
            ensure(
                held != own.is_empty() || disturbed,
                "the owner's row says otherwise",
            )
        }
        Answer::Buried(Ok(buried)) => {
            let own = seen.history.by(session.actor.name, "owner");
            ensure(
                buried.len() == own.len() || disturbed,
                "the owner's row says otherwise",
            )
        }
        _ => Ok(()),
    }
}

/// Whether a claim tells the wake-ups of its row. One that is found again after its answer was lost
/// tells those that came meanwhile, too.
fn seen_by(change: &Change, told: u64, disturbed: bool) -> bool {
    let then = u64::try_from(change.new.number("wake_seq")).unwrap_or(u64::MAX);
    told == then || (disturbed && told > then)
}

/// The number of a row's last write changes by writes alone, and claims begin at 0.
fn is_write(change: &Change) -> bool {
    let old = change.old.as_ref();
    old.is_some_and(|old| old.number("last_write") < change.new.number("last_write"))
}

fn claimed(claims: &Claims, changes: &[&Change], disturbed: bool) -> Judged {
    let settled = claims.disabled.len() + claims.quarantined.len();
    let met = claims.rows.len() + settled;
    // A claim that ended before its answer was lost is adopted only while it runs.
    ensure(met == changes.len() || disturbed, "the rows say otherwise")?;
    claims.rows.iter().try_for_each(|claimed| {
        let own = changes.iter().any(|change| {
            change.new.uuid("nonce") == Some(claimed.fence.nonce.0)
                && u64::try_from(change.new.number("epoch")) == Ok(claimed.fence.epoch)
                && seen_by(change, claimed.wake_seq, disturbed)
        });
        ensure(own, "a row that it did not claim")?;
        let told = u64::try_from(claimed.wakes.len()).unwrap_or_default();
        ensure(told >= claimed.wake_seq, "a wake-up was not told")
    })
}
