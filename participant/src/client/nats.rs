//! Calls over NATS request/reply.

use async_nats::{Client, HeaderMap, Request, RequestErrorKind, connection::State};
use orchestrator_lib::StepError;
use serde_json::value::RawValue;

use super::{Ask, http::Failed};
use crate::{
    wire::{ATTEMPT, IDEMPOTENCY_KEY, Reply, excerpt},
    worker::nats::{is_prefix, subject},
};

/// Calls a worker below a prefix. `most`: the longest answer that is read.
pub(super) async fn call(
    nats: &Client,
    prefix: &str,
    most: usize,
    from: &str,
    token: Option<String>,
    ask: &Ask<'_>,
) -> Result<Box<RawValue>, Failed> {
    if !is_prefix(prefix) {
        let says = format!("{from}: {prefix:?} is no prefix of subjects");
        return Err(Failed::Answered(StepError::transient(says)));
    }
    if nats.connection_state() != State::Connected {
        let says = format!("{from}: not connected to NATS");
        return Err(Failed::Unreached(StepError::transient(says)));
    }
    let body = ask.body().map_err(Failed::Answered)?;
    let carried = nats.server_info().max_payload;
    if body.len() > carried {
        let bytes = body.len();
        let says = format!("{from}: the call has {bytes} bytes, NATS carries at most {carried}");
        return Err(Failed::Answered(StepError::persistent(says)));
    }
    let mut headers = HeaderMap::new();
    headers.insert(IDEMPOTENCY_KEY, ask.key);
    headers.insert(ATTEMPT, ask.attempt.to_string());
    if let Some(token) = token {
        headers.insert("authorization", format!("Bearer {token}"));
    }
    let request = Request::new()
        .payload(body.into())
        .headers(headers)
        .timeout(Some(ask.limit));
    let sent = nats.send_request(subject(prefix, ask.direction), request);
    let message = sent.await.map_err(|error| unanswered(from, &error))?;
    if let Some(error) = service_error(message.headers.as_ref()) {
        // Of a worker with another SDK: it was there, and says no more than this.
        let says = format!("{from}: {error}");
        return Err(Failed::Answered(StepError::unknown(says)));
    }
    if message.payload.len() > most {
        let begin = excerpt(&message.payload);
        let says = format!("{from}: the answer has more than {most} bytes: {begin}");
        return Err(Failed::Answered(StepError::unknown(says)));
    }
    let reply = Reply {
        status: 200,
        retry_after: None,
        body: &message.payload,
    };
    ask.read(from, &reply).map_err(Failed::Answered)
}

fn unanswered(from: &str, error: &async_nats::RequestError) -> Failed {
    match error.kind() {
        RequestErrorKind::NoResponders => {
            let says = format!("{from}: no worker listens");
            Failed::Unreached(StepError::transient(says))
        }
        RequestErrorKind::TimedOut => {
            Failed::Answered(StepError::unknown(format!("{from}: no answer in time")))
        }
        RequestErrorKind::InvalidSubject
        | RequestErrorKind::MaxPayloadExceeded
        | RequestErrorKind::Other => Failed::Answered(StepError::unknown(format!(
            "{from}: the call broke ({error})"
        ))),
    }
}

fn service_error(headers: Option<&HeaderMap>) -> Option<String> {
    let says = headers?.get("Nats-Service-Error")?;
    Some(excerpt(says.as_str().as_bytes()))
}
