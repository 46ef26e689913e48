//! Operators' questions and orders over HTTP: an axum router that a service mounts in its own app.
//!
//! ```no_run
//! use orchestrator_lib::store::{Config, Operator};
//! use ring_operators::{BearerTokens, Role, router};
//! # fn mount(scope: ring_core::id::Scope) -> Result<axum::Router, Box<dyn std::error::Error>> {
//! let operator = Operator::new(&Config::new("postgres://user@host/db"), scope)?;
//! // The SHA-256 of a token that nobody stores: `printf %s "$TOKEN" | sha256sum`.
//! let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
//! let tokens = BearerTokens::new().with("eva", Role::Operator, hash)?;
//! Ok(axum::Router::new().nest("/operators", router(operator, tokens)))
//! # }
//! ```
//!
//! | endpoint | what it does | role |
//! |---|---|---|
//! | `GET /unfortunate` | those that need a person: disabled and terminated ones, quarantined ones too | viewer |
//! | `POST /transactions/{id}/restore` | puts one back with a longer lifetime | operator |
//! | `GET /transactions` | a page of any, with every filter of the command line | viewer |
//! | `GET /transactions/{id}` | one in full | viewer |
//! | `GET /transactions/{id}/why` | why it is not continued right now | viewer |
//! | `GET /counts` | how many in each state | viewer |
//! | `POST /transactions/{id}/{verb}` | `retry`, `restore`, `retry-compensation`, `skip`, `policy`, `signal`, `cancel`, `close`, `rehome` | operator |
//! | `POST /bulk/{verb}` | the same for all that a filter finds; `dry_run` shows them first | operator |
//! | `POST /purge` | one batch of what ended well and is old | operator |
//!
//! Every order says why (`reason`) and the `epoch` that its giver saw; who gives it is the token's
//! name. An order that does not fit is `409` with how the transaction stands and who was first.
//! It decides nothing about transactions: [`orchestrator_lib::store::Operator`] does. It refuses
//! to know users, sessions and TLS: a proxy or the service in front does.

mod ask;
mod auth;
mod bulk;
mod json;
mod order;
mod said;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    middleware::from_fn_with_state,
    routing::{get, post},
};
use orchestrator_lib::store::Operator;

pub use auth::{BearerTokens, Role, TokenError};

/// Largest body: a result of 256 KiB and what stands around it.
const MAX_BODY_BYTES: usize = 320 * 1024;

/// The endpoints, for these tokens alone.
pub fn router(operator: Operator, tokens: BearerTokens) -> Router {
    Router::new()
        .route("/unfortunate", get(ask::unfortunate))
        .route("/transactions", get(ask::list))
        .route("/transactions/{id}", get(ask::show))
        .route("/transactions/{id}/why", get(ask::why))
        .route("/counts", get(ask::counts))
        .route("/transactions/{id}/{verb}", post(order::order))
        .route("/bulk/{verb}", post(bulk::bulk))
        .route("/purge", post(bulk::purge))
        .fallback(|| async { said::nowhere() })
        .method_not_allowed_fallback(|| async { said::wrong_method() })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(Extension(operator))
        .layer(from_fn_with_state(std::sync::Arc::new(tokens), auth::check))
}
