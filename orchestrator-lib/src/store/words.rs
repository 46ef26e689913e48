//! How the words of a transaction are written in Postgres and read back. Decides spellings and
//! number widths, nothing else.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ring_core::{
    saga::Attempt,
    time::{Wall, millis_i64},
};

/// Longest duration that is stored, 100 years in milliseconds: far from the end of timestamps.
const MAX_MILLIS: i64 = 100 * 366 * 24 * 3_600_000;

pub(super) fn outcome(attempt: &Attempt) -> &'static str {
    match attempt {
        Attempt::Done(_) => "done",
        Attempt::Refused { .. } => "refused",
        Attempt::Skipped => "skipped",
        Attempt::Paused { .. } => "paused",
    }
}

pub(super) fn millis(d: Duration) -> i64 {
    millis_i64(d).min(MAX_MILLIS)
}

pub(super) fn time(at: Wall) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.0).unwrap_or_default()
}

pub(super) fn wall(at: DateTime<Utc>) -> Wall {
    Wall(at.timestamp_millis())
}

/// An unsigned counter as `bigint`; counters never come near its end.
pub(super) fn big(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
