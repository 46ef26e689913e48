//! The router over real HTTP and real Postgres: who is let in, what is done, and what is said when
//! it is not.
#![allow(
    clippy::unwrap_used,
    reason = "names and values that are right by sight"
)]

use std::time::Duration;

use orchestrator_lib::store::{Config, Operator, Process, Store, migrate};
use reqwest::{Client, StatusCode};
use ring_core::{
    id::{BootId, Cluster, NodeId, Nonce, Region, SagaName, Scope, Service, TransactionId},
    saga::{Ending, Payload, Text},
    store::{Capability, Start, Started, To, Write},
    token::Token,
};
use ring_local::{Set, Settings, TestDatabase};
use ring_operators::{BearerTokens, Role, router};
use serde_json::{Value, json};
use uuid::Uuid;

type Checked = Result<(), Box<dyn std::error::Error>>;

/// `printf %s look | sha256sum`, and of `act`.
const LOOK: &str = "3c01eba119e00d79c82b6f65d70bc5f1044d568618bf41377e6d1432023fc2b8";
const ACT: &str = "f83f07be16e270186d35b876916c461995ebc3af5b1798f898c33285a1847dbc";

struct Desk {
    _database: TestDatabase,
    _set: std::sync::Arc<Set>,
    store: Store,
    client: Client,
    base: String,
}

