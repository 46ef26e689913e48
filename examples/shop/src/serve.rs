//! What the services have in common: a listener, and an end that lets answers get out.

use std::{future::Future, net::SocketAddr, time::Duration};

use anyhow::Context as _;
use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long open answers may take after everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Binds before any other work, so that a taken port is told at once.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("can't listen on {address}"))?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    Ok(listener)
}

/// Serves while `work` goes on, then lets open answers get out.
pub(crate) async fn during<T>(
    listener: TcpListener,
    pages: Router,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let server = axum::serve(listener, pages).with_graceful_shutdown(stopped);
    let mut server = tokio::spawn(server.into_future());
    let done = tokio::select! {
        done = work => done,
        ended = &mut server => {
            ended??;
            anyhow::bail!("the HTTP server ended");
        }
    };
    stop.cancel();
    if tokio::time::timeout(LAST_ANSWERS, server).await.is_err() {
        tracing::warn!("answers still open were cut off");
    }
    done
}
