//! What a caller asks and tells, and what it is answered.

use core::time::Duration;

use crate::id::TargetName;

/// A call that wants to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Tells transactions apart: failures of one alone may be its own.
    pub caller: u64,
    /// Whether the transaction has called it for the same intent before.
    pub retry: bool,
}

/// The answer. A pass must be given back with [`Breaker::ended`](super::Breaker::ended).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call may be made.
    Go(Pass),
    /// Not now.
    Hold {
        /// When to ask again at the earliest; sooner is harmless.
        after: Duration,
        /// What is in the way.
        why: Why,
    },
}

/// What holds a call back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The target fails: worth no wait in memory.
    Down,
    /// The target works, or nobody knows yet: as much as may be is under way, or was begun in this
    /// moment.
    Busy,
    /// Retries are as large a part of the calls as they may be.
    Budget,
}

/// The right to make one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub(super) caller: u64,
    pub(super) probe: bool,
    /// Of the target's state: what a call says about an earlier state is not heard.
    pub(super) tenure: u64,
}

/// What a call says of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gave {
    /// It answered: done, or refused for a reason.
    Works,
    /// It did not, or asks for another try.
    Fails,
    /// The call was not made, or was dropped by its caller.
    Nothing,
}

/// A change, once each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It fails for every caller: its transactions wait for it.
    Down(TargetName),
    /// It works again.
    Up(TargetName),
}
