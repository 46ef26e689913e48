//! Whose turn it is among the targets that transactions wait for.
//!
//! How many may be taken is decided by the breaker and told; here they take turns, own ranges
//! first. Where those have none, the whole ring is looked at: a range that nobody looks after must
//! not wait longer than others, and a node that is done helps the others.

use alloc::collections::BTreeMap;
use core::{ops::Bound, time::Duration};

use crate::{
    id::TargetName,
    time::{Mono, Wake},
};

/// Between two looks for one target: what the first brought has asked the breaker meanwhile, so
/// that the second is for what is left.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// How many may be taken, as told last.
    rooms: BTreeMap<TargetName, u32>,
    places: BTreeMap<TargetName, Place>,
    last: Option<TargetName>,
}

/// Where a target's next look is, and not before when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    beyond: bool,
    not_before: Mono,
}

/// A turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) target: TargetName,
    pub(super) room: u32,
    /// The whole ring is meant.
    pub(super) beyond: bool,
}

impl Waiting {
    pub(super) fn told(&mut self, rooms: BTreeMap<TargetName, u32>, most: usize) {
        self.rooms = rooms;
        if self.places.len() > most {
            let rooms = &self.rooms;
            self.places.retain(|target, _| rooms.contains_key(target));
        }
    }

    /// Whether anything may be taken.
    pub(super) fn any(&self) -> bool {
        !self.rooms.is_empty()
    }

    /// The target after the last one that may be looked for now.
    pub(super) fn next(&mut self, now: Mono) -> Option<Turn> {
        let after = match &self.last {
            Some(last) => Bound::Excluded(last),
            None => Bound::Unbounded,
        };
        let later = self.rooms.range((after, Bound::Unbounded));
        let mut all = later.chain(&self.rooms);
        let (target, room) = all.find(|(target, _)| self.place(target).not_before <= now)?;
        let turn = Turn {
            target: target.clone(),
            room: *room,
            beyond: self.place(target).beyond,
        };
        self.last = Some(turn.target.clone());
        Some(turn)
    }

    pub(super) fn looked(&mut self, now: Mono, turn: &Turn, claimed: u32, rest: Duration) {
        let place = self.places.entry(turn.target.clone()).or_default();
        let nowhere = claimed == 0 && turn.beyond;
        place.beyond = if claimed > 0 { turn.beyond } else { !nowhere };
        place.not_before = now.plus(if nowhere { rest } else { PAUSE });
    }

    pub(super) fn wake(&self, wake: &mut Wake, no_sooner: impl Fn(Mono) -> Mono) {
        for target in self.rooms.keys() {
            wake.at_mono(no_sooner(self.place(target).not_before), "waiting");
        }
    }

    fn place(&self, target: &TargetName) -> Place {
        self.places.get(target).copied().unwrap_or_default()
    }
}
