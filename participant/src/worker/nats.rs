//! A worker as a NATS service: `{prefix}.local.execute` and `{prefix}.local.compensate`.
//!
//! Both are endpoints of the NATS service API, so that `nats service ls|info|stats` shows them, in
//! one queue group: each call goes to one worker. Answers are the same JSON as over HTTP.

use async_nats::{
    Client, HeaderMap,
    service::{self, ServiceExt as _, endpoint::Endpoint},
};
use futures_util::StreamExt as _;
use tokio::task::JoinSet;

use super::{Worker, carry::Asked};
use crate::{
    Direction,
    wire::{ATTEMPT, Answer, IDEMPOTENCY_KEY, path},
};

/// Longest prefix: subjects stay below 256 bytes.
const MAX_PREFIX_BYTES: usize = 200;

/// A worker that takes calls, until [`stop`](Self::stop).
#[derive(Debug)]
pub struct Service {
    service: service::Service,
    endpoints: JoinSet<()>,
}

/// Why a worker can't serve.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The prefix is no subject.
    #[error("{0:?} is no prefix of subjects: letters, digits, dashes and underscores between dots")]
    Prefix(String),
    /// NATS refuses; the name is letters, digits, dashes and underscores, the version `1.2.3`.
    #[error("can't serve over NATS")]
    Nats(#[source] async_nats::Error),
}

impl Worker {
    /// Serves below `prefix` as a NATS service of this name and version (`1.2.3`). Workers of one
    /// name share the calls.
    ///
    /// # Errors
    /// When the prefix, name or version is unfit, or NATS refuses.
    pub async fn serve_nats(
        &self,
        client: &Client,
        prefix: &str,
        name: &str,
        version: &str,
    ) -> Result<Service, ServiceError> {
        if !is_prefix(prefix) {
            return Err(ServiceError::Prefix(crate::wire::excerpt(
                prefix.as_bytes(),
            )));
        }
        let service = client
            .service_builder()
            .description("steps of sagas")
            .queue_group(name)
            .start(name, version)
            .await
            .map_err(ServiceError::Nats)?;
        let mut endpoints = JoinSet::new();
        for direction in [Direction::Forward, Direction::Compensating] {
            let subject = subject(prefix, direction);
            let endpoint = service.endpoint_builder().name(direction).add(subject);
            let endpoint = endpoint.await.map_err(ServiceError::Nats)?;
            endpoints.spawn(serve(self.clone(), client.clone(), direction, endpoint));
        }
        Ok(Service { service, endpoints })
    }
}

impl Service {
    /// Takes no further call and waits for those that are being carried out.
    ///
    /// # Errors
    /// When NATS refuses.
    pub async fn stop(mut self) -> Result<(), ServiceError> {
        self.service.stop().await.map_err(ServiceError::Nats)?;
        while self.endpoints.join_next().await.is_some() {}
        Ok(())
    }
}

/// Where calls of a direction go.
pub(crate) fn subject(prefix: &str, direction: Direction) -> String {
    format!("{prefix}.{}", path(direction).replace('/', "."))
}

pub(crate) fn is_prefix(prefix: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let token = |token: &str| !token.is_empty() && token.chars().all(plain);
    prefix.len() <= MAX_PREFIX_BYTES && prefix.split('.').all(token)
}

async fn serve(worker: Worker, client: Client, direction: Direction, mut endpoint: Endpoint) {
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            request = endpoint.next() => match request {
                Some(request) => {
                    calls.spawn(respond(worker.clone(), client.clone(), direction, request));
                }
                None => break,
            },
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
        }
    }
    while calls.join_next().await.is_some() {}
}

async fn respond(worker: Worker, client: Client, direction: Direction, request: service::Request) {
    let headers = request.message.headers.as_ref();
    let answer = worker
        .answer(Asked {
            direction,
            key: text(headers, IDEMPOTENCY_KEY),
            attempt: text(headers, ATTEMPT),
            authorization: text(headers, "authorization"),
            body: &request.message.payload,
        })
        .await;
    let mut json = answer.to_json();
    let most = client.server_info().max_payload;
    if json.len() > most {
        let says = format!(
            "the answer has {} bytes, NATS carries at most {most}",
            json.len()
        );
        json = Answer::Unknown(says).to_json();
    }
    // The caller's time limit speaks for an answer that can't be sent.
    if let Err(error) = request.respond(Ok(json.into())).await {
        tracing::debug!(%error, "an answer could not be sent");
    }
}

fn text<'a>(headers: Option<&'a HeaderMap>, name: &str) -> Option<&'a str> {
    headers?.get(name).map(async_nats::HeaderValue::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_subject_without_wildcards() {
        assert!(is_prefix("eu.orders-1.payment_2"));
        for wrong in ["", "a..b", "a.", "*", "a.>", "a b", &"x".repeat(201)] {
            assert!(!is_prefix(wrong), "{wrong}");
        }
        let subject = subject("eu.payment", Direction::Compensating);
        assert_eq!(subject, "eu.payment.local.compensate");
    }
}
