//! Two clocks, two types; nobody subtracts one from the other.
//!
//! [`Wall`] is Unix time: windows live on it, and it may step. [`Mono`] counts on through a
//! suspend (Linux `CLOCK_BOOTTIME`; Rust's `Instant` does not, rust#87906): sessions, leases and
//! time limits live on it.

use core::time::Duration;

use chrono::{DateTime, SecondsFormat};

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub i64);

/// Milliseconds on a clock that never steps and counts suspend; its origin means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Unix time.
    pub wall: Wall,
    /// The clock for time limits.
    pub mono: Mono,
}

/// The next deadlines of a machine, at most one a clock, each with its reason (for logs: when a
/// node wakes too often, the reason says why).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Earliest deadline on the wall clock.
    pub wall: Option<(Wall, &'static str)>,
    /// Earliest deadline on the clock for time limits.
    pub mono: Option<(Mono, &'static str)>,
}

impl Wall {
    /// `self + d`, saturating at the ends of time.
    #[must_use]
    pub fn plus(self, d: Duration) -> Self {
        Self(self.0.saturating_add(millis_i64(d)))
    }

    /// `self - d`, saturating.
    #[must_use]
    pub fn minus(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(millis_i64(d)))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, as on the wire. Times outside chrono's years (±262,000)
    /// read as the epoch.
    #[must_use]
    pub fn rfc3339(self) -> alloc::string::String {
        DateTime::from_timestamp_millis(self.0)
            .unwrap_or_default()
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// Reads RFC 3339; `None` when it is none.
    #[must_use]
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|t| Self(t.timestamp_millis()))
    }
}

impl Mono {
    /// `self + d`, saturating.
    #[must_use]
    pub fn plus(self, d: Duration) -> Self {
        Self(self.0.saturating_add(millis_u64(d)))
    }

    /// `self - d`, saturating.
    #[must_use]
    pub fn minus(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(millis_u64(d)))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Wake {
    /// No deadline.
    pub const NEVER: Self = Self {
        wall: None,
        mono: None,
    };

    /// Adds a deadline on the wall clock; the earlier one stays.
    pub fn at_wall(&mut self, at: Wall, reason: &'static str) {
        if self.wall.is_none_or(|(old, _)| at < old) {
            self.wall = Some((at, reason));
        }
    }

    /// Adds a deadline on the clock for time limits; the earlier one stays.
    pub fn at_mono(&mut self, at: Mono, reason: &'static str) {
        if self.mono.is_none_or(|(old, _)| at < old) {
            self.mono = Some((at, reason));
        }
    }

    /// The earlier deadlines of both.
    #[must_use]
    pub fn sooner(mut self, other: Self) -> Self {
        if let Some((at, reason)) = other.wall {
            self.at_wall(at, reason);
        }
        if let Some((at, reason)) = other.mono {
            self.at_mono(at, reason);
        }
        self
    }

    /// How long to sleep from `now` until the first deadline, with the reason; `None` for never.
    #[must_use]
    pub fn after(&self, now: Now) -> Option<(Duration, &'static str)> {
        let wall = self.wall.map(|(at, why)| (at.since(now.wall), why));
        let mono = self.mono.map(|(at, why)| (at.since(now.mono), why));
        match (wall, mono) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (one, other) => one.or(other),
        }
    }
}

/// Whole milliseconds of a duration, saturating.
#[must_use]
pub fn millis_u64(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

/// Whole milliseconds of a duration, saturating.
#[must_use]
pub fn millis_i64(d: Duration) -> i64 {
    i64::try_from(d.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_reads_back_from_its_text() {
        let at = Wall(1_796_076_579_123);
        assert_eq!(at.rfc3339(), "2026-11-30T22:09:39.123Z");
        assert_eq!(Wall::from_rfc3339(&at.rfc3339()), Some(at));
        assert_eq!(Wall::from_rfc3339("yesterday"), None);
    }

    #[test]
    fn the_first_deadline_of_either_clock_wakes() {
        let mut wake = Wake::NEVER;
        wake.at_wall(Wall(5_000), "window");
        wake.at_mono(Mono(100), "session");
        wake.at_mono(Mono(200), "later");
        let now = Now {
            wall: Wall(4_000),
            mono: Mono(50),
        };
        assert_eq!(
            wake.after(now),
            Some((Duration::from_millis(50), "session"))
        );
        assert_eq!(Wake::NEVER.after(now), None);
    }
}
