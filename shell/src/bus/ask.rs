//! One request: exactly one answer follows, whatever happens.

use std::{sync::Arc, time::Duration};

use async_nats::{Client, Request, RequestErrorKind};
use bytes::Bytes;
use ring_core::{
    bus::{AskError, AskId, Told},
    wire::Answer,
};
use tokio::sync::Semaphore;

use super::{
    incoming::{Incoming, is_refusal},
    link::Link,
};
use crate::{
    clock,
    telemetry::{REQUEST_SECONDS, REQUESTS},
};

pub(super) struct Ask {
    pub(super) id: AskId,
    pub(super) subject: String,
    /// `None` when it could not be written.
    pub(super) question: Option<Bytes>,
    pub(super) within: Duration,
}

pub(super) async fn ask(
    ask: Ask,
    client: Client,
    link: Link,
    asks: Arc<Semaphore>,
    incoming: Incoming,
) {
    let started = clock::now().mono;
    let id = ask.id;
    let answer = tokio::time::timeout(ask.within, async {
        // Waiting for a slot and for a connection counts against the same limit.
        let _slot = asks.acquire().await;
        link.connected().await;
        tokio::select! {
            answer = request(ask, &client, &incoming) => answer,
            // An answer can't come any more: asking again beats waiting.
            () = link.lost() => Err(AskError::TimedOut),
        }
    })
    .await
    .unwrap_or(Err(AskError::TimedOut));
    incoming
        .meter
        .took(REQUEST_SECONDS, clock::now().mono.since(started));
    incoming.meter.count_as(REQUESTS, "result", result(&answer));
    incoming.tell(Told::Answered { ask: id, answer }).await;
}

async fn request(ask: Ask, client: &Client, incoming: &Incoming) -> Result<Answer, AskError> {
    let Some(question) = ask.question else {
        return Err(AskError::Garbled);
    };
    let request = Request::new().payload(question).timeout(Some(ask.within));
    match client.send_request(ask.subject, request).await {
        Ok(message) if is_refusal(&message) => Err(AskError::Garbled),
        Ok(message) => incoming.decode(&message).ok_or(AskError::Garbled),
        Err(error) => Err(match error.kind() {
            RequestErrorKind::NoResponders => AskError::NoResponders,
            RequestErrorKind::TimedOut | RequestErrorKind::Other => AskError::TimedOut,
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                AskError::Garbled
            }
        }),
    }
}

fn result(answer: &Result<Answer, AskError>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(AskError::NoResponders) => "no_responders",
        Err(AskError::TimedOut) => "timed_out",
        Err(AskError::Garbled) => "garbled",
    }
}
