//! Defects planted between the machine and its surroundings: what the machine, the claim or the
//! store would do if a rule were broken. Each must be noticed by the simulation.

use super::row::Row;
use crate::{
    saga::{Attempt, Direction, Entry, Input, State, Text, Wake, tests::bench::json},
    store::{Claimed, Taken, To, Write},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// A record of one member moves the transaction on.
    StayCountsAsNext,
    /// A claim forgets what is in doubt.
    DoubtForgotten,
    /// A member's pause is recorded without its doubt.
    PauseWithoutDoubt,
    /// A signal sent while the transaction runs is dropped.
    SignalLostWhileRunning,
    /// A cancel is neither heard nor claimed.
    CancelIgnored,
    /// A decision is made anew with each claim.
    GuardEvaluatedAnew,
    /// A claim brings no records of an open group, so they are called again.
    GroupForgotten,
    /// Parking and settling do not ask whether something woke it.
    SettledUnasked,
    /// The end of a sub-saga is told as if it were undone.
    ChildToldUndone,
    /// The end of a sub-saga is told to nobody.
    ChildsEndLost,
    /// A member that was skipped is called all the same.
    SkippedIsCalled,
    /// Compensation leaves the highest member out.
    MemberNotUndone,
    /// A refusal in doubt is recorded as one for certain.
    RefusedForCertain,
}

impl Mutant {
    pub(super) const ALL: [Self; 13] = [
        Self::StayCountsAsNext,
        Self::DoubtForgotten,
        Self::PauseWithoutDoubt,
        Self::SignalLostWhileRunning,
        Self::CancelIgnored,
        Self::GuardEvaluatedAnew,
        Self::GroupForgotten,
        Self::SettledUnasked,
        Self::ChildToldUndone,
        Self::ChildsEndLost,
        Self::SkippedIsCalled,
        Self::MemberNotUndone,
        Self::RefusedForCertain,
    ];

    pub(super) fn keeps(self, wake: &Wake, state: State) -> bool {
        match wake {
            Wake::Signal { .. } => self != Self::SignalLostWhileRunning || state != State::Running,
            Wake::Cancel { .. } => self != Self::CancelIgnored,
            Wake::Child { .. } => self != Self::ChildsEndLost,
        }
    }

    pub(super) fn claimed(self, claimed: &mut Claimed) {
        if self == Self::DoubtForgotten {
            (claimed.doubt, claimed.taken) = (false, Taken::Due);
        }
        if self == Self::GuardEvaluatedAnew {
            for entry in &mut claimed.log {
                if entry.attempt == Attempt::Done(json("0")) && entry.position.seq > 0 {
                    entry.attempt = Attempt::Done(json("1"));
                }
            }
        }
        if self == Self::GroupForgotten {
            let at = claimed.position;
            let below = |e: &Entry| e.position.seq < at.seq;
            claimed
                .log
                .retain(|e| below(e) || e.position.direction != at.direction);
        }
    }

    /// Whether a record's member is called although it is recorded so.
    pub(super) fn calls(self, attempt: &Attempt) -> bool {
        self == Self::SkippedIsCalled && *attempt == Attempt::Skipped
    }

    pub(super) fn told(self, input: &mut Input) {
        if let (Self::ChildToldUndone, Input::Heard { wakes, .. }) = (self, input) {
            for wake in wakes {
                if let Wake::Child { end, .. } = wake {
                    *end = Err(Text::new("undone"));
                }
            }
        }
    }

    pub(super) fn write(self, write: &mut Write, row: &Row) {
        let entry = write.entry.as_mut().map(|e| (e.position, &mut e.attempt));
        match (self, entry, &mut write.to) {
            (Self::StayCountsAsNext, Some((of, Attempt::Done(_))), to @ To::Stay) => {
                let mut next = of;
                next.seq += 1;
                *to = To::Next(next);
            }
            (Self::PauseWithoutDoubt, Some((_, Attempt::Paused { doubt, .. })), _)
            | (Self::RefusedForCertain, Some((_, Attempt::Refused { doubt, .. })), _) => {
                *doubt = false;
            }
            (Self::MemberNotUndone, _, To::Next(to))
                if to.direction == Direction::Compensating && to.seq > 0 =>
            {
                to.seq -= 1;
            }
            (Self::SettledUnasked, _, To::Park { .. } | To::Settle { .. }) => {
                write.wake_seq = row.wake_seq;
            }
            _ => {}
        }
    }
}
