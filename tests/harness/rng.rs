//! Chance of the simulated world: one seed, one stream, the same on every version and platform.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014), ten
//! lines of our own, because a seed in `seeds.txt` must mean the same universe for ever and a
//! crate may change its stream with a release.

/// A stream of chance.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for a purpose, so that more draws there shift nothing here.
    #[must_use]
    pub fn fork(&self, purpose: u64) -> Self {
        let mut child = Self(self.0 ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        child.draw();
        child
    }

    /// 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 for `n` = 0. The bias of the plain modulus is below 2^-40 here.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw().checked_rem(n).unwrap_or(0)
    }

    /// A number in `low ..= high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let width = high.abs_diff(low).saturating_add(1);
        low.saturating_add_unsigned(self.below(width))
    }

    /// Whether something of that likelihood (parts per million) happens.
    pub fn happens(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// One of a list; `None` of an empty one.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.index(list.len()))
    }

    /// An index into a list of that length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Log-uniform between `low` and `high`: small values are as likely as large ones.
    pub fn log_within(&mut self, low: u64, high: u64) -> u64 {
        let (a, b) = (low.max(1).ilog2(), high.max(1).ilog2());
        let power = a + u32::try_from(self.below(u64::from(b - a) + 1)).unwrap_or(0);
        let base = 1_u64 << power;
        (base + self.below(base)).clamp(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64() {
        let mut rng = Rng::new(1_234_567);
        let got = [rng.draw(), rng.draw(), rng.draw()];
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(got, published);
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut rng = Rng::new(7);
        for _ in 0..1_000 {
            assert!((-3..=3).contains(&rng.within(-3, 3)));
            assert!((5..=900).contains(&rng.log_within(5, 900)));
        }
        assert_eq!(rng.below(0), 0);
    }
}
