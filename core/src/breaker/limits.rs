//! The numbers of the breaker, each with its reason.

use core::time::Duration;

/// Length of one bucket of the window …
pub(super) const BUCKET: Duration = Duration::from_secs(1);
/// … and how many there are: ten seconds tell a bad moment from a bad target, and forget in time.
pub(super) const BUCKETS: usize = 10;

/// Starts are counted in moments of this length while what waited goes on: short enough that a
/// target sees a stream and no bursts.
pub(super) const MOMENT: Duration = Duration::from_millis(100);

/// Targets that are watched at once. They are names in code; who has more has put an id into one.
pub const MOST_TARGETS: usize = 64;

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Failures in a row that open it, of at least two transactions. 5: inline retries of one
    /// transaction are three calls.
    pub failures_in_row: u32,
    /// Failed part of the calls in the window, in per cent, that opens it …
    pub failed_percent: u32,
    /// … when so many have ended. 20: fewer say little.
    pub least_calls: u32,
    /// Most probes under way. 3: one that hangs stops nothing.
    pub probes: u32,
    /// Pause before the first probe, doubling with jitter …
    pub first_pause: Duration,
    /// … up to this, which is how much later than possible an outage ends here.
    pub longest_pause: Duration,
    /// Retries may be this part of all calls in the window, in per cent: a target that is slow
    /// from load is not given a multiple of it …
    pub retry_percent: u32,
    /// … but always so many in a window: few calls make no load.
    pub retry_floor: u32,
    /// Most calls of one target under way, so that one that hangs does not take every place.
    pub concurrency: u32,
    /// Most calls begun in a second while what waited goes on.
    pub drain_per_second: u32,
}

impl Limits {
    /// For a process that runs so many transactions at once: no target takes its last quarter.
    #[must_use]
    pub fn for_capacity(capacity: u32) -> Self {
        Self {
            concurrency: capacity.saturating_sub(capacity / 4).max(1),
            ..Self::default()
        }
    }

    /// Most calls begun in a moment while what waited goes on.
    pub(super) fn drain_per_moment(&self) -> u32 {
        let moments = u32::try_from(1_000 / MOMENT.as_millis()).unwrap_or(1);
        (self.drain_per_second / moments).max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            failures_in_row: 5,
            failed_percent: 50,
            least_calls: 20,
            probes: 3,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(10),
            retry_percent: 20,
            retry_floor: 50,
            concurrency: 384,
            drain_per_second: 1_000,
        }
    }
}
