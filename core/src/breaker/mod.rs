//! Circuit breakers: one for each target that a process calls, shared by all its transactions.
//!
//! ```text
//!             the first success
//!  unknown ─────────────────────▶ closed ◀──────────────┐
//!     │                             │                    │ a probe succeeds: ramp
//!     │ failures in a row, or a part of the last calls   │
//!     └──────────────▶ open ◀───────┘                    │
//!                      │  ▲ a probe fails: longer pause  │
//!            the pause ▼  │                              │
//!                    half open ──────────────────────────┘
//! ```
//!
//! A call asks first and tells how it ended. While a target is down its transactions wait for it
//! and use up no attempts; a few probes find out when it works again; then what waits goes on at a
//! pace that doubles each second. It decides what may be called and how many of those that wait may
//! be taken. It refuses to know transactions, rows and what a call does. A question is answered at
//! once, so this is no [`Machine`](crate::machine::Machine); time, seed and order of calls decide
//! everything all the same.

mod limits;
mod port;
mod ramp;
mod target;
mod window;

use alloc::{collections::BTreeMap, vec::Vec};

pub use limits::{Limits, MOST_TARGETS};
pub use port::{Ask, Change, Gave, Pass, Verdict, Why};
use target::Target;

use crate::{
    chance,
    id::TargetName,
    time::{Mono, Now, Wall},
};

/// The breakers of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    limits: Limits,
    /// For the jitter.
    seed: u64,
    targets: BTreeMap<TargetName, Target>,
}

impl Breaker {
    /// Knows no target.
    #[must_use]
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self {
            limits,
            seed,
            targets: BTreeMap::new(),
        }
    }

    /// May this call be made? A target beyond [`MOST_TARGETS`] has no breaker: its calls may.
    pub fn ask(&mut self, now: Mono, target: &TargetName, ask: Ask) -> Verdict {
        let limits = self.limits;
        match self.known(target) {
            Some(known) => known.ask(now, &limits, ask),
            None => Verdict::Go(Pass {
                caller: ask.caller,
                probe: false,
                tenure: 0,
            }),
        }
    }

    /// The call of a pass has ended, or was not made. Every pass comes back once.
    pub fn ended(
        &mut self,
        now: Now,
        target: &TargetName,
        pass: Pass,
        gave: Gave,
        out: &mut Vec<Change>,
    ) {
        let Some(known) = self.targets.get_mut(target) else {
            return;
        };
        let before = known.down_since();
        known.ended(now, &self.limits, pass, gave);
        match (before, known.down_since()) {
            (None, Some(_)) => out.push(Change::Down(target.clone())),
            (Some(_), None) => out.push(Change::Up(target.clone())),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// Whether transactions wait for it.
    pub fn waited_for(&mut self, target: &TargetName, waits: bool) {
        if let Some(known) = self.known(target) {
            known.waited_for = waits;
        }
    }

    /// Of which target how many of those that wait may be taken now; none of the others.
    pub fn rooms(&mut self, now: Mono) -> BTreeMap<TargetName, u32> {
        let limits = &self.limits;
        let waited_for = self.targets.iter_mut().filter(|(_, t)| t.waited_for);
        let rooms = waited_for.map(|(name, t)| (name.clone(), t.room(now, limits)));
        rooms.filter(|(_, room)| *room > 0).collect()
    }

    /// When to ask for the rooms again; none while nothing waits.
    #[must_use]
    pub fn wake_at(&self, now: Mono) -> Option<Mono> {
        let waited_for = self.targets.values().filter(|t| t.waited_for);
        waited_for.map(|t| t.wake_at(now)).min()
    }

    /// Whether its transactions wait for it.
    #[must_use]
    pub fn is_down(&self, target: &TargetName) -> bool {
        self.targets
            .get(target)
            .is_some_and(|t| t.down_since().is_some())
    }

    /// What is down as far as anybody here knows, and since when. Where the pause is over and
    /// nobody waits, nobody knows: the next call finds out.
    pub fn down(&self, now: Mono) -> impl Iterator<Item = (&TargetName, Wall)> {
        let known = self.targets.iter().filter(move |(_, t)| t.is_watched(now));
        known.filter_map(|(name, t)| Some((name, t.down_since()?)))
    }

    fn known(&mut self, target: &TargetName) -> Option<&mut Target> {
        if !self.targets.contains_key(target) {
            if self.targets.len() >= MOST_TARGETS {
                self.targets.retain(|_, t| !t.is_idle());
            }
            if self.targets.len() >= MOST_TARGETS {
                return None;
            }
            let seed = target.as_str().bytes().map(u64::from);
            let seed = seed.fold(self.seed, chance::mixed);
            self.targets.insert(target.clone(), Target::new(seed));
        }
        self.targets.get_mut(target)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod generated;
