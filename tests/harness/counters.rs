//! "Sometimes" counters: what a batch of universes must have reached at least once, else it
//! proves nothing (`reliability.md` E.2).

use std::{collections::BTreeMap, fmt};

/// Something that happens in some universes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sometimes {
    /// An orchestrator could claim.
    Claimed,
    /// Another master took over between a cut's due time and its window.
    FailoverInLead,
    /// A master took a cut of another boot instead of its own.
    WindowAdopted,
    /// A window was cut after its start.
    CutLate,
    /// A seat was kept for a vanished slave.
    Frozen,
    /// The ring was cut without a slave whose seat had been frozen.
    Redistributed,
    /// A newcomer waited because its id was in use.
    TwinWaited,
    /// A process stopped because a newer boot has its id.
    TwinEvicted,
    /// A process left when asked.
    Drained,
    /// A leader put its lease back after Redis had lost it.
    LeaseRestored,
    /// A new term was taken from what was heard, not from Redis.
    TermHealed,
    /// A leader went on without Redis.
    Degraded,
    /// A leader stepped down.
    SteppedDown,
    /// A grant reached its holder in an answer before any publication did.
    HealedByAnswer,
    /// A publication of a window that was over arrived after a reconnect.
    StalePublication,
    /// An orchestrator gave its slave notice to move to another.
    Moved,
    /// A process died between two orders for one input.
    DiedBetweenOrders,
    /// Nobody served an endpoint that was asked.
    NoResponders,
    /// A request timed out although it was done.
    DoneButTimedOut,
    /// A machine gave up its server for another.
    Reconnected,
    /// Two orchestrators overlapped while Redis or a clock broke its promise.
    SoftOverlap,
    /// A clock that was off by windows cut one that nobody else is in.
    CutBeside,
    /// Everything healed and the ring was whole.
    Healed,
}

impl Sometimes {
    /// All of them but [`Sometimes::SoftOverlap`], which nobody needs to see.
    pub const WANTED: [Self; 22] = [
        Self::Claimed,
        Self::FailoverInLead,
        Self::WindowAdopted,
        Self::CutLate,
        Self::Frozen,
        Self::Redistributed,
        Self::TwinWaited,
        Self::TwinEvicted,
        Self::Drained,
        Self::LeaseRestored,
        Self::TermHealed,
        Self::Degraded,
        Self::SteppedDown,
        Self::HealedByAnswer,
        Self::StalePublication,
        Self::Moved,
        Self::DiedBetweenOrders,
        Self::NoResponders,
        Self::DoneButTimedOut,
        Self::Reconnected,
        Self::CutBeside,
        Self::Healed,
    ];
}

/// How often each was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<Sometimes, u64>);

impl Counters {
    /// One more.
    pub fn saw(&mut self, what: Sometimes) {
        *self.0.entry(what).or_default() += 1;
    }

    /// How often.
    #[must_use]
    pub fn count(&self, what: Sometimes) -> u64 {
        self.0.get(&what).copied().unwrap_or(0)
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(*what).or_default() += count;
        }
    }

    /// What was wanted and never reached.
    #[must_use]
    pub fn missing(&self) -> Vec<Sometimes> {
        Sometimes::WANTED
            .into_iter()
            .filter(|what| self.count(*what) == 0)
            .collect()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.0 {
            writeln!(f, "{:<20} {count:>12}", format!("{what:?}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_reached_is_named() {
        let mut counters = Counters::default();
        for what in Sometimes::WANTED {
            if what != Sometimes::Moved {
                counters.saw(what);
            }
        }
        assert_eq!(counters.missing(), [Sometimes::Moved]);
    }
}
