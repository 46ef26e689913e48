//! The documentation by one example: an order is placed, its payment fails, is retried, and what
//! can't be paid is undone.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@localhost/orders cargo run -p orchestrator-lib --example order
//! ```
//!
//! The three participants are functions here; in a service they are HTTP calls that send
//! `cx.key()` as idempotency key.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use orchestrator_lib::{Config, Context, Ended, Key, Node, Retry, Saga, Step, StepError};
use serde::{Deserialize, Serialize};

/// What the saga is given. It is stored as JSON, so it has to be readable by the next version of
/// this program, too.
#[derive(Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    customer: String,
    cents: u64,
}

/// What the first step returns: later steps and its own compensation get it.
#[derive(Serialize, Deserialize)]
struct Reservation {
    id: String,
}

/// A key names a step and the type of its result.
const RESERVE: Key<Reservation> = Key::new("reserve");

/// A payment service that is away for its first three calls.
struct Payment {
    calls: Mutex<u32>,
}

/// Step 1. It may be called more than once, always with the same key: the inventory service
/// answers a repetition with the reservation that it made before.
async fn reserve(cx: Context, order: Order) -> Result<Reservation, StepError> {
    say(&cx, &format!("reserve {}", order.item));
    Ok(Reservation {
        id: format!("r-{}", cx.transaction()),
    })
}

/// Undoes step 1. `None` would mean that nobody knows whether the reservation was made: then it is
/// looked up by `cx.action_key()`, and a mark is left that blocks a late one.
async fn release(cx: Context, _: Order, reserved: Option<Reservation>) -> Result<(), StepError> {
    let id = reserved.map_or_else(|| cx.action_key(), |r| r.id);
    say(&cx, &format!("release {id}"));
    Ok(())
}

/// Step 2. How it fails decides what comes next: a *transient* failure is retried, first at once,
/// then from the database with a growing pause; a *business* refusal undoes what was done.
async fn charge(cx: Context, order: Order) -> Result<(), StepError> {
    let reserved = cx.result(RESERVE)?;
    let payment = cx.shared::<Payment>()?;
    let call = {
        let mut calls = payment.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls += 1;
        *calls
    };
    if call <= 3 {
        say(&cx, "charge: the payment service is away");
        return Err(StepError::transient("payment answered 503"));
    }
    if order.customer == "mallory" {
        say(&cx, "charge: declined");
        return Err(StepError::business("card declined"));
    }
    say(&cx, &format!("charge {} for {}", order.cents, reserved.id));
    Ok(())
}

/// Step 3. Its result is the saga's.
async fn ship(cx: Context, order: Order) -> Result<String, StepError> {
    say(&cx, &format!("ship to {}", order.customer));
    Ok(format!("parcel for {}", order.customer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .init();

    let quick = Retry::exponential(Duration::from_millis(200)).cap(Duration::from_secs(2));
    let saga = Saga::<Order>::new("place-order", 1)
        .step(Step::new(RESERVE, reserve).compensate(release))
        .step(Step::new("charge", charge).retry(quick))
        .step(Step::new("ship", ship))
        .lifetime(Duration::from_secs(3600))
        .build()?;

    #[expect(
        clippy::disallowed_methods,
        reason = "an example has no configuration file"
    )]
    let url = std::env::var("DATABASE_URL")?;
    let mut config = Config::new("local", "example", "orders", "orders-1", url)?;
    config.migrate_on_start = true;
    let node = Node::builder(config)
        .saga(saga.clone())
        .provide(Payment { calls: 0.into() })
        .retry_node(true) // it also continues what others left
        .start()
        .await?;

    for customer in ["alice", "mallory"] {
        let order = Order {
            item: "book".into(),
            customer: customer.into(),
            cents: 2_000,
        };
        // The key makes it safe to ask again: the same key is the same transaction.
        let key = format!("order-of-{customer}-{}", std::process::id());
        let started = node.start(&saga, key, order).await?;
        match node.wait(started.id, Duration::from_secs(60)).await? {
            Ended::Completed(result) => print(&format!("completed: {}", result.read::<String>()?)),
            Ended::Compensated { reason } => print(&format!("undone, because {reason}")),
            ended @ (Ended::Terminated { .. }
            | Ended::Disabled { .. }
            | Ended::Quarantined { .. }) => {
                print(&format!("a person is needed: {ended:?}"));
            }
        }
    }

    // Lets running steps end, hands the rest to other nodes.
    node.drain().await;
    Ok(())
}

fn say(cx: &Context, what: &str) {
    print(&format!(
        "  {:<8} attempt {}: {what}",
        cx.step(),
        cx.attempt()
    ));
}

#[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
fn print(line: &str) {
    println!("{line}");
}
