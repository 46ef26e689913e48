//! Whether this master's clock can be trusted: it is compared with the registry's and with every
//! slave's, and is off when most of them say so.
//!
//! It refuses to say by how much anybody else is off: a slave finds out for itself.

use core::time::Duration;

use super::{Master, Slave};
use crate::time::{Now, Wall, millis_i64};

/// Offsets kept of a slave. A heartbeat's delay makes its clock look late, never early, so the
/// greatest of a few is the nearest to the truth.
pub(super) const SAMPLES: usize = 3;

/// What is known of this process's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The registry's clock less ours, and by how much that may be wrong, in milliseconds.
    registry: Option<(i64, i64)>,
    /// Wall clock less the steady one, at the last input.
    anchor: Option<i64>,
}

impl Clock {
    /// Whether the wall clock stepped since the last input: what was measured before is void.
    pub(super) fn stepped(&mut self, now: Now, tolerance: Duration) -> bool {
        let mono = i64::try_from(now.mono.0).unwrap_or(i64::MAX);
        let anchor = now.wall.0.saturating_sub(mono);
        let before = self.anchor.replace(anchor);
        before.is_some_and(|before| {
            let step = before.abs_diff(anchor);
            step > u64::try_from(millis_i64(tolerance) / 2).unwrap_or(0)
        })
    }

    /// Forgets what was measured.
    pub(super) fn forget(&mut self) {
        self.registry = None;
    }

    /// The registry told its time, somewhen between the order and the answer.
    pub(super) fn measure(&mut self, sent: Now, got: Now, theirs: Wall) {
        let trip = millis_i64(got.mono.since(sent.mono));
        let middle = got.wall.0.saturating_sub(trip / 2);
        self.registry = Some((theirs.0.saturating_sub(middle), trip / 2));
    }

    /// The registry's clock less ours, in milliseconds.
    pub(super) fn offset_ms(&self) -> Option<i64> {
        self.registry.map(|(offset, _)| offset)
    }
}

impl Slave {
    /// Notes one measurement.
    pub(super) fn note_offset(&mut self, offset_ms: i64) {
        if self.offsets.len() == SAMPLES {
            self.offsets.pop_front();
        }
        self.offsets.push_back(offset_ms);
    }
}

impl Master {
    /// Whether at least two voices, and more than half of all, say that this clock is off by more
    /// than is tolerated. One voice alone may itself be the one that is off.
    pub(super) fn is_clock_off(&self) -> bool {
        let tolerance = millis_i64(self.timing().tolerance).unsigned_abs();
        let registry = self.clock.registry.map(|(offset, error)| {
            offset.unsigned_abs().saturating_sub(error.unsigned_abs()) > tolerance
        });
        let slaves = self.roster.iter().filter_map(|(_, member)| {
            let best = member.role.offsets.iter().max()?;
            Some(best.unsigned_abs() > tolerance)
        });
        let (mut voices, mut off) = (0_usize, 0_usize);
        for disagrees in registry.into_iter().chain(slaves) {
            voices += 1;
            off += usize::from(disagrees);
        }
        off >= 2 && 2 * off > voices
    }

    /// Our best guess of what is to be added to our clock: the registry's word, else the median of
    /// the slaves'.
    pub(super) fn clock_offset_ms(&self) -> Option<i64> {
        self.clock.offset_ms().or_else(|| {
            let best = |slave: &Slave| slave.offsets.iter().max().copied();
            let mut all: alloc::vec::Vec<i64> = self
                .roster
                .iter()
                .filter_map(|(_, member)| best(&member.role))
                .collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied()
        })
    }
}
