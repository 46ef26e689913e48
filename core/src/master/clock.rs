//! Whether this master's clock can be trusted: it is compared with the registry's and with every
//! slave's, and is off when most of them say so.
//!
//! It refuses to say by how much anybody else is off: a slave finds out for itself.

use core::time::Duration;

use super::{Master, Slave};
use crate::time::{Mono, Now, Wall, millis_i64};

/// Offsets kept of a slave. A heartbeat's delay makes its clock look late, never early, so the
/// greatest of a few is the nearest to the truth.
pub(super) const SAMPLES: usize = 3;

/// What is known of this process's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    registry: Option<Measured>,
    /// Wall clock less the steady one, at the last input.
    anchor: Option<i64>,
    /// It stepped then, and the registry has not confirmed it since.
    suspect_since: Option<Mono>,
}

/// A comparison with the registry's clock, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    /// Its clock less ours.
    offset: i64,
    /// By how much that may be wrong.
    error: i64,
    /// When.
    at: Mono,
}

impl Measured {
    fn exceeds(self, tolerance: Duration) -> bool {
        let least = self
            .offset
            .unsigned_abs()
            .saturating_sub(self.error.unsigned_abs());
        least > millis_i64(tolerance).unsigned_abs()
    }
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

    /// Forgets what was measured, and trusts the clock no more until it is confirmed.
    pub(super) fn suspect(&mut self, now: Mono) {
        self.registry = None;
        self.suspect_since = Some(now);
    }

    /// The registry told its time, somewhen between the order and the answer.
    pub(super) fn measure(&mut self, sent: Now, got: Now, theirs: Wall, tolerance: Duration) {
        let trip = millis_i64(got.mono.since(sent.mono));
        let middle = got.wall.0.saturating_sub(trip / 2);
        let measured = Measured {
            offset: theirs.0.saturating_sub(middle),
            error: trip / 2,
            at: got.mono,
        };
        self.registry = Some(measured);
        if !measured.exceeds(tolerance) {
            self.suspect_since = None;
        }
    }

    /// The registry's clock less ours, in milliseconds.
    pub(super) fn offset_ms(&self) -> Option<i64> {
        self.registry.map(|measured| measured.offset)
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
    /// Whether nothing may be cut by this clock: it stepped, and neither did the registry confirm
    /// it nor had the slaves the time to object.
    pub(super) fn is_clock_unsure(&self, now: Now) -> bool {
        let since = self.clock.suspect_since;
        since.is_some_and(|since| now.mono.since(since) < self.quiet())
    }

    /// Whether at least two voices, and more than half of all, say that this clock is off by more
    /// than is tolerated. One voice alone may itself be the one that is off, unless this clock is
    /// known to have stepped.
    pub(super) fn is_clock_off(&self, now: Now) -> bool {
        let tolerance = self.timing().tolerance;
        // A master that sits out does not ask the registry; after a while it may ask again.
        let fresh = 3 * self.timing().master_lease;
        let registry = self.clock.registry;
        let registry = registry.filter(|measured| now.mono.since(measured.at) < fresh);
        let registry = registry.map(|measured| measured.exceeds(tolerance));
        if registry == Some(true) && self.clock.suspect_since.is_some() {
            return true;
        }
        let tolerance = millis_i64(tolerance).unsigned_abs();
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
