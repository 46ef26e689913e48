//! When the next poll and the next sweep are due.

use core::time::Duration;

use crate::{chance, time::Mono};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) poll_at: Mono,
    pub(super) sweep_at: Mono,
    count: u64,
    sweeps: u64,
}

impl Due {
    pub(super) fn polled(&mut self, now: Mono, seed: u64, every: Duration) {
        self.poll_at = now.plus(self.spread(seed, every));
    }

    pub(super) fn swept(&mut self, now: Mono, seed: u64, every: Duration) {
        self.sweep_at = now.plus(self.spread(seed, every));
        self.sweeps = self.sweeps.wrapping_add(1);
    }

    pub(super) fn odd_sweep(&self) -> bool {
        self.sweeps % 2 == 1
    }

    fn spread(&mut self, seed: u64, every: Duration) -> Duration {
        self.count = self.count.wrapping_add(1);
        chance::spread(seed, self.count, every)
    }
}
