//! A laboratory for engine tests: a real Postgres (and NATS when asked), a saga of three steps, and
//! a ledger that plays the participants and remembers every call.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses its part"
)]

pub mod relay;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orchestrator_lib::{
    Config, Context, Ended, Nats, Node, Retry, Saga, SagaBuilder, Step, StepError, Times,
    TransactionId,
};
use ring_local::{Role, Scope, Set, Settings, TestDatabase};
use tokio::sync::Semaphore;

pub type Checked = Result<(), Box<dyn std::error::Error>>;

/// Nothing in these tests takes longer on a slow machine.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Lab {
    pub set: Arc<Set>,
    pub database: TestDatabase,
    pub scope: Scope,
    pub ledger: Ledger,
}

/// What a call does instead of succeeding.
#[derive(Clone, Debug)]
pub enum Reply {
    Transient,
    Business,
    Persistent,
    Unknown,
    Panic,
    /// Applies its effect, then takes this long to answer.
    Slow(Duration),
    /// Applies its effect, and answers when there is a permit.
    Held(Arc<Semaphore>),
}

/// All participants in one: every call, in order, and what the next ones answer.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    calls: Vec<String>,
    answered: Vec<String>,
    keys: BTreeMap<String, u32>,
    replies: BTreeMap<String, VecDeque<Reply>>,
    results: BTreeMap<String, Option<String>>,
}

impl Lab {
    pub async fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let database = TestDatabase::create(set.addresses()).await?;
        let scope = set.scope()?;
        Ok(Self {
            set,
            database,
            scope,
            ledger: Ledger::default(),
        })
    }

    /// A configuration with short times and no bus.
    pub fn config(&self, instance: &str) -> Result<Config, Box<dyn std::error::Error>> {
        let Scope { region, cluster } = &self.scope;
        let mut config = Config::new(region, cluster, "orders", instance, self.database.url())?;
        config.migrate_on_start = true;
        config.grace = Duration::from_secs(3);
        config.timing = Times {
            owner_lease: Some(Duration::from_secs(3)),
            overdue_after: Some(Duration::from_secs(1)),
            sweep: Some(Duration::from_millis(200)),
            ..Times::default()
        };
        Ok(config)
    }

    pub fn nats(&self) -> Nats {
        let at = self.set.addresses();
        let password = at.nats_password(Role::Orchestrator);
        Nats::at(&at.nats_url).user(Role::Orchestrator.user(), password)
    }

    /// What a test does behind the engine's back.
    pub async fn sql(&self, text: &str) -> Checked {
        let url = self.database.url();
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let driver = tokio::spawn(connection);
        client.batch_execute(text).await?;
        driver.abort();
        Ok(())
    }

    /// A number that the database tells.
    pub async fn count(&self, text: &str) -> Result<i64, Box<dyn std::error::Error>> {
        let url = self.database.url();
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let driver = tokio::spawn(connection);
        let count = client.query_one(text, &[]).await?.try_get(0)?;
        driver.abort();
        Ok(count)
    }

    /// A retry node with the saga of [`saga`].
    pub async fn node(&self, instance: &str) -> Result<Node, Box<dyn std::error::Error>> {
        self.node_with(instance, saga(quick()).build()?).await
    }

    pub async fn node_with(
        &self,
        instance: &str,
        saga: Saga<u32>,
    ) -> Result<Node, Box<dyn std::error::Error>> {
        let node = Node::builder(self.config(instance)?)
            .saga(saga)
            .retry_node(true)
            .provide(self.ledger.clone())
            .start()
            .await?;
        Ok(node)
    }
}

/// Retries fast, and paused ones within a moment.
pub fn quick() -> Retry {
    Retry::exponential(Duration::from_millis(100))
        .floor(Duration::from_millis(20))
        .cap(Duration::from_millis(400))
}

