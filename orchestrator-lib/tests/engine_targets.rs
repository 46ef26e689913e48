//! A target that is away, comes back, flaps: what calls it waits, loses nothing and goes on.
#![allow(
    clippy::unwrap_used,
    reason = "names and values that are right by sight"
)]

mod support;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use orchestrator_lib::{Context, Node, Retry, Saga, Step, StepError};
use support::{Checked, LONG, Lab, eventually};

const UP: u8 = 0;
const REFUSES: u8 = 1;
const HANGS: u8 = 2;

/// Enough that a second of each would be too long.
const MANY: u32 = 300;

const HOUR: Duration = Duration::from_secs(3_600);

/// The target: how it is, and whom it served, in order.
#[derive(Clone, Default)]
struct Bank(Arc<Account>);

#[derive(Default)]
struct Account {
    how: AtomicU8,
    served: Mutex<Vec<u32>>,
    asked: AtomicU8,
}

impl Bank {
    fn is(&self, how: u8) {
        self.0.how.store(how, Ordering::SeqCst);
    }

    fn served(&self) -> Vec<u32> {
        let served = self.0.served.lock();
        served.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn charge(&self, whom: u32) -> Result<(), StepError> {
        self.0.asked.fetch_max(1, Ordering::SeqCst);
        match self.0.how.load(Ordering::SeqCst) {
            REFUSES => return Err(StepError::transient("the bank is closed")),
            HANGS => tokio::time::sleep(LONG).await,
            _ => {}
        }
        let mut served = self.0.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.push(whom);
        Ok(())
    }
}

async fn charge(cx: Context, whom: u32) -> Result<(), StepError> {
    cx.shared::<Bank>()?.charge(whom).await
}

async fn give_back(_: Context, _: u32, _: Option<()>) -> Result<(), StepError> {
    Ok(())
}

/// Three attempts, and pauses that no test outlasts: what goes on before goes on by the breaker.
fn saga() -> Saga<u32> {
    let step = Step::new("charge", charge)
        .compensate(give_back)
        .retry(Retry::exponential(HOUR).cap(HOUR).attempts(3))
        .time_limit(Duration::from_millis(300))
        .target("bank");
    Saga::new("pay", 1).step(step).build().unwrap()
}

async fn node(lab: &Lab, instance: &str, bank: &Bank) -> Result<Node, Box<dyn std::error::Error>> {
    let mut config = lab.config(instance)?;
    config.capacity = 64;
    let node = Node::builder(config)
        .saga(saga())
        .retry_node(true)
        .provide(bank.clone())
        .start();
    Ok(node.await?)
}

async fn start(node: &Node, keys: std::ops::Range<u32>) -> Checked {
    for n in keys {
        node.start(&saga(), format!("k{n}"), n).await?;
    }
    Ok(())
}

impl Lab {
    async fn number(&self, sql: &str) -> Result<i64, Box<dyn std::error::Error>> {
        let url = self.database.url();
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let driver = tokio::spawn(connection);
        let number = client.query_one(sql, &[]).await?.get(0);
        driver.abort();
        Ok(number)
    }

