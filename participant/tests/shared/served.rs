//! A worker that listens on loopback, and a plain HTTP client.

#![allow(dead_code, reason = "each test binary uses its part")]

use reqwest::Client;
use ring_participant::worker::Worker;
use serde_json::{Value, json};

use super::{Checked, TRANSACTION};

/// A worker that listens, and who calls it.
pub(crate) struct Served {
    pub(crate) http: Client,
    pub(crate) base: String,
}

impl Served {
    pub(crate) async fn new(worker: &Worker) -> Checked<Self> {
        // The test's own client wants one; the library does not.
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        let router = worker.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self {
            http: Client::new(),
            base,
        })
    }

    /// Calls a step; its direction follows from the endpoint.
    pub(crate) async fn call(
        &self,
        endpoint: &str,
        step: &str,
        body: &Value,
    ) -> Checked<(u16, Value)> {
        let direction = if endpoint.starts_with("execute") {
            "forward"
        } else {
            "compensating"
        };
        let key = format!("{TRANSACTION}/{direction}/{step}");
        self.send(endpoint, &[("idempotency-key", &key)], &body.to_string())
            .await
    }

    pub(crate) async fn send(
        &self,
        endpoint: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Checked<(u16, Value)> {
        let mut request = self.http.post(format!("{}/local/{endpoint}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_owned()).send().await?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_slice(&answer.bytes().await?)?))
    }
}

pub(crate) fn ask(step: &str, cents: i64) -> Value {
    json!({ "StepName": step, "payload": { "cents": cents } })
}
