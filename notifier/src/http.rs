//! One call of a hook: what is sent, how long it may take, what is read of the answer.
//!
//! An address may hold a key, so no error here repeats it.

use std::{error::Error as _, sync::Arc, time::Duration};

use chrono::DateTime;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER},
    redirect::Policy,
};
use ring_core::time::Wall;
use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    Error,
    answer::{Answer, Refused, judge},
    generic,
    hook::{Hook, Target},
    message::Message,
    wecom,
};

/// For a whole call: less than its lease, so that nobody else tries meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What is read of an answer.
const MAX_ANSWER: usize = 16 * 1024;

/// Longest pause that is believed.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The client for all hooks. TLS is set up with its provider, so that the process need not have
/// one; a redirect would carry the message to somebody else.
pub(crate) fn client() -> Result<Client, Error> {
    let mut roots = rustls::RootCertStore::empty();
    // A root that can't be read does not stop hooks that need another one or none.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Http(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_WITHIN)
        .timeout(ANSWER_WITHIN)
        .redirect(Policy::none())
        .no_proxy()
        .build()
        .map_err(|e| Error::Http(chain(&e)))
}

/// Whether an address can be called at all.
pub(crate) fn is_address(url: &SecretString) -> bool {
    Url::parse(url.expose_secret())
        .is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
}

/// Sends messages in one call: several only to a target that takes several.
pub(crate) async fn send(
    client: &Client,
    hook: &Hook,
    messages: &[Message],
    now: Wall,
) -> Result<(), Refused> {
    let request = request(client, &hook.target, messages, now)?;
    let mut response = request.send().await.map_err(|e| broken(&e))?;
    let mut body = Vec::new();
    while body.len() < MAX_ANSWER {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Err(broken(&error)),
        }
    }
    judge(&hook.target, &answer(&response, body, now))
}

fn request(
    client: &Client,
    target: &Target,
    messages: &[Message],
    now: Wall,
) -> Result<RequestBuilder, Refused> {
    let unwritable = |e: serde_json::Error| refused(format!("the message can't be written: {e}"));
    let request = client
        .post(target.url().expose_secret())
        .header(CONTENT_TYPE, "application/json");
    match (target, messages) {
        (Target::Generic { secret, .. }, [message]) => {
            let body = serde_json::to_vec(message).map_err(unwritable)?;
            let timestamp = now.0.div_euclid(1000).to_string();
            let signature = generic::signature(secret, &timestamp, &body);
            Ok(request
                .header(generic::SIGNATURE, format!("sha256={signature}"))
                .header(generic::TIMESTAMP, timestamp)
                .body(body))
        }
        (Target::Generic { .. }, _) => Err(refused("it takes one alert at a time".to_owned())),
        (Target::WeCom { .. }, messages) => {
            Ok(request.body(wecom::body(messages).map_err(unwritable)?))
        }
    }
}

fn answer(response: &Response, body: Vec<u8>, now: Wall) -> Answer {
    Answer {
        status: response.status(),
        retry_after: retry_after(response.headers(), now),
        body,
    }
}

/// The pause that an answer asks for, in seconds or as a date; a date is compared with the
/// answer's own, so that the two clocks need not agree.
fn retry_after(headers: &HeaderMap, now: Wall) -> Option<Duration> {
    let unix = |date: &str| Some(DateTime::parse_from_rfc2822(date).ok()?.timestamp());
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let sent = headers.get(DATE).and_then(|date| date.to_str().ok());
            let sent = sent
                .and_then(unix)
                .unwrap_or_else(|| now.0.div_euclid(1000));
            u64::try_from(unix(text)?.saturating_sub(sent)).unwrap_or(0)
        }
    };
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

fn broken(error: &reqwest::Error) -> Refused {
    refused(if error.is_timeout() {
        "no answer in time".to_owned()
    } else if error.is_builder() {
        "the address can't be called".to_owned()
    } else {
        chain(error)
    })
}

fn refused(says: String) -> Refused {
    Refused { says, hold: None }
}

/// The causes of an error; its own text repeats the address.
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
        causes.push("the connection broke".to_owned());
    }
    causes.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(retry_after_text: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after_text.parse().unwrap());
        // Wed, 21 Oct 2026 07:28:00 GMT
        retry_after(&headers, Wall(1_792_567_680_000)).map(|pause| pause.as_secs())
    }

    #[test]
    fn a_pause_is_read_as_seconds_or_as_a_date() {
        assert_eq!(pause("120"), Some(120));
        assert_eq!(pause("999999999999"), Some(3600));
        assert_eq!(pause("Wed, 21 Oct 2026 07:28:30 GMT"), Some(30));
        assert_eq!(pause("Wed, 21 Oct 2026 07:27:00 GMT"), Some(0));
        assert_eq!(pause("soon"), None);
    }

    #[test]
    fn addresses_are_of_the_web() {
        for good in ["http://127.0.0.1:1/x", "https://example.org/send?key=1"] {
            assert!(is_address(&good.into()), "{good}");
        }
        for bad in ["", "example.org/x", "file:///etc/passwd", "ftp://x/"] {
            assert!(!is_address(&bad.into()), "{bad}");
        }
    }
}
