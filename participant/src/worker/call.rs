//! What a worker's function is told of the call that it carries out.

use uuid::Uuid;

use crate::{Direction, Key};

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    key: Key,
    attempt: u32,
}

impl Call {
    pub(crate) fn new(key: Key, attempt: u32) -> Self {
        Self { key, attempt }
    }

    /// The idempotency key: the same for every attempt.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Of a compensation: the key that its action had.
    #[must_use]
    pub fn action_key(&self) -> Key {
        Key {
            direction: Direction::Forward,
            ..self.key.clone()
        }
    }

    /// The caller's transaction.
    #[must_use]
    pub fn transaction(&self) -> Uuid {
        self.key.transaction
    }

    /// The step.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.key.step
    }

    /// Which attempt the caller says this is, from 1. For logs: nothing may depend on it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}
