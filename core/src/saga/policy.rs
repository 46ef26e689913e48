//! What a failed call leads to: one table of classes and strategies (F1–F4).
//!
//! Whether the step may have been applied is kept elsewhere; where compensation starts follows
//! from it, not from here.

use core::time::Duration;

use super::{Class, Direction, PlannedStep, Recovery, Repeat, Retry};
use crate::chance;

/// A target's `Retry-After` is honoured up to this: a wrong header must not hold a transaction
/// until its lifetime ends.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// A retry that must wait longer than this lets go of the transaction meanwhile.
const LONGEST_INLINE_PAUSE: Duration = Duration::from_secs(1);

/// One failed call, with what came before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) direction: Direction,
    pub(super) class: Class,
    /// Calls of this intent so far, this one included.
    pub(super) attempts: u32,
    /// Inline retries already made in this claim.
    pub(super) inline: u32,
    pub(super) retry_after: Option<Duration>,
    /// For the jitter.
    pub(super) seed: u64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Again in a moment, without letting go.
    Inline(Duration),
    /// Again later, by anyone.
    Park(Duration),
    /// Compensation starts.
    Backward,
    /// A person is needed.
    Terminate,
}

impl Failure {
    /// The table.
    pub(super) fn verdict(self, step: &PlannedStep) -> Verdict {
        match (self.direction, step.recovery, self.class) {
            (Direction::Compensating, _, Class::Business | Class::Persistent) => Verdict::Terminate,
            (Direction::Compensating, _, Class::Transient | Class::Unknown) => {
                let retry = step.compensate.unwrap_or(Retry::COMPENSATION);
                self.retried(&retry, retry.attempts, Verdict::Terminate)
            }
            (Direction::Forward, Recovery::ForwardOnly, _) => {
                self.retried(&step.retry, None, Verdict::Terminate)
            }
            (Direction::Forward, Recovery::BackwardFirst, _) => Verdict::Backward,
            (Direction::Forward, Recovery::Hybrid, Class::Business | Class::Persistent) => {
                Verdict::Backward
            }
            (Direction::Forward, Recovery::Hybrid, Class::Transient | Class::Unknown) => {
                self.retried(&step.retry, step.retry.attempts, Verdict::Backward)
            }
            (Direction::Forward, Recovery::Irreversible, Class::Transient) => {
                self.retried(&step.retry, step.retry.attempts, Verdict::Terminate)
            }
            // Before it is called again its probe is asked: that decides, and not the doubt.
            (Direction::Forward, Recovery::Irreversible, Class::Unknown)
                if step.repeat == Repeat::Probe =>
            {
                self.retried(&step.retry, step.retry.attempts, Verdict::Terminate)
            }
            (
                Direction::Forward,
                Recovery::Irreversible,
                Class::Business | Class::Persistent | Class::Unknown,
            ) => Verdict::Terminate,
        }
    }

    fn retried(self, retry: &Retry, limit: Option<u32>, spent: Verdict) -> Verdict {
        if limit.is_some_and(|limit| self.attempts >= limit) {
            return spent;
        }
        let asked = self
            .retry_after
            .unwrap_or_default()
            .min(LONGEST_RETRY_AFTER);
        let seed = self.seed;
        let longest = LONGEST_INLINE_PAUSE;
        let soon = chance::pause(
            seed,
            self.inline + 1,
            retry.inline_pause,
            longest,
            chance::FLOOR,
        );
        let inline = self.class == Class::Transient && self.inline < retry.inline;
        if inline && asked <= longest {
            return Verdict::Inline(soon.max(asked));
        }
        let later = chance::pause(seed, self.attempts, retry.base, retry.cap, retry.floor);
        Verdict::Park(later.max(asked))
    }
}
