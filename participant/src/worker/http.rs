//! A worker as an axum router: two endpoints, a limit on the body, JSON whatever happens.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, post},
};

use super::{Worker, carry::Asked};
use crate::{
    Direction,
    wire::{ATTEMPT, Answer, IDEMPOTENCY_KEY, MAX_BODY_BYTES, REPLAYED, path},
};

/// Longest time in which a caller sends its body.
const BODY: Duration = Duration::from_secs(10);

impl Worker {
    /// Its endpoints, `/local/execute` and `/local/compensate`: merge or nest them into the
    /// service's own router.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for direction in [Direction::Forward, Direction::Compensating] {
            let serve = post(async move |State(worker): State<Self>, request| {
                respond(worker.serve(direction, request).await)
            });
            let serve = serve.merge(any(only_post));
            let at = format!("/{}", path(direction));
            // Some coordinators end their addresses with a slash.
            router = router
                .route(&format!("{at}/"), serve.clone())
                .route(&at, serve);
        }
        router.with_state(self.clone())
    }

    async fn serve(&self, direction: Direction, request: Request) -> Answer {
        let (parts, body) = request.into_parts();
        let body = match tokio::time::timeout(BODY, to_bytes(body, MAX_BODY_BYTES)).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => {
                let says =
                    format!("the body can't be taken, at most {MAX_BODY_BYTES} bytes: {error}");
                return Answer::Persistent(says);
            }
            Err(_) => {
                return Answer::Transient {
                    says: format!("the body did not come within {BODY:?}"),
                    retry_after: None,
                };
            }
        };
        let text = |name: &str| text(&parts.headers, name);
        self.answer(Asked {
            direction,
            key: text(IDEMPOTENCY_KEY),
            attempt: text(ATTEMPT),
            authorization: text(header::AUTHORIZATION.as_str()),
            body: &body,
        })
        .await
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn respond(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, json, Body::from(answer.to_json())).into_response();
    let headers = response.headers_mut();
    if let Some(pause) = answer.retry_after() {
        // Whole seconds, and never too early.
        let seconds = pause.as_millis().div_ceil(1000);
        if let Ok(seconds) = u64::try_from(seconds) {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
    }
    if answer.is_replay() {
        headers.insert(REPLAYED, header::HeaderValue::from_static("true"));
    }
    response
}

async fn only_post() -> Response {
    let says = "calls are sent by POST".to_owned();
    let mut response = respond(Answer::Persistent(says));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}
