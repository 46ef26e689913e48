//! `POST /orders`, `GET /orders/{transaction}`.
//!
//! An order is taken when its transaction is stored: from then on it comes to an end, whatever
//! dies. So the answer does not wait for the end.

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, State, rejection::JsonRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use orchestrator_lib::{Error, Node, Started, TransactionId};
use serde::Serialize;
use uuid::Uuid;

use super::Shop;
use crate::wire::Order;

/// An order has a few hundred bytes.
const LARGEST_BODY: usize = 16 * 1024;

pub(super) fn routes(shop: Shop) -> Router {
    Router::new()
        .route("/orders", post(place))
        .route("/orders/{transaction}", get(show))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(shop)
}

/// An order that was taken.
#[derive(Serialize)]
struct Taken {
    order_id: String,
    transaction: String,
    /// Whether this call placed it; else it was here before, with the same content.
    new: bool,
}

/// How an order stands.
#[derive(Serialize)]
struct Standing {
    transaction: String,
    order: serde_json::Value,
    /// `running`, `paused`, `completed`, `compensated` …
    state: String,
    /// What was said last, of a pause or an end that is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// 202 for a new order, 200 for one that is here already.
async fn place(
    State(shop): State<Shop>,
    body: Result<Json<Order>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(order) = body?;
    let mistakes = order.mistakes();
    if !mistakes.is_empty() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, mistakes.join("; ")));
    }
    let order_id = order.order_id.clone();
    let Started { id, is_new } = shop
        .node()?
        .start(&shop.saga, order_id.clone(), order)
        .await?;
    let status = if is_new {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    let place = [(header::LOCATION, format!("/orders/{id}"))];
    let taken = Taken {
        order_id,
        transaction: id.to_string(),
        new: is_new,
    };
    Ok((status, place, Json(taken)).into_response())
}

async fn show(State(shop): State<Shop>, Path(id): Path<Uuid>) -> Result<Json<Standing>, Problem> {
    let found = shop.node()?.operator().show(TransactionId(id)).await;
    let Some(shown) = found.map_err(Error::from)? else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            format!("there is no order {id}"),
        ));
    };
    let input = shown.input.as_deref().map(serde_json::from_str);
    Ok(Json(Standing {
        transaction: id.to_string(),
        order: input.and_then(Result::ok).unwrap_or_default(),
        state: format!("{:?}", shown.summary.state).to_lowercase(),
        error: shown.error,
    }))
}

impl Shop {
    fn node(&self) -> Result<&Node, Problem> {
        let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting".to_owned());
        self.node.get().ok_or_else(starting)
    }
}

/// Why an order was not taken.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    says: String,
}

impl Problem {
    fn new(status: StatusCode, says: String) -> Self {
        Self { status, says }
    }
}

impl From<Error> for Problem {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is no answer to the customer is ours to repair, new variants too"
    )]
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::KeyUsed { .. } => StatusCode::CONFLICT,
            Error::Key { .. } | Error::Invalid(_) | Error::Input(_) => StatusCode::BAD_REQUEST,
            Error::InputTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            // Nothing was started, or the same key finds it: ask again, here or elsewhere.
            Error::InProgress { .. }
            | Error::NotTaking(_)
            | Error::Store(_)
            | Error::Unanswered { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        // 415 and 413 stay what they are; the rest is a body that is no order.
        let status = match rejection.status() {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            status => status,
        };
        Self::new(status, rejection.body_text())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, says } = self;
        let mut answer = (status, Json(serde_json::json!({ "error": says }))).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            answer.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        answer
    }
}
