//! How fast what waited goes on: doubling each second while calls succeed, halved when they fail.

use core::time::Duration;

use super::limits::MOMENT;
use crate::time::{Mono, millis_u64};

/// Between two changes of the pace.
const STEP: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ramp {
    /// Calls that may be under way, and that may begin in a moment.
    pub(super) pace: u32,
    least: u32,
    next: Mono,
    worked: bool,
    failed: bool,
}

/// Starts within one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    number: u64,
    starts: u32,
}

impl Ramp {
    /// From twice the number of probes: so many are known to be borne.
    pub(super) fn new(now: Mono, probes: u32) -> Self {
        Self {
            pace: probes.saturating_mul(2).max(1),
            least: probes.max(1),
            next: now.plus(STEP),
            worked: false,
            failed: false,
        }
    }

    pub(super) fn ended(&mut self, worked: bool) {
        self.worked |= worked;
        self.failed |= !worked;
    }

    /// Without evidence it stays as it is.
    pub(super) fn step(&mut self, now: Mono) {
        if now < self.next {
            return;
        }
        if self.failed {
            self.pace = (self.pace / 2).max(self.least);
        } else if self.worked {
            self.pace = self.pace.saturating_mul(2);
        } else {
            return;
        }
        self.worked = false;
        self.failed = false;
        self.next = now.plus(STEP);
    }
}

impl Moment {
    pub(super) fn starts(self, now: Mono) -> u32 {
        if self.number == number(now) {
            self.starts
        } else {
            0
        }
    }

    pub(super) fn start(&mut self, now: Mono) {
        let starts = self.starts(now).saturating_add(1);
        self.number = number(now);
        self.starts = starts;
    }
}

/// How long the current moment lasts.
pub(super) fn moment_left(now: Mono) -> Duration {
    let length = millis_u64(MOMENT);
    Duration::from_millis(length - now.0 % length)
}

fn number(now: Mono) -> u64 {
    now.0 / millis_u64(MOMENT)
}
