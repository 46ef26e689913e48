//! What happened in the last ten seconds, in buckets of one.

use super::limits::{BUCKET, BUCKETS};
use crate::time::{Mono, millis_u64};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    buckets: [Bucket; BUCKETS],
    /// Number of the newest bucket, counted from the clock's origin.
    newest: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    begun: u32,
    retries: u32,
    ended: u32,
    failed: Failed,
}

/// Failures, and whether they are of one caller alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) count: u32,
    first: u64,
    others: bool,
}

impl Failed {
    pub(super) fn add(&mut self, caller: u64) {
        if self.count == 0 {
            self.first = caller;
        }
        self.others |= self.first != caller;
        self.count = self.count.saturating_add(1);
    }

    pub(super) fn of_several(self) -> bool {
        self.others
    }

    fn and(self, other: Self) -> Self {
        let differ = self.count > 0 && other.count > 0 && self.first != other.first;
        Self {
            count: self.count.saturating_add(other.count),
            first: if self.count > 0 {
                self.first
            } else {
                other.first
            },
            others: self.others || other.others || differ,
        }
    }
}

impl Window {
    pub(super) fn begun(&mut self, now: Mono, retry: bool) {
        let bucket = self.at(now);
        bucket.begun = bucket.begun.saturating_add(1);
        bucket.retries = bucket.retries.saturating_add(u32::from(retry));
    }

    pub(super) fn ended(&mut self, now: Mono, failed_by: Option<u64>) {
        let bucket = self.at(now);
        bucket.ended = bucket.ended.saturating_add(1);
        if let Some(caller) = failed_by {
            bucket.failed.add(caller);
        }
    }

    /// Calls begun, and how many of them were retries.
    pub(super) fn calls(&mut self, now: Mono) -> (u32, u32) {
        self.at(now);
        let sum = |of: fn(&Bucket) -> u32| self.buckets.iter().map(of).fold(0, u32::saturating_add);
        (sum(|b| b.begun), sum(|b| b.retries))
    }

    /// Calls ended, and the failures among them.
    pub(super) fn outcomes(&mut self, now: Mono) -> (u32, Failed) {
        self.at(now);
        let ended = self.buckets.iter().map(|b| b.ended);
        let failed = self.buckets.iter().map(|b| b.failed);
        (
            ended.fold(0, u32::saturating_add),
            failed.fold(Failed::default(), Failed::and),
        )
    }

    /// The bucket of now; those that time has passed over are emptied.
    fn at(&mut self, now: Mono) -> &mut Bucket {
        let number = now.0 / millis_u64(BUCKET);
        let length = BUCKETS as u64;
        if number > self.newest {
            let gone = (number - self.newest).min(length);
            for passed in (number + 1 - gone)..=number {
                *self.slot(passed) = Bucket::default();
            }
            self.newest = number;
        }
        // A clock that does not step back is asked for; an older time counts as now.
        let newest = self.newest;
        self.slot(newest)
    }

    fn slot(&mut self, number: u64) -> &mut Bucket {
        let at = usize::try_from(number % BUCKETS as u64).unwrap_or(0);
        &mut self.buckets[at]
    }
}
