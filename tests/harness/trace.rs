//! One line a transition, fixed columns, so that two runs can be compared with `diff`; and a
//! digest of every transition, so that two runs can be compared without lines.

use std::fmt::Write as _;

use crate::clock::Instant;

/// The record of a run.
#[derive(Debug)]
pub struct Trace {
    start: Instant,
    lines: Option<String>,
    digest: u64,
}

impl Trace {
    /// A record that begins at this moment, with or without lines.
    #[must_use]
    pub fn new(start: Instant, lines: bool) -> Self {
        Self {
            start,
            lines: lines.then(String::new),
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Whether lines are kept.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Records a transition: when, by whom (its number and start), and what, as numbers.
    pub fn digest(&mut self, at: Instant, who: usize, what: u64) {
        for word in [at.0.unsigned_abs(), who as u64, what] {
            self.digest = (self.digest ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23);
        }
    }

    /// Writes a line: seconds since the start, who, what.
    pub fn line(&mut self, at: Instant, who: &str, what: &str) {
        if let Some(lines) = &mut self.lines {
            let us = at.0 - self.start.0;
            let written = writeln!(
                lines,
                "{:>5}.{:06} {who:<10} {what}",
                us.div_euclid(1_000_000),
                us.rem_euclid(1_000_000)
            );
            debug_assert!(written.is_ok(), "a string takes every line");
        }
    }

    /// The digest of all transitions, and the lines.
    #[must_use]
    pub fn finish(self) -> (u64, Option<String>) {
        (self.digest, self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_fixed_columns() {
        let mut trace = Trace::new(Instant(5_000_000), true);
        trace.line(Instant(6_250_001), "m-0", "woke");
        assert_eq!(trace.finish().1.unwrap(), "    1.250001 m-0        woke\n");
    }

    #[test]
    fn another_order_is_another_digest() {
        let digest = |whos: [usize; 2]| {
            let mut trace = Trace::new(Instant(0), false);
            for who in whos {
                trace.digest(Instant(1), who, 7);
            }
            trace.finish().0
        };
        assert_ne!(digest([1, 2]), digest([2, 1]));
    }
}
