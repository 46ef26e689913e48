//! The idempotency key of a call, built in this one place.
//!
//! It names the effect and nothing of who asks for it: an epoch or an attempt inside would double
//! the effect with every retry (`reliability.md` row 108).

use alloc::{format, sync::Arc};
use core::fmt;

use super::Direction;
use crate::id::{StepName, TransactionId};

/// `transaction/direction/step`: the same for every attempt, owner and epoch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The key of one action or compensation.
    #[must_use]
    pub fn new(id: TransactionId, direction: Direction, step: &StepName) -> Self {
        Self(format!("{id}/{}/{step}", direction.as_str()).into())
    }

    /// The text, at most 180 bytes: an id of 36, a direction, a step's name of 128.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