impl Desk {
    async fn new() -> Result<Self, Box<dyn std::error::Error>> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let prepare = |url: String| async move {
            migrate(&Config::new(url)).await?;
            Ok(())
        };
        let database = TestDatabase::from_template(set.addresses(), "store", prepare).await?;
        let config = Config::new(database.url());
        let scope = Scope {
            region: Region::new("eu")?,
            cluster: Cluster::new("main")?,
        };
        let tokens = BearerTokens::new().with("tom", Role::Viewer, LOOK)?.with(
            "eva",
            Role::Operator,
            ACT,
        )?;
        let app = router(Operator::new(&config, scope.clone())?, tokens);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, app).await });
        let store = Store::new(config, scope, Service::new("orders")?)?;
        Ok(Self {
            _database: database,
            _set: set,
            store,
            client: Client::builder().timeout(Duration::from_secs(20)).build()?,
            base,
        })
    }

    async fn terminated(&self, key: &str) -> Result<TransactionId, Box<dyn std::error::Error>> {
        let capability = Capability {
            saga: SagaName::new("buy")?,
            version: 1,
            digest: "d".to_owned(),
        };
        let process = Process {
            boot: BootId(Uuid::now_v7()),
            instance: NodeId::new("o-1")?,
            retry_node: true,
            capabilities: vec![capability.clone()],
        };
        let me = self.store.open(&process, Duration::from_secs(60)).await?;
        let start = Start {
            id: TransactionId(Uuid::now_v7()),
            token: Token(7),
            saga: capability.saga,
            version: 1,
            digest: capability.digest,
            key: key.to_owned(),
            input: Payload::new(r#"{"item":"book"}"#)?,
            lifetime: Duration::from_secs(60),
            claim: Some(Nonce(Uuid::now_v7())),
        };
        let started = self.store.start(Some(me), start.clone()).await?;
        let Started::New(Some(fence)) = started else {
            return Err(format!("{started:?}").into());
        };
        let write = Write {
            id: start.id,
            fence,
            number: 1,
            from: ring_core::saga::Position {
                direction: ring_core::saga::Direction::Forward,
                seq: 0,
            },
            wake_seq: 0,
            to: To::Settle {
                ending: Ending::Terminated,
                why: Some(Text::new("refund refused")),
            },
            entry: None,
        };
        self.store.write(write).await?;
        Ok(start.id)
    }

    async fn get(&self, token: &str, path: &str) -> (StatusCode, Value) {
        let url = format!("{}{path}", self.base);
        let answer = self
            .client
            .get(url)
            .bearer_auth(token)
            .send()
            .await
            .unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    async fn post(&self, token: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let url = format!("{}{path}", self.base);
        let sent = self
            .client
            .post(url)
            .bearer_auth(token)
            .body(body.to_string());
        let answer = sent.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }
}

#[tokio::test]
async fn nobody_is_let_in_without_a_token_and_a_viewer_orders_nothing() -> Checked {
    let desk = Desk::new().await?;
    let id = desk.terminated("k").await?;
    let bare = desk
        .client
        .get(format!("{}/unfortunate", desk.base))
        .send()
        .await?;
    assert_eq!(bare.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(bare.headers()["www-authenticate"], "Bearer");
    assert_eq!(
        desk.get("guess", "/unfortunate").await.0,
        StatusCode::UNAUTHORIZED
    );
    let (status, page) = desk.get("look", "/unfortunate").await;
    assert_eq!(
        (status, page["transactions"][0]["id"].as_str()),
        (StatusCode::OK, Some(id.to_string().as_str()))
    );
    assert_eq!(page["transactions"][0]["error"], "refund refused");
    let restore = json!({"reason": "fixed", "epoch": 1});
    let path = format!("/transactions/{id}/restore");
    let (status, said) = desk.post("look", &path, &restore).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
    assert_eq!(said["error"]["code"], "forbidden");
    Ok(())
}

#[tokio::test]
async fn a_restore_works_once_and_the_second_is_told_who_was_first() -> Checked {
    let desk = Desk::new().await?;
    let id = desk.terminated("k").await?;
    let (_, shown) = desk.get("look", &format!("/transactions/{id}")).await;
    assert_eq!(shown["input"]["item"], "book");
    let path = format!("/transactions/{id}/restore");
    let restore =
        json!({"reason": "bank fixed it", "epoch": shown["epoch"], "lifetime_ms": 7_200_000});
    let (status, done) = desk.post("act", &path, &restore).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    let (status, said) = desk.post("act", &path, &restore).await;
    assert_eq!(status, StatusCode::CONFLICT, "{said}");
    assert_eq!(
        (&said["error"]["code"], &said["by"]["actor"]),
        (&json!("already"), &json!("eva"))
    );
    let (_, why) = desk.get("look", &format!("/transactions/{id}/why")).await;
    assert_eq!(why["state"], "paused", "{why}");
    let (_, page) = desk.get("look", "/unfortunate").await;
    assert_eq!(page["transactions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn filters_pages_and_orders_about_many_go_over_http() -> Checked {
    let desk = Desk::new().await?;
    for key in ["a", "b", "c"] {
        desk.terminated(key).await?;
    }
    let (_, page) = desk
        .get(
            "look",
            "/transactions?state=terminated&error=REFUND&limit=2",
        )
        .await;
    assert_eq!(page["transactions"].as_array().map(Vec::len), Some(2));
    let next = page["next"].as_str().unwrap();
    let rest = format!("/transactions?state=terminated&limit=2&after={next}");
    let (_, page) = desk.get("look", &rest).await;
    assert_eq!(page["transactions"].as_array().map(Vec::len), Some(1));
    let (_, page) = desk
        .get("look", "/transactions?key=b&saga=buy&service=orders")
        .await;
    assert_eq!(page["transactions"].as_array().map(Vec::len), Some(1));
    let many = |dry_run| json!({"reason": "fixed", "dry_run": dry_run, "filter": {"saga": "buy"}, "rate": 1000, "with": {"lifetime_ms": 60_000}});
    let (_, shown) = desk.post("act", "/bulk/restore", &many(true)).await;
    assert_eq!(shown["count"], 3, "{shown}");
    let (_, done) = desk.post("act", "/bulk/restore", &many(false)).await;
    assert_eq!(
        (&done["done"], done["results"].as_array().map(Vec::len)),
        (&json!(3), Some(3))
    );
    let (_, again) = desk.post("act", "/bulk/restore", &many(false)).await;
    assert_eq!(again["done"], 0);
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_said_as_json_with_what_to_do() -> Checked {
    let desk = Desk::new().await?;
    let id = desk.terminated("k").await?;
    let restore = format!("/transactions/{id}/restore");
    let none = Uuid::nil();
    let cases = [
        (
            restore.clone(),
            json!({"reason": "x"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            restore.clone(),
            json!({"epoch": 1}),
            StatusCode::BAD_REQUEST,
        ),
        (
            restore.clone(),
            json!({"reason": "x", "epoch": 1, "tpyo": 1}),
            StatusCode::BAD_REQUEST,
        ),
        (
            restore,
            json!({"reason": "x".repeat(400_000), "epoch": 1}),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            format!("/transactions/{id}/burn"),
            json!({"reason": "x", "epoch": 1}),
            StatusCode::BAD_REQUEST,
        ),
        (
            format!("/transactions/{none}/retry"),
            json!({"reason": "x", "epoch": 1}),
            StatusCode::NOT_FOUND,
        ),
        (
            format!("/transactions/{id}/retry"),
            json!({"reason": "x", "epoch": 1}),
            StatusCode::CONFLICT,
        ),
        ("/nowhere".to_owned(), json!({}), StatusCode::NOT_FOUND),
    ];
    for (path, body, wanted) in cases {
        let (status, said) = desk.post("act", &path, &body).await;
        assert_eq!(status, wanted, "{path}: {said}");
        assert!(said["error"]["todo"].is_string(), "{said}");
    }
    let (status, _) = desk.get("look", "/transactions?state=lost").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    Ok(())
}
