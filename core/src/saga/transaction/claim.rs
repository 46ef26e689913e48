//! What a claim brings: the history, or why it can't be run here, and the members that are open.
//! Decides nothing about what comes next.

use alloc::vec::Vec;

use super::{
    Unrunnable,
    member::{Doing, Member, Then},
};
use crate::{
    saga::{
        Attempt, Direction, Plan, Position, Text,
        log::{Log, Status},
    },
    store::{Capability, Claimed, Taken},
};

/// What is open after a claim. Alone, attempts and doubt are the row's; in a group each member's
/// attempts and doubt stand with its pause, and the row's doubt is everybody's.
pub(super) fn members(plan: Option<&Plan>, log: &Log, claimed: &Claimed) -> Vec<Member> {
    let at = log.at();
    let doubt = claimed.doubt || claimed.taken == Taken::Orphaned;
    let Some(plan) = plan else {
        return Vec::from([Member::new(at.seq, claimed.attempts, doubt)]);
    };
    let alone = log.is_alone(plan);
    let open = log.open(plan).map(|seq| {
        let here = Position { seq, ..at };
        let last = claimed.log.iter().find(|e| e.position == here);
        let said = match last.map(|e| &e.attempt) {
            Some(Attempt::Refused { doubt, .. } | Attempt::Paused { doubt, .. }) => *doubt,
            Some(Attempt::Done(_) | Attempt::Skipped) | None => false,
        };
        let attempts = match last {
            _ if alone => claimed.attempts,
            // A restored member has its attempts anew.
            Some(entry) if matches!(entry.attempt, Attempt::Paused { .. }) => entry.attempts,
            Some(_) | None => 0,
        };
        let effects = plan.step(seq).is_some_and(|s| s.leaves_doubt(at.direction));
        let mut member = Member::new(seq, attempts, (doubt || said) && effects);
        // What the log or the row says; that its owner died is only known here so far.
        member.told.1 = (claimed.doubt || said) && effects;
        member.doing = match (at.direction, log.status(seq)) {
            (Direction::Forward, Status::Completed(_)) => Doing::Recorded(Then::On),
            (Direction::Forward, Status::Failed { .. } | Status::Skipped) => {
                Doing::Recorded(Then::Back)
            }
            (Direction::Compensating, Status::Compensated | Status::Skipped) => {
                Doing::Recorded(Then::On)
            }
            _ => Doing::Ready,
        };
        member
    });
    open.collect()
}

/// Rebuilds the history, or says why it can't be run by this definition (G12).
pub(super) fn replay(plan: Option<&Plan>, claimed: &Claimed) -> Result<Log, Unrunnable> {
    let wanted = Capability {
        saga: claimed.saga.clone(),
        version: claimed.version,
        digest: claimed.digest.clone(),
    };
    let Some(plan) = plan else {
        return Err(Unrunnable::Missing(wanted));
    };
    if *plan.runs() != wanted {
        let text = alloc::format!(
            "started with {} v{} ({}), here is {} v{} ({})",
            wanted.saga,
            wanted.version,
            wanted.digest,
            plan.runs().saga,
            plan.runs().version,
            plan.runs().digest
        );
        return Err(Unrunnable::Mismatch(Text::new(&text)));
    }
    Log::replay(plan, &claimed.log, claimed.position)
        .map_err(|why| Unrunnable::Mismatch(Text::new(&alloc::format!("{why}"))))
}
