//! Tokens, ranges of the ring, and how a range is cut.
//!
//! The ring is −2^63 … 2^63−1, both ends inclusive (R4). The hash itself (Murmur3 x64/128, seed 0,
//! first 64 bits, of the transaction id's 16 bytes, R3) is computed outside: its crate needs std.
//! Here a token is a value. Widths are `u128`: the whole ring has 2^64 tokens.

use alloc::{string::ToString, vec::Vec};
use core::fmt;

use thiserror::Error;

/// A place on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

/// An inclusive range of tokens; never empty, so "nothing" is `None`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    start: i64,
    end: i64,
}

/// A coarse place on the ring, 0 … 1023, by which the store's indexes are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

/// Why two numbers make no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a range must not end ({end}) before it starts ({start})")]
pub struct RangeError {
    /// First token given.
    pub start: i64,
    /// Last token given.
    pub end: i64,
}

impl Token {
    /// `(token >> 54) + 512`: the top ten bits, shifted to begin at 0.
    #[must_use]
    pub fn slot(self) -> Slot {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an arithmetic shift by 54 leaves -512 ..= 511"
        )]
        let slot = ((self.0 >> 54) + 512) as u16;
        Slot(slot)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Range {
    /// All 2^64 tokens.
    pub const RING: Self = Self {
        start: i64::MIN,
        end: i64::MAX,
    };

    /// A range from its inclusive ends.
    ///
    /// # Errors
    /// [`RangeError`] when `end < start`.
    pub fn new(start: i64, end: i64) -> Result<Self, RangeError> {
        if end < start {
            Err(RangeError { start, end })
        } else {
            Ok(Self { start, end })
        }
    }

    /// First token.
    #[must_use]
    pub fn start(self) -> Token {
        Token(self.start)
    }

    /// Last token, inclusive.
    #[must_use]
    pub fn end(self) -> Token {
        Token(self.end)
    }

    /// Number of tokens, 1 … 2^64.
    #[must_use]
    pub fn width(self) -> u128 {
        u128::from(self.end.abs_diff(self.start)) + 1
    }

    /// Whether the token lies in the range.
    #[must_use]
    pub fn contains(self, token: Token) -> bool {
        self.start <= token.0 && token.0 <= self.end
    }

    /// Whether the other range lies wholly inside.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether the two share a token.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// First and last slot touched.
    #[must_use]
    pub fn slots(self) -> (Slot, Slot) {
        (self.start().slot(), self.end().slot())
    }

    /// Equal parts; the first `width mod parts` are one wider, a part of no width is `None`
    /// (vectors: `ring_splits.json`).
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Option<Self>> {
        self.split_weighted(&alloc::vec![1; parts])
    }

    /// Parts in proportion to weights by largest remainder: quotas ⌊width·w/Σw⌋, the tokens left
    /// over go one each to the largest remainders, ties to the lowest index, never to weight 0.
    /// All weights 0: nobody gets anything (vectors: `weighted_splits.json`).
    #[must_use]
    pub fn split_weighted(self, weights: &[u32]) -> Vec<Option<Self>> {
        let sum: u128 = weights.iter().copied().map(u128::from).sum();
        if sum == 0 {
            return alloc::vec![None; weights.len()];
        }
        let width = self.width();
        // width ≤ 2^64 and w < 2^32, so the product stays below 2^96.
        let product = |w: u32| width * u128::from(w);
        let mut sizes: Vec<u128> = weights.iter().map(|w| product(*w) / sum).collect();
        let given: u128 = sizes.iter().sum();
        let mut order: Vec<usize> = (0..weights.len()).filter(|i| weights[*i] > 0).collect();
        order.sort_by_key(|i| core::cmp::Reverse(product(weights[*i]) % sum));
        let left = usize::try_from(width - given).unwrap_or(0);
        for i in order.into_iter().take(left) {
            sizes[i] += 1;
        }
        self.lay_out(&sizes)
    }

    /// Lays sizes side by side from the start; they sum to the width.
    fn lay_out(self, sizes: &[u128]) -> Vec<Option<Self>> {
        let mut next = i128::from(self.start);
        sizes
            .iter()
            .map(|size| {
                let from = next;
                next += i128::try_from(*size).unwrap_or(0);
                if *size == 0 {
                    return None;
                }
                let start = i64::try_from(from).ok()?;
                let end = i64::try_from(next - 1).ok()?;
                Some(Self { start, end })
            })
            .collect()
    }

    /// The share of the whole ring, in parts per million, rounded down.
    #[must_use]
    pub fn ppm(self) -> u32 {
        u32::try_from(self.width() * 1_000_000 / Self::RING.width()).unwrap_or(1_000_000)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_string())
    }
}

/// The parts of `whole` that `pieces` leave uncovered, and the parts they cover twice or more;
/// both sorted and merged. Pieces are clipped to `whole`. This is how anyone proves coverage.
#[must_use]
pub fn coverage(whole: Range, pieces: &[Range]) -> (Vec<Range>, Vec<Range>) {
    let mut sorted: Vec<Range> = pieces
        .iter()
        .copied()
        .filter(|p| p.overlaps(whole))
        .collect();
    sorted.sort_unstable();
    let (mut gaps, mut overlaps) = (Vec::new(), Vec::new());
    // First token not yet covered, beyond i64 once the ring's end is.
    let mut next = i128::from(whole.start);
    for piece in sorted {
        let start = i128::from(piece.start.max(whole.start));
        let end = i128::from(piece.end.min(whole.end));
        if start > next {
            push_merged(&mut gaps, next, start - 1);
        } else if start < next {
            push_merged(&mut overlaps, start, end.min(next - 1));
        }
        next = next.max(end + 1);
    }
    if next <= i128::from(whole.end) {
        push_merged(&mut gaps, next, i128::from(whole.end));
    }
    (gaps, overlaps)
}

fn push_merged(list: &mut Vec<Range>, start: i128, end: i128) {
    let (Ok(start), Ok(end)) = (i64::try_from(start), i64::try_from(end)) else {
        return;
    };
    match list.last_mut() {
        Some(last) if i128::from(start) <= i128::from(last.end) + 1 => last.end = last.end.max(end),
        Some(_) | None => list.push(Range { start, end }),
    }
}

#[cfg(test)]
mod tests;