/// Three steps, each with a compensation, all played by the ledger.
pub fn saga(retry: Retry) -> SagaBuilder<u32> {
    let step = |name| {
        Step::new(name, act)
            .compensate(undo)
            .retry(retry)
            .retry_compensation(retry.until_the_lifetime_ends())
            .time_limit(Duration::from_secs(20))
    };
    Saga::new("three-steps", 1)
        .step(step("a"))
        .step(step("b"))
        .step(step("c"))
        .lifetime(Duration::from_secs(600))
}

pub async fn act(cx: Context, input: u32) -> Result<String, StepError> {
    let ledger = cx.shared::<Ledger>()?;
    ledger.call(cx.step(), cx.key()).await?;
    Ok(format!("{}{input}", cx.step()))
}

pub async fn undo(cx: Context, _: u32, result: Option<String>) -> Result<(), StepError> {
    let ledger = cx.shared::<Ledger>()?;
    ledger.undone(cx.step(), result);
    ledger.call(&format!("undo {}", cx.step()), cx.key()).await
}

impl Ledger {
    /// The next calls of this kind (`a`, `undo a`) answer so; afterwards they succeed again.
    pub fn next(&self, call: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut book = self.book();
        book.replies.entry(call.into()).or_default().extend(replies);
    }

    /// The next call of this kind answers when a permit is added.
    pub fn hold(&self, call: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.next(call, [Reply::Held(Arc::clone(&gate))]);
        gate
    }

    /// Waits until a call of this kind has been answered.
    pub async fn wait_for_answer(&self, call: &str) {
        eventually(call, || self.book().answered.iter().any(|c| c == call)).await;
    }

    /// Every call, in order.
    pub fn calls(&self) -> Vec<String> {
        self.book().calls.clone()
    }

    /// How many different keys calls of a kind came with.
    pub fn keys(&self) -> BTreeMap<String, u32> {
        self.book().keys.clone()
    }

    /// What a step's compensation was given.
    pub fn given(&self, step: &str) -> Option<Option<String>> {
        self.book().results.get(step).cloned()
    }

    /// Waits until a call of this kind has been made `count` times.
    pub async fn wait_for(&self, call: &str, count: usize) {
        eventually(call, || {
            self.calls().iter().filter(|c| *c == call).count() >= count
        })
        .await;
    }

    /// Waits until each of these calls has been made.
    pub async fn called(&self, all: &[&str]) {
        for call in all {
            self.wait_for(call, 1).await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn undone(&self, step: &str, result: Option<String>) {
        let mut book = self.book();
        book.results.insert(step.into(), result);
    }

    /// Makes a call as a participant.
    pub async fn call(&self, call: &str, key: &str) -> Result<(), StepError> {
        let reply = {
            let mut book = self.book();
            book.calls.push(call.into());
            *book.keys.entry(key.into()).or_default() += 1;
            book.replies.get_mut(call).and_then(VecDeque::pop_front)
        };
        let answer = Self::answer(reply).await;
        self.book().answered.push(call.into());
        answer
    }

    async fn answer(reply: Option<Reply>) -> Result<(), StepError> {
        match reply {
            None => Ok(()),
            Some(Reply::Transient) => Err(StepError::transient("away")),
            Some(Reply::Business) => Err(StepError::business("declined")),
            Some(Reply::Persistent) => Err(StepError::persistent("no such account")),
            Some(Reply::Unknown) => Err(StepError::unknown("no answer")),
            Some(Reply::Panic) => panic!("on purpose"),
            Some(Reply::Slow(time)) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Some(Reply::Held(gate)) => {
                gate.acquire().await.map_err(StepError::unknown)?.forget();
                Ok(())
            }
        }
    }
}

/// Waits for a condition, at most [`LONG`].
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let all = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, all)
        .await
        .unwrap_or_else(|_| panic!("did not happen: {what}"));
}

pub async fn end(node: &Node, id: TransactionId) -> Result<Ended, orchestrator_lib::Error> {
    node.wait(id, LONG).await
}
