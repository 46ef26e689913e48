//! A worker over HTTP: what it says to calls that make no sense, fail or hang.
#![cfg(all(feature = "http", feature = "barrier"))]

mod shared;

use std::{sync::Arc, time::Duration};

use reqwest::StatusCode;
use ring_participant::{
    token::{Key as Secret, Signer, Verifier},
    worker::{Call, Plain, Refusal, Worker},
};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::{
    Checked, TRANSACTION,
    served::{Served, ask},
};

#[derive(Deserialize)]
struct Charge {
    cents: i64,
}

fn quoting() -> Worker {
    async fn quote(_: Call, ask: Charge) -> Result<i64, Refusal> {
        match ask.cents {
            0 => panic!("a bug"),
            1 => std::future::pending().await,
            2 => Ok("x".parse::<i64>()?),
            3 => Err(Refusal::transient("later").retry_after(Duration::from_millis(1_200))),
            cents => Ok(cents * 2),
        }
    }
    let work = Plain::new(quote).time_limit(Duration::from_millis(100));
    Worker::builder().on("quote", work).build().expect("sound")
}

#[tokio::test]
async fn a_function_that_fails_hangs_or_panics_is_answered_in_json() -> Checked {
    let served = Served::new(&quoting()).await?;
    for (cents, status, outcome) in [
        (0, 500, "unknown"),
        (1, 500, "unknown"),
        (2, 500, "unknown"),
        (3, 503, "transient"),
        (21, 200, "done"),
    ] {
        let (seen, body) = served
            .call("execute", "quote", &ask("quote", cents))
            .await?;
        assert_eq!(
            (seen, &body["outcome"]),
            (status, &json!(outcome)),
            "{body}"
        );
        assert!(seen == 200 || body["error"].is_string(), "{body}");
    }
    Ok(())
}

