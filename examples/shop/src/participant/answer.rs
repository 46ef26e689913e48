//! Answers of a participant as HTTP, so that a caller can tell what was applied.
//!
//! | status | means | applied |
//! |---|---|---|
//! | 200 | done, or done before (`idempotent-replayed`) | once |
//! | 400 | the request makes no sense | no |
//! | 409 | undone before it came | no |
//! | 422 | refused for a reason of the business | no |
//! | 500 | the database failed | nobody knows |
//! | 503 | not at the moment, `retry-after` says when | no |

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{Barrier, Direction, Entered, Key};

/// The header that holds a call's key.
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Marks the answer of a call that came again.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What a call gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done now; the answer as JSON.
    Done(String),
    /// Done by an earlier call; its answer as JSON.
    Again(String),
    /// Refused: it was undone before it came.
    Compensated,
    /// Refused for a reason of the business.
    Refused(String),
    /// The request makes no sense.
    Malformed(String),
    /// The database failed.
    Broken(String),
}

impl Answer {
    /// The right to the effect, or the answer when there is none to bring about.
    pub(super) fn or_first(entered: Entered<'_>) -> Result<Barrier<'_>, Self> {
        Err(match entered {
            Entered::First(barrier) => return Ok(barrier),
            Entered::Again(answer) => Self::Again(answer),
            Entered::Nothing => Self::Done("null".to_owned()),
            Entered::Compensated => Self::Compensated,
        })
    }

    /// A call that goes the wrong way for its address.
    pub(super) fn expects(direction: Direction, key: &Key) -> Result<(), Self> {
        if key.direction == direction {
            return Ok(());
        }
        let says = format!("the key {key} does not go {}", direction.as_str());
        Err(Self::Malformed(says))
    }
}

#[derive(Serialize)]
struct Problem<'a> {
    error: &'a str,
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let json = [(header::CONTENT_TYPE, "application/json")];
        let (status, says) = match self {
            Self::Done(answer) => return (json, answer).into_response(),
            Self::Again(answer) => return (json, [(REPLAYED, "true")], answer).into_response(),
            Self::Compensated => (
                StatusCode::CONFLICT,
                "compensated before it came".to_owned(),
            ),
            Self::Refused(why) => (StatusCode::UNPROCESSABLE_ENTITY, why),
            Self::Malformed(why) => (StatusCode::BAD_REQUEST, why),
            Self::Broken(why) => {
                tracing::warn!(why, "a call failed");
                (StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        };
        (status, axum::Json(Problem { error: &says })).into_response()
    }
}

impl From<tokio_postgres::Error> for Answer {
    fn from(error: tokio_postgres::Error) -> Self {
        let said = error.as_db_error().map(ToString::to_string);
        Self::Broken(said.unwrap_or_else(|| error.to_string()))
    }
}

impl From<deadpool_postgres::PoolError> for Answer {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl<S: Sync> FromRequestParts<S> for Key {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Answer> {
        let text = parts
            .headers
            .get(&KEY)
            .and_then(|value| value.to_str().ok());
        let text = text.ok_or_else(|| Answer::Malformed(format!("the header {KEY} is missing")))?;
        text.parse().map_err(Answer::Malformed)
    }
}
