//! Whether every part of the ring is looked after, moment by moment, and how long it was not.
//!
//! A part counts when an orchestrator that lives holds a grant for the current window. Knows no
//! bus and no clock.

use std::{collections::BTreeSet, time::Duration};

use ring_core::{
    time::Mono,
    token::{Range, coverage},
    window::WindowNo,
};

use crate::ring::ledger::{Ledger, Ring};

/// How the ring stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Who looks after which part, in the order of the ring.
    pub(crate) owners: Vec<(String, Range)>,
    /// Parts that nobody looks after.
    pub(crate) gaps: Vec<Range>,
}

/// Times at which some part was not looked after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// From, and to when known; in order.
    dark: Vec<(Mono, Option<Mono>)>,
}

impl Standing {
    /// From what was heard of the current window.
    pub(crate) fn now(ledger: &Ledger, ring: &Ring, n: WindowNo, dead: &BTreeSet<String>) -> Self {
        let grants = ledger
            .window(ring, n)
            .into_iter()
            .flat_map(|sheet| sheet.grants.values());
        let mut owners: Vec<(String, Range)> = grants
            .map(|grant| (grant.holder.to_string(), grant.range))
            .filter(|(holder, _)| !dead.contains(holder))
            .collect();
        owners.sort_by_key(|(_, range)| range.start());
        let held: Vec<Range> = owners.iter().map(|(_, range)| *range).collect();
        let (gaps, _) = coverage(Range::RING, &held);
        Self { owners, gaps }
    }

    /// The share of each owner, in parts per million; one that has several parts is named once.
    pub(crate) fn shares(&self) -> Vec<(String, u32)> {
        let mut shares: Vec<(String, u32)> = Vec::new();
        for (id, range) in &self.owners {
            match shares.iter_mut().find(|(known, _)| known == id) {
                Some((_, share)) => *share += range.ppm(),
                None => shares.push((id.clone(), range.ppm())),
            }
        }
        shares.sort();
        shares
    }

    /// Whether nothing is missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }
}

impl Timeline {
    /// Notes how it stands at a moment.
    pub(crate) fn note(&mut self, at: Mono, whole: bool) {
        match (self.dark.last_mut(), whole) {
            (Some((_, to @ None)), true) => *to = Some(at),
            (Some((_, None)), false) | (None | Some((_, Some(_))), true) => {}
            (None | Some((_, Some(_))), false) => self.dark.push((at, None)),
        }
    }

    /// How long after `blow` the ring was whole for good, as far as `until`: the end of the last
    /// dark time that began before `until`. Zero when it was whole all the time; `None` when it
    /// never was again.
    pub(crate) fn whole_after(&self, blow: Mono, until: Option<Mono>) -> Option<Duration> {
        let begun = |from: Mono| until.is_none_or(|until| from < until);
        let mut felt = self
            .dark
            .iter()
            .filter(|(from, to)| begun(*from) && to.is_none_or(|to| to > blow));
        match felt.next_back() {
            None => Some(Duration::ZERO),
            Some((_, to)) => to.map(|to| to.since(blow)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_until_the_ring_is_whole_is_measured_to_the_last_gap() {
        let mut line = Timeline::default();
        for (at, whole) in [
            (0, true),
            (100, false),
            (200, false),
            (300, true),
            (500, false),
            (900, true),
            (2_000, false),
            (2_500, true),
        ] {
            line.note(Mono(at), whole);
        }
        let seconds = |line: &Timeline, blow, until| line.whole_after(Mono(blow), until);
        assert_eq!(
            seconds(&line, 50, Some(Mono(1_000))),
            Some(Duration::from_millis(850))
        );
        assert_eq!(seconds(&line, 950, Some(Mono(1_900))), Some(Duration::ZERO));
        assert_eq!(
            seconds(&line, 1_900, None),
            Some(Duration::from_millis(600))
        );
        line.note(Mono(3_000), false);
        assert_eq!(seconds(&line, 2_600, None), None);
    }
}
