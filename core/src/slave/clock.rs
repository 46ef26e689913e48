//! How far a slave's clock is from the master's, by Cristian's method.
//!
//! The master answers with its clock; the middle of the round trip, measured on the clock that
//! never steps, is when it did so, give or take half the round trip. Decides nothing about what
//! follows from an offset.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::{
    time::{Wall, millis_i64},
    timing::Timing,
};

/// The best of the last eight answers counts: the quickest is the most exact, and eight heartbeats
/// are short enough to see a step.
const SAMPLES: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Offset {
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    offset_ms: i64,
    error_ms: i64,
}

impl Offset {
    /// An answer that took `took` came at `here` by our clock and said `there`.
    pub(super) fn measured(&mut self, here: Wall, there: Wall, took: Duration) {
        let error_ms = millis_i64(took) / 2;
        let offset_ms = here.0.saturating_sub(error_ms).saturating_sub(there.0);
        if self.samples.len() >= SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            offset_ms,
            error_ms,
        });
        // A step of either clock makes the older samples lies.
        let steps = |s: &Sample| {
            s.offset_ms.abs_diff(offset_ms) > s.error_ms.unsigned_abs() + error_ms.unsigned_abs()
        };
        while self.samples.front().is_some_and(steps) {
            self.samples.pop_front();
        }
    }

    /// Our clock less the master's, in milliseconds.
    pub(super) fn ms(&self) -> Option<i64> {
        self.best().map(|s| s.offset_ms)
    }

    /// Whether it is off by more than is tolerated, whatever the error of the measurement.
    pub(super) fn is_off(&self, timing: &Timing) -> bool {
        self.best().is_some_and(|s| {
            s.offset_ms.saturating_abs().saturating_sub(s.error_ms) > millis_i64(timing.tolerance)
        })
    }

    fn best(&self) -> Option<Sample> {
        self.samples.iter().copied().min_by_key(|s| s.error_ms)
    }
}
