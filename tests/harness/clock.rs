//! A node's own idea of time: a wall clock that is off, drifts and steps, and a monotonic clock
//! that only drifts. Nobody but the world sees true time.

use ring_core::time::{Mono, Now, Wall};

/// True time, microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub i64);

/// Where monotonic clocks begin: not at Unix time, so that nobody takes one for the other.
const ORIGIN: u64 = 1_000_000;

/// The clocks of one machine room.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Wall clock minus true time at `since`, microseconds.
    pub offset_us: i64,
    /// How much faster than true time both clocks run, parts per million.
    pub drift_ppm: i64,
    /// From when the drift counts.
    pub since: Instant,
}

impl Instant {
    /// Later by milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0 + ms * 1_000)
    }

    /// As a wall clock without error reads it.
    #[must_use]
    pub fn wall(self) -> Wall {
        Wall(self.0.div_euclid(1_000))
    }
}

impl Clock {
    /// Microseconds that the wall clock is ahead of true time.
    #[must_use]
    pub fn ahead_us(&self, at: Instant) -> i64 {
        self.offset_us + (at.0 - self.since.0) * self.drift_ppm / 1_000_000
    }

    /// Both clocks, read together.
    #[must_use]
    pub fn read(&self, at: Instant) -> Now {
        let run = at.0 - self.since.0;
        let mono = run + run * self.drift_ppm / 1_000_000;
        Now {
            wall: Wall((at.0 + self.ahead_us(at)).div_euclid(1_000)),
            mono: Mono(u64::try_from(mono / 1_000).unwrap_or(0) + ORIGIN),
        }
    }

    /// The first true moment at which the wall clock reads `wall`, unless it steps before.
    #[must_use]
    pub fn when(&self, wall: Wall) -> Instant {
        let mut at = Instant(wall.0 * 1_000 - self.offset_us);
        at = Instant(wall.0 * 1_000 - self.ahead_us(at));
        while self.read(at).wall < wall {
            at.0 += 1;
        }
        at
    }

    /// The first true moment at which the monotonic clock reads `mono`.
    #[must_use]
    pub fn when_mono(&self, mono: Mono) -> Instant {
        let ms = i64::try_from(mono.0.saturating_sub(ORIGIN)).unwrap_or(i64::MAX / 4_000);
        let us = ms.min(i64::MAX / 4_000) * 1_000;
        let mut at =
            Instant((self.since.0 + us - us / 1_000_000 * self.drift_ppm).max(self.since.0));
        while self.read(at).mono < mono && at.0 < i64::MAX / 4 {
            at.0 += 1;
        }
        at
    }

    /// Moves the wall clock at once; the monotonic clock does not notice.
    pub fn step_ms(&mut self, by: i64) {
        self.offset_us += by * 1_000;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_moves_the_wall_clock_alone() {
        let start = Instant(1_000_000_000);
        let mut clock = Clock {
            offset_us: 5_000,
            drift_ppm: 100,
            since: start,
        };
        let before = clock.read(start.plus_ms(10_000));
        clock.step_ms(-90_000);
        let after = clock.read(start.plus_ms(10_000));
        assert_eq!(before.mono, after.mono);
        assert_eq!(after.wall.0, before.wall.0 - 90_000);
    }

    #[test]
    fn the_moment_of_a_reading_is_found_again() {
        let clock = Clock {
            offset_us: -333_123,
            drift_ppm: -70,
            since: Instant(0),
        };
        let wall = Wall(60_000);
        let at = clock.when(wall);
        assert_eq!(clock.read(at).wall, wall);
        let mono = clock.when_mono(Mono(1_077_777));
        assert_eq!(clock.read(mono).mono, Mono(1_077_777));
        assert!(clock.read(Instant(at.0 - 2)).wall < wall);
    }
}
