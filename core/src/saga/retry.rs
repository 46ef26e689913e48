//! How often and how fast a call is made again.

use core::time::Duration;

/// A policy of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Retries of *transient* failures without letting go of the transaction, each claim.
    pub inline: u32,
    /// Pause before the first of them, doubling.
    pub inline_pause: Duration,
    /// Most calls in all. For an action: before compensation starts; for a compensation: before
    /// `TERMINATED`. `None`: until the lifetime ends.
    pub attempts: Option<u32>,
    /// First pause, doubling.
    pub base: Duration,
    /// Longest pause.
    pub cap: Duration,
    /// Shortest pause, jitter included.
    pub floor: Duration,
}

impl Retry {
    /// For actions: two inline retries, ten calls in all, pauses from 1 s to 15 min.
    pub const ACTION: Self = Self {
        inline: 2,
        inline_pause: Duration::from_millis(50),
        attempts: Some(10),
        base: Duration::from_secs(1),
        cap: Duration::from_secs(15 * 60),
        floor: Duration::from_millis(100),
    };

    /// For compensations: the same, but without a limit.
    pub const COMPENSATION: Self = Self {
        attempts: None,
        ..Self::ACTION
    };
}
