//! From a request's bytes to an answer: finds the function, checks the key, keeps the limits.
//!
//! A call runs in a task of its own: a caller that hangs up does not stop what is half done.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{Call, Work, Worker};
use crate::{
    Direction, Key,
    wire::{Answer, MAX_PAYLOAD_BYTES, Order, excerpt},
};

/// An answer to come.
pub(crate) type Carried = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A function with its types erased.
pub(crate) type Erased = Arc<dyn Fn(Call, Input) -> Carried + Send + Sync>;

/// What a call brings along, as JSON.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) payload: Box<RawValue>,
    /// Of a compensation, when the caller knows it.
    pub(crate) action_result: Option<Box<RawValue>>,
}

/// A request as a transport hands it in.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "http", feature = "nats")),
    expect(dead_code, reason = "without a transport nobody brings one")
)]
pub(crate) struct Asked<'a> {
    pub(crate) direction: Direction,
    pub(crate) key: Option<&'a str>,
    pub(crate) attempt: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// When a worker that is full may be asked again.
const BUSY: Duration = Duration::from_secs(1);

impl Worker {
    /// Carries out a call, or says why not.
    #[cfg_attr(
        not(any(feature = "http", feature = "nats")),
        expect(dead_code, reason = "without a transport nobody calls")
    )]
    pub(crate) async fn answer(&self, asked: Asked<'_>) -> Answer {
        if let Err(answer) = self.admits(asked.authorization) {
            return answer;
        }
        let (call, input, work) = match self.find(&asked) {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        let Ok(permit) = Arc::clone(&self.0.calls).try_acquire_owned() else {
            return Answer::Transient {
                says: "the worker is full: it carries out as many calls as it may".to_owned(),
                retry_after: Some(BUSY),
            };
        };
        let function = match asked.direction {
            Direction::Forward => work.action,
            Direction::Compensating => match work.compensation {
                Some(function) => function,
                None => {
                    return not_here(format!("step {:?} has no compensation here", call.step()));
                }
            },
        };
        let key = call.key().clone();
        let task = tokio::spawn(async move {
            let answer = tokio::time::timeout(work.limit, function(call, input)).await;
            drop(permit);
            let over = |_| Answer::Unknown(format!("not done within {:?}", work.limit));
            answer.unwrap_or_else(over)
        });
        let answer = task.await.unwrap_or_else(|error| {
            Answer::Unknown(format!("the step's function failed: {error}"))
        });
        if !matches!(answer, Answer::Done { .. }) {
            tracing::debug!(%key, ?answer, "a call was not carried out");
        }
        answer
    }

    fn find(&self, asked: &Asked<'_>) -> Result<(Call, Input, Work), Answer> {
        let wrong = |says: String| Answer::Persistent(says);
        let order: Order<'_> = serde_json::from_slice(asked.body).map_err(|error| {
            wrong(format!(
                "the body is no {{StepName, payload}}: {error}: {}",
                excerpt(asked.body)
            ))
        })?;
        let key = asked.key.ok_or_else(|| {
            wrong("the header idempotency-key is missing: transaction/direction/step".to_owned())
        })?;
        let key: Key = key
            .parse()
            .map_err(|e: crate::KeyError| wrong(e.to_string()))?;
        if (key.direction, &key.step) != (asked.direction, &order.step) {
            let direction = asked.direction;
            let step = excerpt(order.step.as_bytes());
            return Err(wrong(format!(
                "the key {key} does not belong to step {step:?} going {direction}"
            )));
        }
        let Some(work) = self.0.steps.get(&order.step) else {
            let known: Vec<&str> = self.steps().take(20).collect();
            return Err(not_here(format!(
                "no step {:?} in this worker; it has {}",
                key.step,
                known.join(", ")
            )));
        };
        let attempt = asked.attempt.and_then(|text| text.parse().ok());
        let input = Input {
            payload: order.payload.unwrap_or(RawValue::NULL).to_owned(),
            action_result: order.action_result.map(ToOwned::to_owned),
        };
        Ok((
            Call::new(key, attempt.unwrap_or(1), self.0.shared.clone()),
            input,
            work.clone(),
        ))
    }

    #[cfg(feature = "token")]
    fn admits(&self, authorization: Option<&str>) -> Result<(), Answer> {
        let Some(verifier) = &self.0.verifier else {
            return Ok(());
        };
        let refused = |error: crate::token::TokenError| Answer::Unauthorized(error.to_string());
        let now = crate::token::unix_now();
        verifier
            .verify_header(authorization, now)
            .map_err(refused)?;
        Ok(())
    }

    #[cfg(not(feature = "token"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as with tokens"
    )]
    fn admits(&self, _: Option<&str>) -> Result<(), Answer> {
        Ok(())
    }
}

/// A deploy is behind or ahead: the saga waits for it rather than undo everything.
fn not_here(says: String) -> Answer {
    Answer::Transient {
        says,
        retry_after: None,
    }
}

/// Reads what a step is given. Wrong for an action: it is refused. A compensation can't be refused
/// for that: another version of the worker reads it.
pub(crate) fn payload<P: DeserializeOwned>(call: &Call, input: &Input) -> Result<P, Answer> {
    serde_json::from_str(input.payload.get()).map_err(|error| {
        let says = format!(
            "the payload of step {:?} can't be read: {error}: {}",
            call.step(),
            excerpt(input.payload.get().as_bytes())
        );
        match call.key().direction {
            Direction::Forward => Answer::Persistent(says),
            Direction::Compensating => not_here(says),
        }
    })
}

/// Reads what the action returned: what the barrier stored, or else what the caller knows.
pub(crate) fn result<R: DeserializeOwned>(
    input: &Input,
    stored: Option<&str>,
) -> Result<Option<R>, Answer> {
    let given = input.action_result.as_deref().map(RawValue::get);
    let Some(text) = stored.or(given) else {
        return Ok(None);
    };
    serde_json::from_str(text).map(Some).map_err(|error| {
        not_here(format!(
            "the action's result can't be read: {error}: {}",
            excerpt(text.as_bytes())
        ))
    })
}

/// Writes a result.
pub(crate) fn json<R: Serialize>(result: &R) -> Result<Box<RawValue>, String> {
    let json = to_raw_value(result).map_err(|e| format!("the step's result is no JSON: {e}"))?;
    let bytes = json.get().len();
    if bytes > MAX_PAYLOAD_BYTES {
        return Err(format!(
            "the step's result has {bytes} bytes, at most {MAX_PAYLOAD_BYTES} are kept"
        ));
    }
    Ok(json)
}
