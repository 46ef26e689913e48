//! The drain after an outage: so many sagas paused at their second step go on and end.
//!
//! Both programs begin with the same rows and count from the first thing they do to the last
//! durable end. What makes paused ones due again is no part of it.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench measures real time, finer than the house's clock"
)]

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrator_lib::{Context, Node, Retry, Saga, Step, StepError};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::{Outcome, engine};

/// As many as the outage left.
pub(crate) const PAUSED: usize = 10_000;

/// Longer than the paused ones need to be stored.
const LONG: Duration = Duration::from_secs(3_600);

/// Between two looks at the counters: little beside a second.
const GLANCE: Duration = Duration::from_millis(5);

const COMPLETED: &str = "select count(*) from ringsaga.transaction where settled_at is not null and state = 'completed'";

/// The service that is down, and when it was first called after that.
#[derive(Clone, Debug, Default)]
struct Service {
    up: Arc<AtomicBool>,
    first: Arc<OnceLock<Instant>>,
}

impl Service {
    fn call(&self) -> Result<(), StepError> {
        if self.up.load(Ordering::Relaxed) {
            self.first.get_or_init(Instant::now);
            return Ok(());
        }
        Err(StepError::transient("the service is down"))
    }
}

/// The engine's time for [`PAUSED`] sagas.
pub(crate) async fn engine(url: &str, in_flight: usize) -> Outcome<Duration> {
    let service = Service::default();
    let called = service.clone();
    let second = move |_: Context, _: String| {
        let answer = called.call();
        async move { answer }
    };
    let saga = Saga::<String>::new("three-steps", 1)
        .step(Step::new("a", engine::nothing))
        .step(
            Step::new("b", second).retry(Retry::exponential(LONG).floor(LONG).cap(LONG).inline(0)),
        )
        .step(Step::new("c", engine::nothing))
        .build()?;
    let node = engine::node(url, &saga, in_flight).await?;
    let (store, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    start_all(&node, &saga, in_flight).await?;
    until(
        &store,
        "select count(*) from ringsaga.transaction where state = 'paused' and seq = 1",
    )
    .await?;
    // Far enough ahead that what the change left behind is cleared away.
    store
        .batch_execute("update ringsaga.transaction set due_at = now() + interval '3 s'")
        .await?;
    store
        .batch_execute("vacuum analyze ringsaga.transaction")
        .await?;
    service.up.store(true, Ordering::Relaxed);
    let ended = until(&store, COMPLETED).await?;
    let _ = node.drain().await;
    drop(store);
    connection.await??;
    let first = service.first.get().ok_or("nothing was called")?;
    Ok(ended - *first)
}

async fn start_all(node: &Node, saga: &Saga<String>, in_flight: usize) -> Outcome<()> {
    let mut callers = JoinSet::new();
    for caller in 0..in_flight {
        let (node, saga) = (node.clone(), saga.clone());
        callers.spawn(async move {
            for number in (caller..PAUSED).step_by(in_flight) {
                let input = serde_json::from_str(engine::INPUT)?;
                node.start(&saga, format!("order-{number}"), input).await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(())
}

/// When a count reached [`PAUSED`].
async fn until(store: &Client, count: &str) -> Outcome<Instant> {
    loop {
        let counted: i64 = store.query_one(count, &[]).await?.try_get(0)?;
        if usize::try_from(counted)? >= PAUSED {
            return Ok(Instant::now());
        }
        tokio::time::sleep(GLANCE).await;
    }
}
