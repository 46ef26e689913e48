//! Switches that make a participant fail on purpose: down, slow to answer, or one charge held back.
//!
//! Only for trying out what sagas do about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json,
    body::to_bytes,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use ring_participant::{
    Direction,
    wire::{MAX_BODY_BYTES, path},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::wire::About;

/// Seconds after which a caller may ask again while the service is down.
const RETRY_AFTER: &str = "1";

/// How the service behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Mode {
    /// As it should.
    #[default]
    Up,
    /// Every call is answered 503, nothing is applied.
    Down,
    /// Every call is carried out at once and answered late: who gives up does not know.
    Slow {
        /// How long, in milliseconds.
        ms: u64,
    },
}

/// Holds back the next charge of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Which order's.
    pub order_id: String,
    /// How long, in milliseconds.
    pub ms: u64,
}

/// The switches. They are not stored: a restarted service is up.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<Switches>,
}

#[derive(Debug, Default)]
struct Switches {
    mode: Mode,
    holds: BTreeMap<String, Duration>,
    /// Orders with a charge on its way: their next ones are declined.
    held: BTreeSet<String>,
}

/// What becomes of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Booked at once.
    Now,
    /// Accepted, and booked after this time, whether its caller still waits or not.
    Later(Duration),
    /// Declined: the order's first charge is on its way.
    Declined,
}

impl Faults {
    /// How it behaves now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.with(|state| state.mode)
    }

    /// Changes it.
    pub fn switch(&self, mode: Mode) {
        tracing::info!(?mode, "switched");
        self.with(|state| state.mode = mode);
    }

    /// Holds back the next charge of an order; until it is booked, others are declined.
    pub fn hold(&self, hold: Hold) {
        let time = Duration::from_millis(hold.ms);
        self.with(|state| state.holds.insert(hold.order_id, time));
    }

    fn fate(&self, order_id: &str) -> Fate {
        self.with(|state| {
            if let Some(time) = state.holds.remove(order_id) {
                state.held.insert(order_id.to_owned());
                Fate::Later(time)
            } else if state.held.contains(order_id) {
                Fate::Declined
            } else {
                Fate::Now
            }
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Switches) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes the order of a hold.
pub(super) async fn hold(State(faults): State<Arc<Faults>>, Json(hold): Json<Hold>) -> StatusCode {
    faults.hold(hold);
    StatusCode::NO_CONTENT
}

/// What of a call a hold looks at.
#[derive(Deserialize)]
struct Held {
    payload: About,
}

/// Stands before the barrier: a charge that is held back has taken no row yet.
pub(super) async fn held(
    State(faults): State<Arc<Faults>>,
    request: Request,
    next: Next,
) -> Response {
    if !request.uri().path().ends_with(path(Direction::Forward)) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let order = serde_json::from_slice(&body).map(|held: Held| held.payload.order_id);
    let request = Request::from_parts(parts, body.into());
    match order.map_or(Fate::Now, |order| faults.fate(&order)) {
        Fate::Now => next.run(request).await,
        Fate::Declined => {
            let says = json!({ "success": false, "error": "limit reached" });
            (StatusCode::UNPROCESSABLE_ENTITY, Json(says)).into_response()
        }
        Fate::Later(time) => {
            // In a task of its own: a caller that hangs up does not stop it.
            let late = tokio::spawn(async move {
                tokio::time::sleep(time).await;
                let answer = next.run(request).await;
                tracing::info!(status = %answer.status(), "a charge that was held back");
                answer
            });
            late.await
                .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
        }
    }
}

/// Stands before every call.
pub(super) async fn switched(
    State(faults): State<Arc<Faults>>,
    request: Request,
    next: Next,
) -> Response {
    match faults.mode() {
        Mode::Up => next.run(request).await,
        Mode::Down => {
            let soon = [(header::RETRY_AFTER, RETRY_AFTER)];
            (StatusCode::SERVICE_UNAVAILABLE, soon, "down\n").into_response()
        }
        Mode::Slow { ms } => {
            let answer = next.run(request).await;
            tokio::time::sleep(Duration::from_millis(ms)).await;
            answer
        }
    }
}
