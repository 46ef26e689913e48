//! Health and numbers over HTTP: `/livez`, `/readyz`, `/metrics`, `/version`.
//!
//! Decides only the pages. Alive means that the process answers and depends on nothing else; ready
//! means work: whoever builds the router brings the reasons why not.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use serde::Serialize;
use tokio::net::TcpListener;

use crate::{tasks::Spawner, telemetry::Numbers};

/// Gives the reasons why no work is done, as sentences; none means ready.
pub type Ready = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// What the pages show.
#[derive(Clone)]
pub struct Pages {
    /// Why no work is done.
    pub ready: Ready,
    /// The process's numbers; without a recorder the page is empty.
    pub numbers: Option<Numbers>,
    /// The program's name: `ring-master`, a service's.
    pub name: &'static str,
    /// The program's version.
    pub version: &'static str,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct Version {
    name: &'static str,
    version: &'static str,
}

/// The four pages, to be served alone or merged into a service's own router.
pub fn router(pages: Pages) -> Router {
    Router::new()
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(numbers))
        .route("/version", get(version))
        .with_state(pages)
}

/// Binds the address and serves the pages as long as the role runs. Done before any other work, so
/// that a taken port is told at once. Returns the address with the port that was bound.
///
/// # Errors
/// When the address can't be bound.
pub async fn start(address: SocketAddr, pages: Pages, tasks: &Spawner) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tracing::info!(%address, name = pages.name, "serving /livez /readyz /metrics /version");
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router(pages)).await {
            tracing::error!(%error, "health and metrics are not served any more");
        }
    });
    Ok(address)
}

async fn ready(State(pages): State<Pages>) -> impl IntoResponse {
    let reasons = (pages.ready)();
    let ready = reasons.is_empty();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(Readiness { ready, reasons }))
}

async fn numbers(State(pages): State<Pages>) -> impl IntoResponse {
    let text = pages.numbers.map(|n| n.render()).unwrap_or_default();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text)
}

async fn version(State(pages): State<Pages>) -> impl IntoResponse {
    let Pages { name, version, .. } = pages;
    Json(Version { name, version })
}
