//! Ten thousand transactions of one saga, all due and all hanging, keep nobody else waiting.
#![allow(
    clippy::unwrap_used,
    reason = "names and values that are right by sight"
)]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use orchestrator_lib::{Context, Node, Saga, Step, StepError};
use support::{Checked, LONG, Lab, end, eventually};
use tokio::sync::Semaphore;

const CAPACITY: usize = 16;

/// A step that hangs until it is let go.
#[derive(Clone)]
struct Gate {
    open: Arc<Semaphore>,
    hanging: Arc<AtomicUsize>,
}

async fn hang(cx: Context, _: u32) -> Result<(), StepError> {
    let gate = cx.shared::<Gate>()?;
    gate.hanging.fetch_add(1, Ordering::SeqCst);
    let passed = gate.open.acquire().await.map_err(StepError::unknown)?;
    passed.forget();
    Ok(())
}

async fn quick(_: Context, _: u32) -> Result<(), StepError> {
    Ok(())
}

fn slow_saga() -> Saga<u32> {
    let step = Step::new("hang", hang).time_limit(LONG);
    Saga::new("slow", 1).step(step).build().unwrap()
}

fn quick_saga() -> Saga<u32> {
    Saga::new("quick", 1)
        .step(Step::new("quick", quick))
        .build()
        .unwrap()
}

impl Lab {
    /// So many of a saga, stored and due since so many seconds.
    async fn store_due(&self, saga: &str, count: u32, since: u32) -> Checked {
        let (region, cluster) = (&self.scope.region, &self.scope.cluster);
        self.sql(&format!(
            "with made as (
                insert into ringsaga.transaction (id, region, cluster, service, token, definition,
                    state, direction, seq, doubt, attempts, deaths, epoch, last_write, wake_seq,
                    due_at, created_at, expires_at, progressed_at)
                select gen_random_uuid(), '{region}', '{cluster}', 'orders',
                    ('x' || substr(md5(g::text), 1, 16))::bit(64)::bigint,
                    (select id from ringsaga.definition where saga = '{saga}'), 'paused',
                    'forward', 0, false, 0, 0, 0, 0, 0, now() - interval '{since} s', now(),
                    now() + interval '1 h', now()
                from generate_series(1, {count}) g
                returning id
            )
            insert into ringsaga.payload (transaction, input, input_digest, key)
            select id, '7', 'x', id::text from made"
        ))
        .await
    }

    async fn node_of_two(&self, gate: &Gate) -> Result<Node, Box<dyn std::error::Error>> {
        let mut config = self.config("n1")?;
        config.capacity = CAPACITY;
        let node = Node::builder(config)
            .saga(slow_saga())
            .saga(quick_saga())
            .retry_node(true)
            .provide(gate.clone())
            .start();
        Ok(node.await?)
    }
}

#[tokio::test]
async fn ten_thousand_due_ones_that_hang_keep_no_other_saga_waiting() -> Checked {
    let lab = Lab::new().await?;
    let gate = Gate {
        open: Arc::new(Semaphore::new(0)),
        hanging: Arc::default(),
    };
    let node = lab.node_of_two(&gate).await?;
    lab.store_due("slow", 10_000, 600).await?;
    // All but the part that is kept for others.
    let share = CAPACITY - CAPACITY / 8;
    let hanging = || gate.hanging.load(Ordering::SeqCst);
    eventually("the saga has its share", || hanging() == share).await;

    // Younger than every one of them; none of them ends before the last of these.
    lab.store_due("quick", 50, 60).await?;
    let started = node.start(&quick_saga(), "k", 7).await?;
    assert!(end(&node, started.id).await?.is_completed());
    let (client, connection) =
        tokio_postgres::connect(lab.database.url(), tokio_postgres::NoTls).await?;
    let driver = tokio::spawn(connection);
    let open = "select from ringsaga.transaction where state <> 'completed' and definition = \
                (select id from ringsaga.definition where saga = 'quick')";
    let all = async {
        while !client.query(open, &[]).await?.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Ok::<_, tokio_postgres::Error>(())
    };
    tokio::time::timeout(LONG, all).await??;
    assert_eq!(hanging(), share, "the first ones hang as before");

    // And a start of the saga that has its share is kept for later, not refused.
    node.start(&slow_saga(), "later", 7).await?;
    assert_eq!(hanging(), share);
    gate.open.add_permits(1);
    eventually("the next one begins", || hanging() == share + 1).await;
    driver.abort();
    Ok(())
}
