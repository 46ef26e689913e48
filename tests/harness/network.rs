//! The bus between nodes: which messages arrive, how often and when. It knows nothing of what
//! they say.

use std::collections::BTreeMap;

use crate::{clock::Instant, rng::Rng};

/// A place in the world's list of nodes.
pub type Index = usize;

/// How a cut behaves towards requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The servers know: nobody seems to listen there.
    Known,
    /// Messages vanish.
    Silent,
}

/// The state of the bus.
#[derive(Debug)]
pub struct Network {
    rng: Rng,
    /// Messages that vanish, parts per million.
    pub loss_ppm: u32,
    /// Messages that come twice, parts per million.
    pub twice_ppm: u32,
    /// Messages that take up to three seconds, parts per million.
    pub late_ppm: u32,
    /// Whether nobody reaches anybody.
    pub down: bool,
    cuts: BTreeMap<(Index, Index), (Cut, Instant)>,
}

impl Network {
    /// A network that works.
    #[must_use]
    pub fn new(rng: Rng) -> Self {
        let cuts = BTreeMap::new();
        Self {
            rng,
            loss_ppm: 0,
            twice_ppm: 0,
            late_ppm: 0,
            down: false,
            cuts,
        }
    }

    /// Stops everything from one node to another until then.
    pub fn cut(&mut self, from: Index, to: Index, how: Cut, until: Instant) {
        self.cuts.insert((from, to), (how, until));
    }

    /// The cut between two nodes now.
    #[must_use]
    pub fn cut_between(&self, from: Index, to: Index, at: Instant) -> Option<Cut> {
        self.cuts
            .get(&(from, to))
            .filter(|(_, until)| at < *until)
            .map(|(how, _)| *how)
    }

    /// Everything works again.
    pub fn heal(&mut self) {
        (self.loss_ppm, self.twice_ppm, self.late_ppm, self.down) = (0, 0, 0, false);
        self.cuts.clear();
    }

    /// When copies of one message arrive: none, one or two moments.
    pub fn arrivals(&mut self, from: Index, to: Index, at: Instant) -> [Option<Instant>; 2] {
        let lost = self.down
            || self.cut_between(from, to, at).is_some()
            || self.rng.happens(self.loss_ppm);
        if lost {
            return [None, None];
        }
        let again = self.rng.happens(self.twice_ppm);
        [Some(self.delay(at)), again.then(|| self.delay(at))]
    }

    fn delay(&mut self, at: Instant) -> Instant {
        let us = if self.rng.happens(self.late_ppm) {
            self.rng.within(10_000, 3_000_000)
        } else {
            self.rng.within(200, 4_000)
        };
        Instant(at.0 + us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_one_way_and_ends() {
        let mut network = Network::new(Rng::new(1));
        let at = Instant(0);
        network.cut(0, 1, Cut::Silent, at.plus_ms(10));
        assert_eq!(network.arrivals(0, 1, at), [None, None]);
        assert!(network.arrivals(1, 0, at)[0].is_some());
        assert!(network.arrivals(0, 1, at.plus_ms(10))[0].is_some());
    }

    #[test]
    fn a_healed_network_delivers_each_message_once_and_soon() {
        let mut network = Network::new(Rng::new(1));
        (network.loss_ppm, network.twice_ppm, network.late_ppm) = (500_000, 500_000, 500_000);
        network.heal();
        for _ in 0..1_000 {
            let [one, two] = network.arrivals(0, 1, Instant(0));
            assert!(one.unwrap() <= Instant(4_000) && two.is_none());
        }
    }
}
