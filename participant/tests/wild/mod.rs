//! A participant that does as it likes, on a real socket, and calls of it.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::{future::Future, time::Duration};

use orchestrator_lib::{Class, StepError};
use ring_participant::{
    Direction,
    client::{Ask, Client, Fixed, Settings},
};
use serde_json::value::{RawValue, to_raw_value};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

pub(crate) type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub(crate) const KEY: &str = "0190b3a0-7c3e-7000-8000-000000000001/forward/charge";

/// Every test is over long before.
pub(crate) const LIMIT: Duration = Duration::from_millis(600);

pub(crate) fn settings() -> Settings {
    Settings {
        answer_bytes: 4 * 1024,
        ..Settings::default()
    }
}

/// A participant that reads a call and then does as it likes; its address.
pub(crate) async fn wild<F, Fut>(behave: F) -> Checked<String>
where
    F: Fn(TcpStream) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut call = Vec::new();
            // The body's last byte closes the JSON object.
            while !call.ends_with(b"}") {
                if stream.read_buf(&mut call).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            // An end that is cut is what some of these are about.
            drop(tokio::spawn(behave(stream)));
        }
    });
    Ok(base)
}

/// A participant that answers these bytes and closes.
pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Checked<String> {
    let bytes = bytes.into();
    wild(move |mut stream| {
        let bytes = bytes.clone();
        async move {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
    })
    .await
}

pub(crate) fn http(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

pub(crate) async fn call(
    base: &str,
    direction: Direction,
) -> Checked<Result<Box<RawValue>, StepError>> {
    let nodes = Fixed::new().service("payment", [base])?;
    ask(&Client::new(nodes, settings())?, direction).await
}

pub(crate) async fn ask(
    client: &Client,
    direction: Direction,
) -> Checked<Result<Box<RawValue>, StepError>> {
    let payload = to_raw_value(&serde_json::json!({ "cents": 7 }))?;
    let ask = Ask {
        direction,
        step: "charge",
        key: KEY,
        attempt: 1,
        payload: &payload,
        action_result: None,
        limit: LIMIT,
    };
    let target = client.target("payment");
    // The test's own limit: what hangs is the failure that is looked for.
    let answered = tokio::time::timeout(Duration::from_secs(10), target.ask(&ask)).await;
    answered.map_err(|_| "the call hangs".into())
}

/// An action's error is of this class and its text holds these words.
pub(crate) async fn fails(base: &str, class: Class, words: &[&str]) -> Checked<StepError> {
    let Err(error) = call(base, Direction::Forward).await? else {
        return Err("it was taken for done".into());
    };
    assert_eq!(error.class(), Some(class), "{error}");
    let says = error.to_string();
    for word in words.iter().chain(&["payment charge"]) {
        assert!(says.contains(word), "{word:?} is not in: {says}");
    }
    assert!(
        says.len() < 1_000 && !says.contains(['\n', '\0', '\u{1b}']),
        "{says}"
    );
    Ok(error)
}
