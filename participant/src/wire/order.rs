//! The request: which step, with what, and under which headers and paths.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Direction;

/// The header with the call's [`Key`](crate::Key).
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header with the attempt's number, from 1. For logs alone: an effect must not depend on it.
pub const ATTEMPT: &str = "ringsaga-attempt";

/// Marks the answer of a call that was answered before.
pub const REPLAYED: &str = "idempotent-replayed";

/// Largest payload and largest result, in bytes of JSON: what a saga's store keeps of one value.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// Largest body: two values of that size (payload and action's result) and their envelope.
pub const MAX_BODY_BYTES: usize = 2 * MAX_PAYLOAD_BYTES + 16 * 1024;

/// Asks a participant for a step. Field names are the contract's.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order<'a> {
    /// Which step.
    #[serde(rename = "StepName")]
    pub step: String,
    /// What it needs; JSON `null` when it is absent.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<&'a RawValue>,
    /// Of a compensation: what the action returned; absent when nobody knows.
    #[serde(
        borrow,
        rename = "ActionResult",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub action_result: Option<&'a RawValue>,
}

/// Where calls of a direction go, below the participant's base address.
#[must_use]
pub const fn path(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "local/execute",
        Direction::Compensating => "local/compensate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_written_with_the_contracts_names() {
        let payload = serde_json::value::to_raw_value(&7).unwrap();
        let mut order = Order {
            step: "charge".to_owned(),
            payload: Some(&payload),
            action_result: None,
        };
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(text, r#"{"StepName":"charge","payload":7}"#);
        order.action_result = Some(&payload);
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(
            text,
            r#"{"StepName":"charge","payload":7,"ActionResult":7}"#
        );
        let read: Order<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.action_result.map(RawValue::get), Some("7"));
    }
}
