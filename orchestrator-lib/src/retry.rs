//! How often and how fast a step is tried again.
//!
//! Holds the numbers; when the next attempt is due is the transaction machine's decision.

use std::time::Duration;

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
pub struct Retry {
    pub(crate) first: Duration,
    pub(crate) cap: Duration,
    pub(crate) inline: u32,
    pub(crate) attempts: Option<u32>,
}

impl Retry {
    /// The first pause; each further one doubles up to the [cap](Self::cap) (default one minute).
    /// Up to [20 attempts](Self::attempts), the first [2 retries](Self::inline) without a pause
    /// in the database.
    #[must_use]
    pub const fn exponential(first: Duration) -> Self {
        Self {
            first,
            cap: Duration::from_secs(60),
            inline: 2,
            attempts: Some(20),
        }
    }

    /// One attempt; its failure is final.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            inline: 0,
            attempts: Some(1),
            ..Self::exponential(Duration::from_secs(1))
        }
    }

    /// Longest pause.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// Most attempts, the first one included; afterwards an action is compensated and a
    /// compensation terminates the transaction.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// As many attempts as the transaction's lifetime allows.
    #[must_use]
    pub const fn until_the_lifetime_ends(mut self) -> Self {
        self.attempts = None;
        self
    }

    /// Retries that are made at once, while the transaction stays where it is.
    #[must_use]
    pub const fn inline(mut self, retries: u32) -> Self {
        self.inline = retries;
        self
    }
}

impl Default for Retry {
    /// [`Retry::exponential`] from one second.
    fn default() -> Self {
        Self::exponential(Duration::from_secs(1))
    }
}
