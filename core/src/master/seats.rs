//! How one service's ring is cut among slaves: a pure function.
//!
//! Seats keep their order from cut to cut and newcomers are appended, so ranges move as little as
//! they must. It refuses to know when a cut is due and whether it is stored.

use alloc::vec::Vec;

use super::Balance;
use crate::{
    id::{BootId, NodeId, Service},
    token::Range,
    window::{Cut, Seat, SeatState, Term, WindowNo},
};

/// ⌈2^64 / 3⌉: one of three slaves may be waited for; more of the ring never stays dark.
const MOST_FROZEN: u128 = (1 << 64) / 3 + 1;

/// A live slave, as far as one service is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) slave: NodeId,
    pub(super) boot: BootId,
    /// Its live orchestrators of the service.
    pub(super) live: u32,
    /// How many of them can't work.
    pub(super) sick: u32,
}

/// What is to be cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'a> {
    pub(super) service: &'a Service,
    pub(super) window: WindowNo,
    pub(super) term: Term,
    pub(super) balance: Balance,
    /// The newest cut before, for the order of seats.
    pub(super) before: Option<&'a Cut>,
    /// The live slaves in order of their ids.
    pub(super) live: &'a [Candidate],
}

struct Draft {
    slave: NodeId,
    boot: BootId,
    weight: u32,
    frozen: bool,
}

/// Cuts the ring; `None` when no live slave would get a part: such a cut is not made, so that the
/// window can be cut as soon as somebody is there. `may_keep` tells which seats of vanished slaves
/// may stay; the last seat never does.
pub(super) fn cut(plan: Plan<'_>, may_keep: impl Fn(&Seat) -> bool) -> Option<Cut> {
    let mut drafts = drafts(plan, may_keep);
    loop {
        let weights: Vec<u32> = drafts.iter().map(|d| d.weight).collect();
        let ranges = Range::RING.split_weighted(&weights);
        let width = |frozen: bool| -> u128 {
            let parts = drafts.iter().zip(&ranges);
            parts
                .filter(|(d, _)| d.frozen == frozen)
                .filter_map(|(_, r)| r.map(Range::width))
                .sum()
        };
        if width(true) > MOST_FROZEN {
            let last = drafts.iter().rposition(|d| d.frozen)?;
            drafts.remove(last);
            continue;
        }
        if width(false) == 0 {
            return None;
        }
        let seats = drafts.into_iter().zip(ranges).map(|(d, range)| Seat {
            slave: d.slave,
            boot: d.boot,
            weight: d.weight,
            range,
            state: match (range, d.frozen) {
                (None, _) => SeatState::Empty,
                (Some(_), true) => SeatState::Frozen,
                (Some(_), false) => SeatState::Live,
            },
        });
        return Some(Cut {
            service: plan.service.clone(),
            window: plan.window,
            term: plan.term,
            seats: seats.collect(),
        });
    }
}

fn drafts(plan: Plan<'_>, may_keep: impl Fn(&Seat) -> bool) -> Vec<Draft> {
    let before = plan.before.map_or(&[][..], |cut| &cut.seats);
    let works = plan.live.iter().any(|c| c.live > c.sick);
    let draft = |candidate: &Candidate| Draft {
        slave: candidate.slave.clone(),
        boot: candidate.boot,
        weight: match plan.balance {
            Balance::Equal => 1,
            // Sick everywhere means that what they share is sick: the ring must not be emptied.
            Balance::Weighted if works => candidate.live.saturating_sub(candidate.sick),
            Balance::Weighted => candidate.live,
        },
        frozen: false,
    };
    let mut drafts = Vec::new();
    for (index, seat) in before.iter().enumerate() {
        if let Some(candidate) = plan.live.iter().find(|c| c.slave == seat.slave) {
            drafts.push(draft(candidate));
        } else if index + 1 < before.len() && seat.range.is_some() && may_keep(seat) {
            drafts.push(Draft {
                slave: seat.slave.clone(),
                boot: seat.boot,
                weight: seat.weight,
                frozen: true,
            });
        }
    }
    let sat = |c: &&Candidate| !before.iter().any(|seat| seat.slave == c.slave);
    drafts.extend(plan.live.iter().filter(sat).map(draft));
    drafts
}
