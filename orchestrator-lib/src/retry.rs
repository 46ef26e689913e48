//! How often and how fast a step is tried again.
//!
//! Holds the numbers; when the next attempt is due is the transaction machine's decision.

use std::time::Duration;

use ring_core::saga::Retry as Policy;

/// How a step is retried: at once a few times, then paused with a growing, jittered backoff.
///
/// ```
/// # use orchestrator_lib::Retry;
/// # use std::time::Duration;
/// let patient = Retry::exponential(Duration::from_secs(2))
///     .cap(Duration::from_secs(120))
///     .attempts(30);
/// let once = Retry::never();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry(pub(crate) Policy);

impl Retry {
    /// The first pause; each further one doubles up to the [cap](Self::cap), 15 min by default.
    /// Up to [10 attempts](Self::attempts), with [2 retries](Self::inline) of transient failures
    /// at once.
    #[must_use]
    pub const fn exponential(first: Duration) -> Self {
        Self(Policy {
            base: first,
            ..Policy::ACTION
        })
    }

    /// One attempt; its failure is final.
    #[must_use]
    pub const fn never() -> Self {
        Self(Policy {
            inline: 0,
            attempts: Some(1),
            ..Policy::ACTION
        })
    }

    /// Longest pause.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.0.cap = cap;
        self
    }

    /// Shortest pause, whatever the jitter; at least 10 ms. Default 100 ms.
    #[must_use]
    pub const fn floor(mut self, floor: Duration) -> Self {
        self.0.floor = floor;
        self
    }

    /// Most attempts, the first one included; afterwards an action is compensated and a
    /// compensation terminates the transaction.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = Some(attempts);
        self
    }

    /// As many attempts as the transaction's lifetime allows.
    #[must_use]
    pub const fn until_the_lifetime_ends(mut self) -> Self {
        self.0.attempts = None;
        self
    }

    /// Retries of *transient* failures that are made within a moment, while the node keeps the
    /// transaction. The first waits 50 ms, then doubling.
    #[must_use]
    pub const fn inline(mut self, retries: u32) -> Self {
        self.0.inline = retries;
        self
    }
}

impl Default for Retry {
    /// [`Retry::exponential`] from one second.
    fn default() -> Self {
        Self(Policy::ACTION)
    }
}
