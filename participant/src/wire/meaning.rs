//! What a reply means for the saga: one table.
//!
//! Errs on the side of *unknown*: a step in doubt is retried and, should it come to that,
//! compensated with the rest. "Not applied" is believed only of who says so.
//!
//! | # | seen | word |
//! |---|---|---|
//! | 1 | `outcome` (our own contract) | as it says; `done` needs a 2xx |
//! | 2 | 2xx, `success: true` or `code: 200` | done, with `result` or `data` |
//! | 3 | `success: true` or `code: 200` under another status | unknown: it contradicts itself |
//! | 4 | 2xx, `success: false`: an action | refused |
//! | 5 | 2xx, `success: false`: a compensation | unknown: it failed, and is tried again |
//! | 6 | 2xx, another `code` that is an HTTP status | as that status would mean with a contract |
//! | 7 | 2xx, any other `code` | unknown |
//! | 8 | 2xx without a contract, 204 | unknown |
//! | 9 | 429, 408, 425 | transient |
//! | 10 | 503 with a contract or with `Retry-After` | transient; proxies send bare ones for calls cut on the way: unknown |
//! | 11 | 401 | transient: a deploy mends it |
//! | 12 | 403, 404, 405 without a contract | transient: no worker has seen it |
//! | 13 | 409, 422 | refused |
//! | 14 | other 4xx | persistent |
//! | 15 | 3xx, 500, 502, 504, everything else | unknown |

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::text::excerpt;
use crate::Direction;

/// What became of a call, as our contract's `outcome` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Carried out, once.
    Done,
    /// Refused for a reason of the business; not applied.
    Refused,
    /// Refused for good; not applied.
    Persistent,
    /// Not applied; later perhaps.
    Transient,
    /// An action whose compensation was here before.
    Compensated,
    /// Another call of the same key is at it.
    InProgress,
    /// Nobody knows.
    Unknown,
}

/// A reply as it came in.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// The HTTP status; over NATS there is none, which reads like 200.
    pub status: u16,
    /// The pause of its `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The body, whole.
    pub body: &'a [u8],
}

/// What it means.
#[derive(Debug)]
pub struct Meaning {
    /// What became of the call.
    pub word: Word,
    /// The result, when it is done.
    pub result: Option<Box<RawValue>>,
    /// What to tell a person, when it is not.
    pub says: String,
    /// The pause that it asks for.
    pub retry_after: Option<Duration>,
}

/// Everything that the contracts know; unknown fields are none of our business.
#[derive(Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    outcome: Option<&'a RawValue>,
    #[serde(borrow, default)]
    success: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    msg: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    retry_after_ms: Option<&'a RawValue>,
}

/// What a body claims.
enum Claim {
    Outcome(Word),
    Success(bool),
    Code(u64),
}

/// Reads a reply.
#[must_use]
pub fn meaning(direction: Direction, reply: &Reply<'_>) -> Meaning {
    let body = read(reply.body);
    let claim = body.as_ref().and_then(Body::claim);
    let word = word(direction, reply, claim.as_ref());
    let body = body.unwrap_or_default();
    let result = match (word, &claim) {
        (Word::Done, Some(Claim::Code(_))) => body.data,
        (Word::Done, _) => body.result,
        _ => None,
    };
    let pause = body.retry_after_ms.and_then(|ms| ms.get().parse().ok());
    let pause = pause.map(Duration::from_millis);
    Meaning {
        word,
        result: (word == Word::Done).then(|| result.map_or_else(null, ToOwned::to_owned)),
        says: says(reply, &body, claim.as_ref()),
        retry_after: reply.retry_after.or(pause),
    }
}

/// The table above, in its order.
fn word(direction: Direction, reply: &Reply<'_>, claim: Option<&Claim>) -> Word {
    let ok = (200..300).contains(&reply.status);
    match claim {
        Some(Claim::Outcome(Word::Done)) if !ok => Word::Unknown,
        Some(Claim::Outcome(word)) => *word,
        Some(Claim::Success(true) | Claim::Code(200)) if ok => Word::Done,
        Some(Claim::Success(true) | Claim::Code(200)) => Word::Unknown,
        Some(Claim::Success(false)) if ok => match direction {
            Direction::Forward => Word::Refused,
            Direction::Compensating => Word::Unknown,
        },
        Some(Claim::Code(code)) if ok => match u16::try_from(*code) {
            Ok(status @ 400..600) => by_status(status, true, true),
            Ok(_) | Err(_) => Word::Unknown,
        },
        Some(Claim::Success(_) | Claim::Code(_)) => by_status(reply.status, true, true),
        None => by_status(reply.status, false, reply.retry_after.is_some()),
    }
}

/// `contract`: the participant itself speaks, not something on the way to it. `announced`: who
/// speaks knows what it does.
fn by_status(status: u16, contract: bool, announced: bool) -> Word {
    match status {
        401 | 408 | 425 | 429 => Word::Transient,
        503 if announced => Word::Transient,
        403..=405 if !contract => Word::Transient,
        409 | 422 => Word::Refused,
        400..500 => Word::Persistent,
        _ => Word::Unknown,
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// A JSON object; an array would do for serde, but is of no contract.
fn read(body: &[u8]) -> Option<Body<'_>> {
    let object = body.trim_ascii_start().first() == Some(&b'{');
    object.then(|| serde_json::from_slice(body).ok()).flatten()
}

impl Body<'_> {
    fn claim(&self) -> Option<Claim> {
        if let Some(outcome) = self.outcome {
            return serde_json::from_str(outcome.get()).ok().map(Claim::Outcome);
        }
        if let Some(success) = self.success {
            return serde_json::from_str(success.get()).ok().map(Claim::Success);
        }
        // Some write it as a text.
        let code = self.code?.get().trim_matches('"');
        code.parse().ok().map(Claim::Code)
    }

    /// What it says of the failure, whatever its author calls that.
    fn error(&self) -> Option<String> {
        let said = [self.error, self.message, self.msg];
        let said = said.into_iter().flatten().next()?;
        let text: Result<String, _> = serde_json::from_str(said.get());
        let text = text.unwrap_or_else(|_| said.get().to_owned());
        (!text.is_empty()).then(|| excerpt(text.as_bytes()))
    }
}

fn says(reply: &Reply<'_>, body: &Body<'_>, claim: Option<&Claim>) -> String {
    let status = reply.status;
    match claim {
        Some(claim) => {
            let said = body.error().unwrap_or_else(|| excerpt(reply.body));
            match claim {
                Claim::Code(code) => format!("status {status}, code {code}: {said}"),
                Claim::Outcome(_) | Claim::Success(_) => format!("status {status}: {said}"),
            }
        }
        None => format!("status {status}{}: {}", hint(status), excerpt(reply.body)),
    }
}

/// What a person should look at.
fn hint(status: u16) -> &'static str {
    match status {
        204 => ", a JSON answer was expected",
        200..300 => ", the answer is of no contract that is known here",
        300..=399 => ", redirects are not followed (correct the address)",
        401 => ", the service token was not accepted (compare keys, audience and clocks)",
        403..=405 => ", no worker answers at this address (correct it, or deploy the worker)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
