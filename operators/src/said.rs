//! Answers that are not what was asked for: a status, and JSON that says what to do.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use orchestrator_lib::store::{Error, Refusal};
use ring_core::id::TransactionId;
use serde_json::{Value, json};

/// What went wrong.
#[derive(Debug)]
pub(crate) struct Said {
    status: StatusCode,
    body: Value,
}

impl Said {
    fn new(status: StatusCode, code: &str, message: &str, todo: &str) -> Self {
        let error = json!({"code": code, "message": message, "todo": todo});
        Self {
            status,
            body: json!({"error": error}),
        }
    }

    pub(crate) fn unauthorized() -> Self {
        let (message, todo) = (
            "a known bearer token is needed",
            "send `Authorization: Bearer …`; whoever runs the service adds tokens",
        );
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message, todo)
    }

    pub(crate) fn forbidden(name: &str) -> Self {
        let message = format!("{name} may look and not order");
        let todo = "use a token with the role operator";
        Self::new(StatusCode::FORBIDDEN, "forbidden", &message, todo)
    }

    pub(crate) fn wrong(message: &str) -> Self {
        let todo = "see the crate's table of endpoints and orders";
        Self::new(StatusCode::BAD_REQUEST, "wrong-request", message, todo)
    }

    pub(crate) fn body(status: StatusCode, message: &str) -> Self {
        let todo = "send JSON of at most 320 KiB";
        Self::new(status, "wrong-body", message, todo)
    }

    pub(crate) fn missing(id: TransactionId) -> Self {
        let message = format!("no transaction {id} in this region and cluster");
        let todo = "look for it by its idempotency key, or in the region of its code";
        Self::new(StatusCode::NOT_FOUND, "missing", &message, todo)
    }

    /// An order that did not fit.
    pub(crate) fn refused(id: TransactionId, refusal: &Refusal) -> Self {
        let (code, state, epoch, by) = match refusal {
            Refusal::Missing => return Self::missing(id),
            Refusal::Already { state, epoch, by } => {
                ("already", Some(state), Some(*epoch), Some(by))
            }
            Refusal::Changed { state, epoch } => ("changed", Some(state), Some(*epoch), None),
            Refusal::State { state, last, .. } => ("state", Some(state), None, last.as_ref()),
            Refusal::KeyTaken => ("key-taken", None, None, None),
        };
        let todo = "look at the transaction again (…/why says what fits)";
        let mut said = Self::new(StatusCode::CONFLICT, code, &refusal.to_string(), todo);
        let by = by.map(|by| json!({"action": by.action, "actor": by.actor, "reason": by.reason, "at": by.at.rfc3339()}));
        said.body["state"] = json!(state.map(|s| s.as_str()));
        said.body["epoch"] = json!(epoch);
        said.body["by"] = json!(by);
        said
    }
}

impl From<Error> for Said {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "an operator's request failed");
        let (status, code, todo) = if error.is_unreachable() {
            let todo = "ask again; what was ordered may have been done: its audit log says so";
            (StatusCode::SERVICE_UNAVAILABLE, "unreachable", todo)
        } else if error.is_conflict() {
            let todo = "ask again in a moment";
            (StatusCode::SERVICE_UNAVAILABLE, "busy", todo)
        } else {
            let todo = "see the service's log; is the store migrated?";
            (StatusCode::INTERNAL_SERVER_ERROR, "failed", todo)
        };
        Self::new(status, code, &error.to_string(), todo)
    }
}

impl IntoResponse for Said {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// No endpoint.
pub(crate) fn nowhere() -> Said {
    let todo = "see the crate's table of endpoints";
    Said::new(
        StatusCode::NOT_FOUND,
        "no-endpoint",
        "there is nothing here",
        todo,
    )
}

/// An endpoint of another method.
pub(crate) fn wrong_method() -> Said {
    let (message, todo) = (
        "wrong method",
        "GET asks, POST orders: see the table of endpoints",
    );
    Said::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong-method",
        message,
        todo,
    )
}