#[tokio::test]
async fn a_pause_is_asked_for_in_whole_seconds_and_never_too_early() -> Checked {
    let served = Served::new(&quoting()).await?;
    let request = served
        .http
        .post(format!("{}/local/execute", served.base))
        .header("idempotency-key", format!("{TRANSACTION}/forward/quote"))
        .body(ask("quote", 3).to_string());
    let answer = request.send().await?;
    assert_eq!(answer.headers()["retry-after"], "2");
    let body: Value = answer.json().await?;
    assert_eq!(body["retry_after_ms"], 1_200);
    Ok(())
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_told_what_is_wrong() -> Checked {
    let served = Served::new(&quoting()).await?;
    let key = format!("{TRANSACTION}/forward/quote");
    let good = ask("quote", 4).to_string();
    let huge = format!(
        r#"{{"StepName":"quote","payload":"{}"}}"#,
        "x".repeat(600_000)
    );
    for (headers, body, status, says) in [
        (vec![], good.as_str(), 400, "idempotency-key"),
        (
            vec![("idempotency-key", "7")],
            &good,
            400,
            "transaction/direction/step",
        ),
        (vec![("idempotency-key", &*key)], "<xml/>", 400, "<xml/>"),
        (
            vec![("idempotency-key", &*key)],
            r#"{"payload":1}"#,
            400,
            "StepName",
        ),
        (
            vec![("idempotency-key", &*key)],
            r#"{"StepName":"other"}"#,
            400,
            "does not belong",
        ),
        (
            vec![("idempotency-key", &*key)],
            r#"{"StepName":"quote","payload":{}}"#,
            400,
            "cents",
        ),
        (vec![("idempotency-key", &*key)], &huge, 400, "bytes"),
    ] {
        let (seen, answer) = served.send("execute", &headers, body).await?;
        assert_eq!(seen, status, "{answer}");
        assert!(
            answer["error"].as_str().is_some_and(|e| e.contains(says)),
            "{answer}"
        );
    }
    // The wrong way round, and a step of a version that is not deployed here.
    let (seen, _) = served
        .send("compensate", &[("idempotency-key", &key)], &good)
        .await?;
    assert_eq!(seen, 400);
    let (seen, answer) = served.call("execute", "ship", &ask("ship", 1)).await?;
    assert_eq!((seen, &answer["outcome"]), (503, &json!("transient")));
    assert!(
        answer["error"]
            .as_str()
            .is_some_and(|e| e.contains("quote")),
        "{answer}"
    );
    let (seen, answer) = served.call("compensate", "quote", &ask("quote", 1)).await?;
    assert_eq!((seen, &answer["outcome"]), (503, &json!("transient")));
    Ok(())
}

#[tokio::test]
async fn another_method_gets_json_too() -> Checked {
    let served = Served::new(&quoting()).await?;
    let answer = served
        .http
        .get(format!("{}/local/execute", served.base))
        .send()
        .await?;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    let body: Value = answer.json().await?;
    assert_eq!(body["success"], false);
    Ok(())
}

#[tokio::test]
async fn a_full_worker_asks_to_come_again() -> Checked {
    let begun = Arc::new(tokio::sync::Notify::new());
    let at_it = Arc::clone(&begun);
    let work = Plain::new(move |_: Call, _: Charge| {
        at_it.notify_one();
        std::future::pending::<Result<(), Refusal>>()
    });
    let worker = Worker::builder().on("wait", work).calls(1).build()?;
    let served = Arc::new(Served::new(&worker).await?);
    let first = Arc::clone(&served);
    let first = tokio::spawn(async move {
        let answered = first.call("execute", "wait", &ask("wait", 1)).await;
        answered.map(drop).map_err(|e| e.to_string())
    });
    begun.notified().await;
    let (status, body) = served.call("execute", "wait", &ask("wait", 1)).await?;
    assert_eq!((status, &body["outcome"]), (503, &json!("transient")));
    assert!(
        body["error"].as_str().is_some_and(|e| e.contains("full")),
        "{body}"
    );
    first.abort();
    Ok(())
}

#[tokio::test]
async fn without_a_good_token_nothing_is_carried_out_and_the_saga_retries() -> Checked {
    async fn quote(_: Call, ask: Charge) -> Result<i64, Refusal> {
        Ok(ask.cents)
    }
    let secret = |text: &str| Secret::new("k1", text.repeat(32));
    let verifier = Verifier::new("payment").key(secret("a")?);
    let worker = Worker::builder()
        .on("quote", Plain::new(quote))
        .verify(verifier);
    let served = Served::new(&worker.build()?).await?;
    let now = ring_shell::clock::now().wall.0 / 1000;
    let bearer = |secret: Secret, at: i64| {
        let token = Signer::new("orders", secret).token("payment", at);
        format!("Bearer {token}")
    };
    let key = format!("{TRANSACTION}/forward/quote");
    let body = ask("quote", 4).to_string();
    for (header, status) in [
        (String::new(), 401),
        (bearer(secret("b")?, now), 401),
        (bearer(secret("a")?, now - 3 * 60 * 60), 401),
        (bearer(secret("a")?, now), 200),
    ] {
        let headers = [("idempotency-key", &*key), ("authorization", &*header)];
        let (seen, answer) = served.send("execute", &headers, &body).await?;
        assert_eq!(seen, status, "{answer}");
        assert!(seen == 200 || answer["outcome"] == "transient", "{answer}");
    }
    Ok(())
}

#[test]
fn a_workers_mistakes_are_told_at_once() {
    async fn quote(_: Call, _: Charge) -> Result<i64, Refusal> {
        Ok(1)
    }
    let built = Worker::builder()
        .on("", Plain::new(quote))
        .on("a", Plain::new(quote))
        .on("a", Plain::new(quote))
        .calls(0)
        .build();
    let says = built.unwrap_err().to_string();
    for part in ["1 to 128", "\"a\" is given twice", "calls"] {
        assert!(says.contains(part), "{says}");
    }
}

#[tokio::test]
async fn what_was_provided_is_found_and_what_was_not_is_named() -> Checked {
    async fn quote(call: Call, ask: Charge) -> Result<i64, Refusal> {
        let factor = match ask.cents {
            0 => i64::from(*call.shared::<u8>()?),
            _ => *call.shared::<i64>()?,
        };
        Ok(ask.cents * factor)
    }
    let worker = Worker::builder()
        .provide(3_i64)
        .on("quote", Plain::new(quote));
    let served = Served::new(&worker.build()?).await?;
    let (status, body) = served.call("execute", "quote", &ask("quote", 5)).await?;
    assert_eq!((status, &body["result"]), (200, &json!(15)));
    let (status, body) = served.call("execute", "quote", &ask("quote", 0)).await?;
    assert_eq!(status, 503);
    assert!(
        body["error"].as_str().is_some_and(|e| e.contains("u8")),
        "{body}"
    );
    Ok(())
}
