//! A worker as a NATS service, on a real server.
#![cfg(all(feature = "client", feature = "nats"))]

use std::time::Duration;

use async_nats::ConnectOptions;
use orchestrator_lib::{Class, StepError};
use ring_local::{Binaries, Process, Settings as Servers, Spec, free_ports};
use ring_participant::{
    Direction,
    client::{Ask, Client, Fixed, Settings},
    worker::{Call, Plain, Refusal, Worker},
};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A NATS server without users; it goes with the test.
struct Nats {
    url: String,
    process: Process,
}

impl Nats {
    async fn start() -> Checked<Self> {
        let binaries = Binaries::find(&Servers::from_env()).await?;
        let port = free_ports(1)?[0].to_string();
        let log = std::env::temp_dir().join(format!("participant-nats-{port}.log"));
        let spec = Spec::new("nats", binaries.nats, log).clean_env().args([
            "-a",
            "127.0.0.1",
            "-p",
            &port,
        ]);
        let process = Process::spawn(&spec).await?;
        let url = format!("nats://127.0.0.1:{port}");
        Ok(Self { url, process })
    }

    async fn client(&self) -> Checked<async_nats::Client> {
        for _ in 0..200 {
            if let Ok(client) = ConnectOptions::new().connect(&self.url).await {
                return Ok(client);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err("no NATS".into())
    }

    async fn stop(mut self) -> Checked {
        self.process.stop().await?;
        std::fs::remove_file(self.process.log())?;
        Ok(())
    }
}

async fn quote(call: Call, ask: Value) -> Result<Value, Refusal> {
    match ask["sku"].as_str() {
        Some("pen") => Ok(serde_json::json!({ "cents": 150, "attempt": call.attempt() })),
        Some("slow") => std::future::pending().await,
        Some("huge") => Ok(Value::String("x".repeat(200_000))),
        _ => Err(Refusal::business("not for sale")),
    }
}

async fn ask(client: &Client, sku: &str) -> Checked<Result<Box<RawValue>, StepError>> {
    let payload = to_raw_value(&serde_json::json!({ "sku": sku }))?;
    let ask = Ask {
        direction: Direction::Forward,
        step: "quote",
        key: "0190b3a0-7c3e-7000-8000-000000000001/forward/quote",
        attempt: 3,
        payload: &payload,
        action_result: None,
        limit: Duration::from_millis(700),
    };
    Ok(client.target("prices").ask(&ask).await)
}

async fn fails(client: &Client, sku: &str, class: Class, says: &str) -> Checked {
    let Err(error) = ask(client, sku).await? else {
        return Err("it was taken for done".into());
    };
    assert_eq!(error.class(), Some(class), "{error}");
    assert!(error.to_string().contains(says), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_worker_is_called_and_listed_over_nats() -> Checked {
    let nats = Nats::start().await?;
    let bus = nats.client().await?;
    let settings = Settings {
        answer_bytes: 64 * 1024,
        ..Settings::default()
    };
    let nodes = Fixed::new().service("prices", ["nats:eu.prices"])?;
    let client = Client::with_nats(nodes, nats.client().await?, settings)?;
    fails(&client, "pen", Class::Transient, "no worker listens").await?;

    let work = Plain::new(quote);
    let worker = Worker::builder().on("quote", work).build()?;
    let service = worker
        .serve_nats(&bus, "eu.prices", "prices", "1.0.0")
        .await?;
    // A round trip on the worker's connection: its subscriptions are known to the server.
    bus.flush().await?;
    let info = bus.request("$SRV.INFO.prices", "".into()).await?;
    let info: Value = serde_json::from_slice(&info.payload)?;
    let subjects: Vec<&str> = info["endpoints"]
        .as_array()
        .ok_or("no endpoints")?
        .iter()
        .filter_map(|endpoint| endpoint["subject"].as_str())
        .collect();
    assert!(subjects.contains(&"eu.prices.local.execute"), "{info}");
    assert!(subjects.contains(&"eu.prices.local.compensate"), "{info}");

    let price = ask(&client, "pen").await?.map_err(|e| e.to_string())?;
    assert_eq!(price.get(), r#"{"attempt":3,"cents":150}"#);
    fails(&client, "gold", Class::Business, "not for sale").await?;
    fails(&client, "slow", Class::Unknown, "no answer").await?;
    fails(&client, "huge", Class::Unknown, "more than 65536 bytes").await?;

    let wrong = worker.serve_nats(&bus, "a.*", "prices", "1.0.0").await;
    assert!(wrong.is_err_and(|error| error.to_string().contains("prefix")));
    // The hanging call ends with its time limit, not with the service.
    drop(tokio::time::timeout(Duration::from_secs(1), service.stop()).await);
    nats.stop().await
}
