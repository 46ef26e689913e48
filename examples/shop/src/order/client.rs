//! Calls of participants over HTTP, and what each answer means for the saga.
//!
//! | seen | word | because |
//! |---|---|---|
//! | 200 with the result | done | |
//! | no connection, 429, 503 | transient | not applied; `retry-after` is honoured |
//! | 409, 422 | business | refused, not applied |
//! | other 4xx | persistent | the request is wrong, not applied |
//! | a time limit, a cut connection, other 5xx, a 200 that can't be read | unknown | may be applied |

use std::time::Duration;

use orchestrator_lib::{Context, StepError};
use reqwest::{Client, Response, StatusCode, Url, header::RETRY_AFTER};
use serde::{Serialize, de::DeserializeOwned};

use super::Config;
use crate::participant::KEY;

/// A host that does not answer at all is away; one that does, answers at once.
const CONNECT: Duration = Duration::from_secs(1);

/// Longest piece of an error page that goes into the log, in characters.
const LONGEST_TEXT: usize = 200;

/// The services that an order needs, given to the node with `provide`.
#[derive(Clone, Debug)]
pub struct Participants {
    /// Reserves goods.
    pub inventory: Participant,
    /// Charges customers.
    pub payment: Participant,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Participant {
    http: Client,
    /// Ends with a slash.
    base: Url,
}

impl Participants {
    /// Over one pool of connections.
    ///
    /// # Errors
    /// When the client can't be built.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let http = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(config.patience.time_limit)
            .build()?;
        let at = |base: &Url| Participant {
            http: http.clone(),
            base: base.clone(),
        };
        Ok(Self {
            inventory: at(&config.inventory),
            payment: at(&config.payment),
        })
    }
}

impl Participant {
    /// Calls it under the step's own key.
    ///
    /// # Errors
    /// What the answer means, see the table above.
    pub async fn call<T: DeserializeOwned>(
        &self,
        cx: &Context,
        path: &str,
        ask: &(impl Serialize + Sync),
    ) -> Result<T, StepError> {
        let wrong = |e| StepError::persistent(format_args!("{path} is no address")).because(e);
        let url = self.base.join(path).map_err(wrong)?;
        let sent = self
            .http
            .post(url)
            .header(KEY, cx.key())
            .json(ask)
            .send()
            .await;
        let answer = sent.map_err(|error| unanswered(path, error))?;
        match answer.status() {
            StatusCode::OK => answer.json().await.map_err(|error| {
                StepError::unknown(format_args!("{path} gave an answer that can't be read"))
                    .because(error)
            }),
            _ => Err(refused(path, answer).await),
        }
    }
}

fn unanswered(path: &str, error: reqwest::Error) -> StepError {
    if error.is_connect() {
        StepError::transient(format_args!("{path}: not reached")).because(error)
    } else if error.is_timeout() {
        StepError::unknown(format_args!("{path}: no answer in time")).because(error)
    } else {
        StepError::unknown(format_args!("{path}: the connection broke")).because(error)
    }
}

async fn refused(path: &str, answer: Response) -> StepError {
    let (status, pause) = (answer.status(), retry_after(&answer));
    let text = answer.text().await.unwrap_or_default();
    let text: String = text.chars().take(LONGEST_TEXT).collect();
    let error = meaning(status, &format!("{path}: {status}: {}", text.trim()));
    match pause {
        Some(pause) => error.retry_after(pause),
        None => error,
    }
}

fn meaning(status: StatusCode, says: &str) -> StepError {
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            StepError::transient(says)
        }
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => StepError::business(says),
        status if status.is_client_error() => StepError::persistent(says),
        _ => StepError::unknown(says),
    }
}

fn retry_after(answer: &Response) -> Option<Duration> {
    let text = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use orchestrator_lib::Class;

    use super::*;

    #[test]
    fn every_answer_has_one_meaning() {
        for (status, class) in [
            (503, Class::Transient),
            (429, Class::Transient),
            (409, Class::Business),
            (422, Class::Business),
            (400, Class::Persistent),
            (404, Class::Persistent),
            (500, Class::Unknown),
            (502, Class::Unknown),
            (302, Class::Unknown),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(meaning(status, "").class(), Some(class), "{status}");
        }
    }
}