    /// Waits until a count of transactions is this.
    async fn wait_for_rows(&self, which: &str, wanted: u32) -> Checked {
        let sql = format!("select count(*) from ringsaga.transaction where {which}");
        let all = async {
            while self.number(&sql).await? != i64::from(wanted) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(LONG, all).await {
            Ok(done) => done,
            Err(_) => Err(format!("did not happen: {wanted} with {which}").into()),
        }
    }

    async fn some_wait(&self) -> Checked {
        let sql = "select count(*) from ringsaga.transaction where waiting_on = 'bank'";
        let all = async {
            while self.number(sql).await? == 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        tokio::time::timeout(LONG, all).await?
    }

    async fn all_wait(&self, how_many: u32) -> Checked {
        self.wait_for_rows("waiting_on = 'bank'", how_many).await
    }
}

/// How far from their place transactions were served, on average.
fn disorder(served: &[u32]) -> u32 {
    let far: u32 = (0..)
        .zip(served)
        .map(|(at, n): (u32, _)| at.abs_diff(*n))
        .sum();
    far / u32::try_from(served.len().max(1)).unwrap()
}

#[tokio::test]
async fn what_calls_a_target_that_is_away_waits_without_attempts_and_then_goes_on_in_order()
-> Checked {
    let lab = Lab::new().await?;
    let bank = Bank::default();
    bank.is(REFUSES);
    let node = node(&lab, "n1", &bank).await?;
    start(&node, 0..MANY).await?;
    lab.all_wait(MANY).await?;
    // Five failures in a row open the breaker, so no more than that and the calls beside them.
    let used = "select count(*) from ringsaga.transaction where attempts > 0";
    assert!(lab.number(used).await? <= 8);
    let degraded = node.degraded();
    let says = |r: &String| r.starts_with("target bank is down since ");
    assert!(degraded.iter().any(says), "{degraded:?}");
    assert!(node.ready().is_empty(), "not a reason to leave");

    bank.is(UP);
    lab.wait_for_rows("state = 'completed'", MANY).await?;
    let served = bank.served();
    assert_eq!(served.len(), usize::try_from(MANY)?, "each once");
    let disorder = disorder(&served);
    assert!(disorder <= MANY / 20, "{disorder} places off: {served:?}");
    assert!(!node.degraded().iter().any(says));
    Ok(())
}

#[tokio::test]
async fn time_limits_that_pass_while_the_target_is_down_are_no_attempts() -> Checked {
    let lab = Lab::new().await?;
    let bank = Bank::default();
    let node = node(&lab, "n1", &bank).await?;
    start(&node, 0..1).await?;
    lab.wait_for_rows("state = 'completed'", 1).await?;
    // Known to work, so many calls are under way when it stops to answer.
    bank.is(HANGS);
    start(&node, 1..MANY).await?;
    lab.all_wait(MANY - 1 - 4).await?;
    let used = "select count(*) from ringsaga.transaction where attempts > 0";
    // Four failures before the one that opens it.
    assert_eq!(lab.number(used).await?, 4);
    bank.is(UP);
    lab.wait_for_rows("state = 'completed'", MANY - 4).await?;
    lab.sql("update ringsaga.transaction set due_at = now() where state = 'paused'")
        .await?;
    lab.wait_for_rows("state = 'completed'", MANY).await?;
    Ok(())
}

#[tokio::test]
async fn another_node_goes_on_with_what_waited_when_the_first_dies() -> Checked {
    let lab = Lab::new().await?;
    let bank = Bank::default();
    bank.is(REFUSES);
    let first = node(&lab, "n1", &bank).await?;
    start(&first, 0..MANY).await?;
    lab.all_wait(MANY).await?;
    // As if it were killed: nothing is handed back.
    drop(first);
    bank.is(UP);
    let _second = node(&lab, "n2", &bank).await?;
    lab.wait_for_rows("state = 'completed'", MANY).await?;
    assert_eq!(bank.served().len(), usize::try_from(MANY)?);
    Ok(())
}

#[tokio::test]
async fn a_target_that_flaps_loses_nothing() -> Checked {
    let lab = Lab::new().await?;
    let bank = Bank::default();
    let nodes = [
        node(&lab, "n1", &bank).await?,
        node(&lab, "n2", &bank).await?,
    ];
    for round in 0..6 {
        bank.is(if round % 2 == 0 { REFUSES } else { UP });
        let half = round * MANY / 6;
        start(&nodes[0], half..half + MANY / 12).await?;
        start(&nodes[1], half + MANY / 12..half + MANY / 6).await?;
        if round % 2 == 0 {
            lab.some_wait().await?;
        }
    }
    bank.is(UP);
    let settled = "state not in ('running', 'paused')";
    // What failed before the breaker opened waits its own hour.
    let by_hand = async {
        loop {
            let due = "update ringsaga.transaction set due_at = now() \
                       where state = 'paused' and waiting_on is null and due_at > now() + '1 min'";
            if lab.sql(due).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        done = lab.wait_for_rows(settled, MANY) => done?,
        () = by_hand => return Err("the database is away".into()),
    }
    let mut served = bank.served();
    let completed = "select count(*) from ringsaga.transaction where state = 'completed'";
    assert_eq!(lab.number(completed).await?, i64::try_from(served.len())?);
    served.sort_unstable();
    served.dedup();
    assert_eq!(i64::try_from(served.len())?, lab.number(completed).await?);
    Ok(())
}

#[tokio::test]
async fn a_refusal_shows_that_the_target_works() -> Checked {
    async fn refuse(cx: Context, _: u32) -> Result<(), StepError> {
        cx.shared::<Bank>()?.0.asked.fetch_add(1, Ordering::SeqCst);
        Err(StepError::business("no money"))
    }
    let lab = Lab::new().await?;
    let bank = Bank::default();
    let step = Step::new("charge", refuse).target("bank");
    let saga = Saga::<u32>::new("pay", 1).step(step).build()?;
    let node = Node::builder(lab.config("n1")?)
        .saga(saga.clone())
        .provide(bank.clone())
        .start()
        .await?;
    for n in 0..20 {
        node.start(&saga, format!("k{n}"), n).await?;
    }
    lab.wait_for_rows("state = 'compensated'", 20).await?;
    eventually("all were asked", || {
        bank.0.asked.load(Ordering::SeqCst) == 20
    })
    .await;
    Ok(())
}
