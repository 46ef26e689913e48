//! What our worker answers: one contract, which readers of the older `{success, result, error}`
//! understand as well.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::meaning::Word;

/// An answer to an [`Order`](super::Order).
///
/// | answer | status | `outcome` | applied | the saga |
/// |---|---|---|---|---|
/// | [`Done`](Self::Done) | 200 | `done` | once | goes on |
/// | [`Refused`](Self::Refused) | 422 | `refused` | no | compensates |
/// | [`Persistent`](Self::Persistent) | 400 | `persistent` | no | compensates |
/// | [`Compensated`](Self::Compensated) | 409 | `compensated` | not any more | compensates |
/// | [`InProgress`](Self::InProgress) | 409 | `in_progress` | perhaps | asks again |
/// | [`Transient`](Self::Transient) | 503 | `transient` | no | asks again |
/// | [`Unauthorized`](Self::Unauthorized) | 401 | `transient` | no | asks again |
/// | [`Unknown`](Self::Unknown) | 500 | `unknown` | perhaps | asks again |
///
/// The body is `{"outcome": …, "success": …, "result": …}` or, instead of the result, `"error"` and
/// perhaps `"retry_after_ms"`.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Carried out, now or by an earlier call.
    Done {
        /// The step's result.
        result: Box<RawValue>,
        /// An earlier call did it; this is its answer.
        again: bool,
    },
    /// Refused for a reason of the business; nothing was applied.
    Refused(String),
    /// Refused for good: the request is wrong.
    Persistent(String),
    /// An action that was undone before it came, or came again after that. Never "done": its caller
    /// would take it for applied.
    Compensated,
    /// Another call of the same key is being carried out.
    InProgress(Duration),
    /// Not applied; later perhaps.
    Transient {
        /// Why.
        says: String,
        /// When it makes sense to ask again.
        retry_after: Option<Duration>,
    },
    /// The token is missing, wrong or expired. Nothing was applied, and a deploy mends it: a saga
    /// retries rather than undo what others did well.
    Unauthorized(String),
    /// It failed on the way; nobody knows whether it was applied.
    Unknown(String),
}

#[derive(Serialize)]
struct Body<'a> {
    outcome: Word,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Answer {
    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Done { .. } => 200,
            Self::Persistent(_) => 400,
            Self::Unauthorized(_) => 401,
            Self::Compensated | Self::InProgress(_) => 409,
            Self::Refused(_) => 422,
            Self::Unknown(_) => 500,
            Self::Transient { .. } => 503,
        }
    }

    /// The pause that it asks for, as in `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress(pause) => Some(*pause),
            Self::Transient { retry_after, .. } => *retry_after,
            Self::Done { .. }
            | Self::Refused(_)
            | Self::Persistent(_)
            | Self::Compensated
            | Self::Unauthorized(_)
            | Self::Unknown(_) => None,
        }
    }

    /// Whether an earlier call did it.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        matches!(self, Self::Done { again: true, .. })
    }

    /// The JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let (outcome, error) = self.words();
        let result = if let Self::Done { result, .. } = self {
            Some(&**result)
        } else {
            None
        };
        let pause = self.retry_after();
        let body = Body {
            outcome,
            success: result.is_some(),
            result,
            error,
            retry_after_ms: pause.map(|p| u64::try_from(p.as_millis()).unwrap_or(u64::MAX)),
        };
        // Texts, numbers and JSON that was checked: writing them can't fail.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn words(&self) -> (Word, Option<&str>) {
        match self {
            Self::Done { .. } => (Word::Done, None),
            Self::Refused(says) => (Word::Refused, Some(says)),
            Self::Persistent(says) => (Word::Persistent, Some(says)),
            Self::Compensated => (Word::Compensated, Some("it was compensated already")),
            Self::InProgress(_) => (Word::InProgress, Some("an earlier call is still at it")),
            Self::Transient { says, .. } | Self::Unauthorized(says) => {
                (Word::Transient, Some(says))
            }
            Self::Unknown(says) => (Word::Unknown, Some(says)),
        }
    }
}
