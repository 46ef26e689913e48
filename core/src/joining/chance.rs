//! Jitter and pauses between attempts. Decides how long to wait; refuses to know for what.

use core::time::Duration;

use crate::time::millis_u64;

/// Chance from a seed (splitmix64): the same seed gives the same numbers. Good for jitter, not
/// for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance(u64);

/// Exponential pauses with jitter, so that thousands don't come back in step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    attempts: u32,
}

impl Chance {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A duration between `least` and `most`, in whole milliseconds.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = millis_u64(most.saturating_sub(least)).saturating_add(1);
        least.saturating_add(Duration::from_millis(self.draw() % span))
    }
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
        let doubled = 1u32.checked_shl(self.attempts).unwrap_or(u32::MAX);
        let whole = self.base.saturating_mul(doubled).min(self.cap);
        // 16 doublings take any base to any sensible cap.
        self.attempts = self.attempts.saturating_add(1).min(16);
        chance.between(whole / 2, whole)
    }

    /// It worked: the next pause is a short one.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}
