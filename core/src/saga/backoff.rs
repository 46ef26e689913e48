//! How long to wait before the next attempt: exponential, with jitter that needs no chance.
//!
//! Integer arithmetic that saturates, so that any attempt number is sound (`reliability.md` row
//! 118); the jitter comes from a seed and the attempt, so that a run replays. What a failure means
//! is not known here.

use core::time::Duration;

use crate::time::millis_u64;

/// No interval is shorter, whatever a policy says: a step that fails at once would spin.
pub const FLOOR: Duration = Duration::from_millis(10);

/// A target's `Retry-After` is honoured up to this: a wrong header must not hold a transaction
/// until its lifetime ends.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// The pause after failed attempt `attempt` (from 1): doubling from `base` up to `cap`, of which
/// the upper half is jitter; never under `floor` or [`FLOOR`].
#[must_use]
pub fn pause(seed: u64, attempt: u32, base: Duration, cap: Duration, floor: Duration) -> Duration {
    let doublings = attempt.saturating_sub(1);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    let full = millis_u64(base).saturating_mul(factor).min(millis_u64(cap));
    let half = full / 2;
    let spread = full - half;
    let drawn = half.saturating_add(mixed(seed, u64::from(attempt)) % spread.saturating_add(1));
    Duration::from_millis(drawn).max(floor).max(FLOOR)
}

/// `every`, less or more by up to a quarter, drawn from seed and count: what many do at the same
/// pace spreads out.
#[must_use]
pub fn spread(seed: u64, count: u64, every: Duration) -> Duration {
    let ms = millis_u64(every);
    let drawn = mixed(seed, count) % (ms / 2).saturating_add(1);
    Duration::from_millis((ms - ms / 4).saturating_add(drawn))
}

/// A number that looks random, from two that do not (the finaliser of `SplitMix64`).
#[must_use]
pub fn mixed(seed: u64, n: u64) -> u64 {
    let mut x = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
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
