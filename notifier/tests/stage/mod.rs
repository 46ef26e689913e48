//! A receiver of webhooks that answers as a test wants and remembers every request, and a database
//! with alerts.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses its part"
)]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use orchestrator_lib::store::{self, Alerts, migrate};
use ring_core::id::Scope;
use ring_local::{Set, Settings, TestDatabase};
use ring_notifier::{Hook, run};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;
use tokio_util::sync::CancellationToken;

pub type Checked = Result<(), Box<dyn std::error::Error>>;

/// Nothing in these tests takes longer on a slow machine.
pub const LONG: Duration = Duration::from_secs(60);

/// What the receiver does with the next request.
#[derive(Clone, Debug)]
pub enum Reply {
    Status(u16),
    Body(&'static str),
    RetryAfter(&'static str),
    /// Never answers.
    Silence,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Clone, Debug, Default)]
pub struct Receiver(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    address: String,
    requests: Vec<Request>,
    replies: VecDeque<Reply>,
    usual: &'static str,
}

impl Receiver {
    /// A receiver that says 200 with this body unless told otherwise.
    pub async fn start(usual: &'static str) -> Result<Self, Box<dyn std::error::Error>> {
        let receiver = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}/hook?key=693a91f6", listener.local_addr()?);
        *receiver.book() = Book {
            address,
            usual,
            ..Book::default()
        };
        let app = Router::new()
            .route("/hook", post(receive))
            .with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(receiver)
    }

    pub fn address(&self) -> String {
        self.book().address.clone()
    }

    pub fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.book().replies.extend(replies);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.book().requests.clone()
    }

    /// Waits until this many requests have come.
    pub async fn wait_for(&self, count: usize) -> Vec<Request> {
        eventually("requests", async || self.book().requests.len() >= count).await;
        self.requests()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    let (reply, usual) = {
        let mut book = receiver.book();
        book.requests.push(Request { headers, body });
        (book.replies.pop_front(), book.usual)
    };
    match reply {
        None => usual.into_response(),
        Some(Reply::Status(status)) => StatusCode::from_u16(status)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            .into_response(),
        Some(Reply::Body(body)) => body.into_response(),
        Some(Reply::RetryAfter(pause)) => {
            (StatusCode::TOO_MANY_REQUESTS, [("retry-after", pause)]).into_response()
        }
        Some(Reply::Silence) => std::future::pending().await,
    }
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("a text")
    }
}

/// A migrated database.
pub struct Stage {
    pub database: TestDatabase,
    pub scope: Scope,
    /// After the database, which is dropped on its server.
    _set: Arc<Set>,
}

impl Stage {
    pub async fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let database = TestDatabase::create(set.addresses()).await?;
        migrate(&store::Config::new(database.url())).await?;
        Ok(Self {
            database,
            scope: Scope {
                region: "eu".parse()?,
                cluster: "main".parse()?,
            },
            _set: set,
        })
    }

    pub fn alerts(&self) -> Result<Alerts, store::Error> {
        let config = store::Config::new(self.database.url());
        Alerts::new(&config, self.scope.clone())
    }

    pub async fn sql(&self, text: &str) -> Checked {
        Ok(session(self.database.url())
            .await?
            .batch_execute(text)
            .await?)
    }

    /// Alerts of one kind without a transaction.
    pub async fn raise(&self, kind: &str, many: u32) -> Checked {
        self.sql(&format!(
            "insert into ringsaga.alert (kind, region, cluster, service, text, key) \
             select '{kind}', 'eu', 'main', 'orders', 'alert ' || g, '{kind}/' || g \
             from generate_series(1, {many}) g"
        ))
        .await
    }

    pub fn notifier(&self, hooks: Vec<Hook>) -> Result<Running, store::Error> {
        Ok(Running::start(self.alerts()?, hooks))
    }

    /// Waits until so many deliveries are marked as delivered.
    pub async fn wait_for_delivered(&self, count: usize) -> Checked {
        let alerts = self.alerts()?;
        eventually("delivered", async || {
            let listed = alerts.list(true, 1_000).await.unwrap_or_default();
            let delivered = |l: &store::Listed| {
                let delivery = l.delivery.as_ref();
                delivery.is_some_and(|d| d.delivered_at.is_some())
            };
            listed.iter().filter(|line| delivered(line)).count() >= count
        })
        .await;
        Ok(())
    }
}

pub async fn session(url: &str) -> Result<tokio_postgres::Client, Box<dyn std::error::Error>> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A notifier that runs.
pub struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ring_notifier::Error>>,
}

impl Running {
    pub fn start(alerts: Alerts, hooks: Vec<Hook>) -> Self {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(run(alerts, hooks, shutdown.clone()));
        Self { shutdown, task }
    }

    pub async fn stop(self) -> Checked {
        self.shutdown.cancel();
        Ok(tokio::time::timeout(LONG, self.task).await???)
    }

    /// Ends it as a crash would.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err());
    }
}

/// Waits for a condition, at most [`LONG`].
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let all = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, all)
        .await
        .unwrap_or_else(|_| panic!("did not happen: {what}"));
}
