//! Calls over HTTP: one pool, limits on everything, and what each failure says about the effect.

use std::{error::Error as _, sync::Arc, time::Duration};

use orchestrator_lib::StepError;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE},
    redirect::Policy,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::value::RawValue;

use super::{Ask, ClientError, Settings, pause};
use crate::wire::{ATTEMPT, IDEMPOTENCY_KEY, Reply, excerpt, path};

/// How long an idle connection is kept: shorter than servers and proxies keep theirs, so that a
/// call seldom meets one that is just being closed.
const IDLE: Duration = Duration::from_secs(20);

/// A call over HTTP that came to nothing.
pub(super) enum Failed {
    /// No connection, so nothing was sent: another node may be tried.
    Unreached(StepError),
    /// An answer of any kind, or a doubt.
    Answered(StepError),
}

/// The pool. TLS is set up here with its provider, so that the process need not have one.
pub(super) fn pool(settings: &Settings) -> Result<Client, ClientError> {
    settings.check()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| ClientError::Http(e.to_string()))?
        .with_root_certificates(roots(settings)?)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(settings.connect_within)
        .timeout(settings.answer_within)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(settings.idle_connections)
        // A call goes where it is sent: followed, it would become another one.
        .redirect(Policy::none())
        .no_proxy()
        .build()
        .map_err(|e| ClientError::Http(chain(&e)))
}

fn roots(settings: &Settings) -> Result<rustls::RootCertStore, ClientError> {
    let mut roots = rustls::RootCertStore::empty();
    // A root that can't be read does not stop calls that need another one or none.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(path) = &settings.ca else {
        return Ok(roots);
    };
    let wrong = |says: String| ClientError::Ca {
        path: path.clone(),
        says,
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| wrong(e.to_string()))?;
    let mut count = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
        roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
        count += 1;
    }
    match count {
        0 => Err(wrong("it holds no certificate in PEM".to_owned())),
        _ => Ok(roots),
    }
}

/// Calls a node.
pub(super) async fn call(
    http: &Client,
    settings: &Settings,
    base: &Url,
    from: &str,
    token: Option<String>,
    ask: &Ask<'_>,
) -> Result<Box<RawValue>, Failed> {
    let answered = Failed::Answered;
    let url = base.join(path(ask.direction)).map_err(|e| {
        answered(StepError::transient(format_args!("{from}: no address")).because(e))
    })?;
    let mut request: RequestBuilder = http
        .post(url)
        .timeout(ask.limit)
        .header(CONTENT_TYPE, "application/json")
        .header(IDEMPOTENCY_KEY, ask.key)
        .header(ATTEMPT, ask.attempt)
        .body(ask.body().map_err(answered)?);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let mut response = request.send().await.map_err(|e| unanswered(from, &e))?;
    let retry_after = pause::retry_after(response.headers(), crate::token::unix_now());
    let status = response.status().as_u16();
    let body = body(&mut response, settings.answer_bytes).await;
    let body = body.map_err(|(begin, says)| {
        let begin = excerpt(&begin);
        answered(StepError::unknown(format!(
            "{from}: status {status}: {says}: {begin}"
        )))
    })?;
    let reply = Reply {
        status,
        retry_after,
        body: &body,
    };
    ask.read(from, &reply).map_err(answered)
}

/// Reads a body up to the limit; otherwise what came until then, and what was wrong.
async fn body(response: &mut Response, most: usize) -> Result<Vec<u8>, (Vec<u8>, String)> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() > most - body.len() => {
                body.extend_from_slice(&chunk[..chunk.len().min(1024)]);
                return Err((body, format!("the answer has more than {most} bytes")));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) if error.is_timeout() => {
                return Err((body, "the answer did not end in time".to_owned()));
            }
            Err(error) => {
                return Err((body, format!("the answer was cut off ({})", chain(&error))));
            }
        }
    }
}

fn unanswered(from: &str, error: &reqwest::Error) -> Failed {
    let why = chain(error);
    if error.is_connect() {
        let says = format!("{from}: not reached ({why})");
        Failed::Unreached(StepError::transient(says))
    } else if error.is_timeout() {
        Failed::Answered(StepError::unknown(format!("{from}: no answer in time")))
    } else if error.is_builder() {
        // Nothing was sent: a header or an address that can't be.
        Failed::Answered(StepError::persistent(format!("{from}: {why}")))
    } else {
        Failed::Answered(StepError::unknown(format!(
            "{from}: the connection broke ({why})"
        )))
    }
}

/// The causes of an error; its own text repeats the address, with whatever is secret in it.
fn chain(error: &reqwest::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        next = cause.source();
    }
    if causes.is_empty() {
        causes.push("no cause is known".to_owned());
    }
    causes.join(": ")
}
