//! One call of a participant, whatever carries it.

use std::time::Duration;

use orchestrator_lib::StepError;
use serde_json::value::RawValue;

use crate::{
    Direction,
    wire::{Meaning, Order, Reply, Word, meaning},
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Which endpoint.
    pub direction: Direction,
    /// The step's name.
    pub step: &'a str,
    /// The idempotency key, see [`Key`](crate::Key).
    pub key: &'a str,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// What the step needs.
    pub payload: &'a RawValue,
    /// Of a compensation: what the action returned.
    pub action_result: Option<&'a RawValue>,
    /// How long all of it may take.
    pub limit: Duration,
}

impl Ask<'_> {
    /// The body.
    pub(super) fn body(&self) -> Result<Vec<u8>, StepError> {
        let order = Order {
            step: self.step.to_owned(),
            payload: Some(self.payload),
            action_result: self.action_result,
        };
        serde_json::to_vec(&order)
            .map_err(|e| StepError::persistent("the call can't be written").because(e))
    }

    /// What a reply means for the step.
    pub(super) fn read(&self, from: &str, reply: &Reply<'_>) -> Result<Box<RawValue>, StepError> {
        let Meaning {
            word,
            result,
            says,
            retry_after,
        } = meaning(self.direction, reply);
        let says = format!("{from}: {says}");
        let error = match word {
            Word::Done => return Ok(result.unwrap_or_else(|| RawValue::NULL.to_owned())),
            Word::Refused => StepError::business(says),
            Word::Persistent | Word::Compensated => StepError::persistent(says),
            Word::Transient => StepError::transient(says),
            Word::InProgress | Word::Unknown => StepError::unknown(says),
        };
        Err(match retry_after {
            Some(pause) => error.retry_after(pause.min(super::pause::LONGEST)),
            None => error,
        })
    }
}
