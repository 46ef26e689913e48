//! The participants' promises on a real Postgres: one effect, whatever comes twice, late or first.

use std::{sync::Arc, time::Duration};

use reqwest::Client;
use ring_local::{Set, Settings, TestDatabase};
use ring_participant::worker::Worker;
use serde_json::{Value, json};
use shop::participant::{Database, Faults, Hold, inventory, payment, routes};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A participant with a database of the test's own; it goes with the test.
struct Own {
    database: Database,
    faults: Arc<Faults>,
    http: Client,
    base: String,
    _held: (Arc<Set>, TestDatabase),
}

impl Own {
    async fn payment() -> Checked<Self> {
        let worker = |database: &Database| payment::worker(database);
        Self::with(payment::SCHEMA, worker).await
    }

    async fn with<E: std::error::Error + 'static>(
        schema: &'static str,
        worker: impl FnOnce(&Database) -> Result<Worker, E>,
    ) -> Checked<Self> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let made = TestDatabase::create(set.addresses()).await?;
        let database = Database::new(&made.url().into(), schema)?;
        database.prepare().await?;
        let faults = Arc::new(Faults::default());
        let pages = routes(&worker(&database)?, Arc::clone(&faults));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, pages).await });
        Ok(Self {
            database,
            faults,
            http: Client::new(),
            base,
            _held: (set, made),
        })
    }

    async fn number(&self, sql: &str) -> Checked<i64> {
        let connection = self.database.pool().get().await?;
        Ok(connection.query_one(sql, &[]).await?.try_get(0)?)
    }

    async fn call(&self, endpoint: &str, step: &str, payload: Value) -> Checked<(u16, Value)> {
        called(&self.http, &self.base, endpoint, step, payload)
            .await
            .map_err(Into::into)
    }
}

async fn called(
    http: &Client,
    base: &str,
    endpoint: &str,
    step: &str,
    payload: Value,
) -> Result<(u16, Value), reqwest::Error> {
    let direction = match endpoint {
        "execute" => "forward",
        _ => "compensating",
    };
    let key = format!("0190b3a0-7c3e-7000-8000-000000000001/{direction}/{step}");
    let answer = http
        .post(format!("{base}/local/{endpoint}"))
        .header("idempotency-key", key)
        .json(&json!({ "StepName": step, "payload": payload }))
        .send()
        .await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}

fn charge() -> Value {
    json!({ "order_id": "A-1", "customer": "ann", "amount_cents": 700 })
}

fn reserve(quantity: u32) -> Value {
    json!({ "order_id": "A-1", "sku": "pen", "quantity": quantity })
}

const BALANCE: &str = "select coalesce(sum(amount_cents), 0)::bigint from entry";
const ENTRIES: &str = "select count(*) from entry";
const REPEATS: &str = "select sum(repeats)::bigint from barrier";

#[tokio::test]
async fn a_duplicate_gets_the_stored_answer_and_no_second_effect() -> Checked {
    let own = Own::payment().await?;
    let calls = (0..8).map(|_| {
        let (http, base) = (own.http.clone(), own.base.clone());
        tokio::spawn(async move { called(&http, &base, "execute", "charge", charge()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        let (status, answer) = call.await??;
        assert_eq!((status, &answer["result"]), (200, &json!({ "receipt": 1 })));
    }
    assert_eq!(own.number(BALANCE).await?, 700);
    assert_eq!(own.number(REPEATS).await?, 7);
    Ok(())
}

#[tokio::test]
async fn a_refund_of_an_unknown_charge_is_accepted_and_blocks_the_late_one() -> Checked {
    let own = Own::payment().await?;
    for _ in 0..2 {
        let (status, _) = own.call("compensate", "charge", charge()).await?;
        assert_eq!(status, 200);
    }
    let (status, answer) = own.call("execute", "charge", charge()).await?;
    assert_eq!((status, &answer["outcome"]), (409, &json!("compensated")));
    assert_eq!(own.number(ENTRIES).await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_action_that_comes_again_after_it_was_undone_is_not_answered_done() -> Checked {
    let own = Own::payment().await?;
    for (endpoint, status) in [
        ("execute", 200),
        ("compensate", 200),
        ("compensate", 200),
        ("execute", 409),
    ] {
        let (seen, answer) = own.call(endpoint, "charge", charge()).await?;
        assert_eq!(seen, status, "{answer}");
    }
    assert_eq!(
        (own.number(BALANCE).await?, own.number(ENTRIES).await?),
        (0, 2)
    );
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_not_stored_so_that_a_later_attempt_is_judged_anew() -> Checked {
    let worker = |database: &Database| inventory::worker(database, 3);
    let own = Own::with(inventory::SCHEMA, worker).await?;
    for (quantity, status) in [(4, 422), (3, 200)] {
        let (seen, answer) = own.call("execute", "reserve", reserve(quantity)).await?;
        assert_eq!(seen, status, "{answer}");
    }
    let stock = "select available from stock";
    assert_eq!(own.number(stock).await?, 0);
    let (status, _) = own.call("compensate", "reserve", reserve(3)).await?;
    assert_eq!((status, own.number(stock).await?), (200, 3));
    let about = json!({ "order_id": "A-1" });
    let (status, answer) = own.call("execute", "confirm", about).await?;
    assert_eq!(status, 422, "released: {answer}");
    Ok(())
}

#[tokio::test]
async fn a_charge_that_is_held_back_is_booked_although_its_caller_has_left() -> Checked {
    let own = Own::payment().await?;
    own.faults.hold(Hold {
        order_id: "A-1".to_owned(),
        ms: 2_000,
    });
    let begun = own.call("execute", "charge", charge());
    let impatient = tokio::time::timeout(Duration::from_secs(1), begun).await;
    assert!(impatient.is_err());
    let (status, answer) = own.call("execute", "charge", charge()).await?;
    assert_eq!((status, &answer["success"]), (422, &json!(false)));
    assert_eq!(own.number(ENTRIES).await?, 0);
    let booked = async {
        while own.number(ENTRIES).await? == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Checked::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(10), booked).await?
}
