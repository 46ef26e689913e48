//! Chance from a seed, and the pauses made of it: exponential, with jitter.
//!
//! Integer arithmetic that saturates, so that any attempt number is sound (`reliability.md` row
//! 118); the jitter comes from a seed and a count, so that a run replays. Good for jitter, not for
//! secrets. Decides how long to wait; what a failure means is not known here.

use core::time::Duration;

use crate::time::millis_u64;

/// No interval is shorter, whatever a policy says: a step that fails at once would spin.
pub const FLOOR: Duration = Duration::from_millis(10);

/// A number that looks random, from two that do not (the finaliser of `SplitMix64`).
#[must_use]
pub fn mixed(seed: u64, n: u64) -> u64 {
    let mut x = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The pause after failed attempt `attempt` (from 1): doubling from `base` up to `cap`, of which
/// the upper half is jitter; never under `floor` or [`FLOOR`].
#[must_use]
pub fn pause(seed: u64, attempt: u32, base: Duration, cap: Duration, floor: Duration) -> Duration {
    let drawn = mixed(seed, u64::from(attempt));
    upper_half(doubled(attempt, base, cap), drawn)
        .max(floor)
        .max(FLOOR)
}

/// `every`, less or more by up to a quarter, drawn from seed and count: what many do at the same
/// pace spreads out.
#[must_use]
pub fn spread(seed: u64, count: u64, every: Duration) -> Duration {
    let ms = millis_u64(every);
    let drawn = mixed(seed, count) % (ms / 2).saturating_add(1);
    Duration::from_millis((ms - ms / 4).saturating_add(drawn))
}

/// In milliseconds.
fn doubled(attempt: u32, base: Duration, cap: Duration) -> u64 {
    let doublings = attempt.saturating_sub(1);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    millis_u64(base).saturating_mul(factor).min(millis_u64(cap))
}

fn upper_half(whole: u64, drawn: u64) -> Duration {
    let half = whole / 2;
    Duration::from_millis(half.saturating_add(drawn % (whole - half).saturating_add(1)))
}

/// A stream of chance: the same seed gives the same numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        let number = mixed(self.seed, self.drawn);
        self.drawn = self.drawn.wrapping_add(1);
        number
    }

    /// A duration between `least` and `most`, in whole milliseconds.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = millis_u64(most.saturating_sub(least)).saturating_add(1);
        least.saturating_add(Duration::from_millis(self.draw() % span))
    }
}

/// Counts attempts towards the next [`pause`], which is drawn from a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    attempts: u32,
}

impl Backoff {
    /// Pauses that double from `base` up to `cap`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration) -> Self {
        let cap = cap.max(base);
        Self {
            base,
            cap,
            attempts: 0,
        }
    }

    /// The next pause: between half and the whole of base · 2^attempts, at most the cap.
    pub fn pause(&mut self, chance: &mut Chance) -> Duration {
        self.attempts = self.attempts.saturating_add(1);
        upper_half(doubled(self.attempts, self.base, self.cap), chance.draw()).max(FLOOR)
    }

    /// It worked: the next pause is a short one.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const QUARTER: Duration = Duration::from_secs(900);

    proptest! {
        #[test]
        fn every_attempt_waits_between_floor_and_cap(
            seed: u64, attempt: u32, base in 0..=u64::MAX, cap in 0..=u64::MAX, floor in 0..5_000_u64,
        ) {
            let ms = Duration::from_millis;
            let got = pause(seed, attempt, ms(base), ms(cap), ms(floor));
            prop_assert!(got >= FLOOR && got >= ms(floor));
            prop_assert!(got <= ms(cap).max(ms(floor)).max(FLOOR));
        }

        #[test]
        fn spread_stays_within_a_quarter(seed: u64, count: u64, every in 0..=u64::MAX) {
            let got = millis_u64(spread(seed, count, Duration::from_millis(every)));
            prop_assert!(got >= every - every / 4);
            prop_assert!(u128::from(got) <= u128::from(every) + u128::from(every / 4) + 1);
        }
    }

    #[test]
    fn pauses_double_until_the_cap() {
        for (attempt, full) in [
            (1, 1_000),
            (2, 2_000),
            (3, 4_000),
            (11, 900_000),
            (65, 900_000),
            (u32::MAX, 900_000),
        ] {
            let got = pause(7, attempt, SECOND, QUARTER, FLOOR);
            let full = Duration::from_millis(full);
            assert!(full / 2 <= got && got <= full, "{attempt}: {got:?}");
        }
    }

    #[test]
    fn two_transactions_do_not_wait_the_same() {
        let of = |seed| pause(seed, 5, SECOND, QUARTER, FLOOR);
        assert_ne!(of(1), of(2));
    }
}
