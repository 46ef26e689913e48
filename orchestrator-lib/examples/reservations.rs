//! A trip: flight, hotel and car are reserved side by side, then paid together; when the payment
//! is refused, all three are undone one by one.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@localhost/orders cargo run -p orchestrator-lib --example reservations
//! ```

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orchestrator_lib::{Config, Context, Ended, Group, Key, Node, Saga, Step, StepError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Serialize, Deserialize)]
struct Trip {
    to: String,
    budget: u64,
}

#[derive(Clone, Serialize, Deserialize)]
struct Booking {
    what: String,
    cents: u64,
}

const FLIGHT: Key<Booking> = Key::new("flight");
const HOTEL: Key<Booking> = Key::new("hotel");
const CAR: Key<Booking> = Key::new("car");

/// What the agencies hold; in a service they are HTTP calls that send `cx.key()`.
type Held = Mutex<Vec<String>>;

fn book(cx: &Context, what: String, cents: u64) -> Result<Booking, StepError> {
    let held = cx.shared::<Held>()?;
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    if !held.contains(&what) {
        held.push(what.clone());
    }
    Ok(Booking { what, cents })
}

async fn flight(cx: Context, trip: Trip) -> Result<Booking, StepError> {
    book(&cx, format!("flight to {}", trip.to), 30_000)
}

async fn hotel(cx: Context, trip: Trip) -> Result<Booking, StepError> {
    book(&cx, format!("hotel in {}", trip.to), 20_000)
}

async fn car(cx: Context, trip: Trip) -> Result<Booking, StepError> {
    book(&cx, format!("car in {}", trip.to), 10_000)
}

/// Undoes any of them. `None`: nobody knows whether it was booked; an agency looks it up by
/// `cx.action_key()`.
async fn release(cx: Context, _: Trip, booking: Option<Booking>) -> Result<(), StepError> {
    let held = cx.shared::<Held>()?;
    if let Some(booking) = booking {
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|what| *what != booking.what);
    }
    Ok(())
}

async fn pay(cx: Context, trip: Trip) -> Result<u64, StepError> {
    let bookings = [cx.result(FLIGHT)?, cx.result(HOTEL)?, cx.result(CAR)?];
    let sum = bookings.iter().map(|b| b.cents).sum();
    if sum > trip.budget {
        return Err(StepError::business(format_args!(
            "{sum} cents are more than {}",
            trip.budget
        )));
    }
    Ok(sum)
}

fn saga() -> Result<Saga<Trip>, orchestrator_lib::Mistakes> {
    Saga::new("trip", 1)
        .parallel(
            Group::new()
                .step(Step::new(FLIGHT, flight).compensate(release))
                .step(Step::new(HOTEL, hotel).compensate(release))
                .step(Step::new(CAR, car).compensate(release)),
        )
        .step(Step::new("pay", pay))
        .build()
}

/// A trip that can be paid, and one that can't.
pub(crate) async fn run(mut config: Config) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    config.migrate_on_start = true;
    let (saga, held) = (saga()?, Arc::new(Held::default()));
    let node = Node::builder(config)
        .saga(saga.clone())
        .provide_shared(Arc::clone(&held))
        .retry_node(true)
        .start()
        .await?;
    let mut told = Vec::new();
    for (to, budget) in [("Rome", 100_000), ("Tokyo", 50_000)] {
        let trip = Trip {
            to: to.into(),
            budget,
        };
        let key = format!("trip-to-{to}-{}", Uuid::new_v4());
        let started = node.start(&saga, key, trip).await?;
        told.push(
            match node.wait(started.id, Duration::from_secs(60)).await? {
                Ended::Completed(sum) => format!("{to}: paid {} cents", sum.read::<u64>()?),
                Ended::Compensated { reason } => format!("{to}: undone, because {reason}"),
                ended @ (Ended::Terminated { .. }
                | Ended::Disabled { .. }
                | Ended::Quarantined { .. }) => format!("{to}: a person is needed: {ended:?}"),
            },
        );
    }
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner).clone();
    held.sort();
    told.push(format!("held: {}", held.join(", ")));
    node.drain().await;
    Ok(told)
}

#[cfg_attr(test, expect(dead_code, reason = "the test calls run"))]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example has no configuration file"
    )]
    let url = std::env::var("DATABASE_URL")?;
    let config = Config::new("local", "example", "trips", "trips-1", url)?;
    #[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
    for line in run(config).await? {
        println!("{line}");
    }
    Ok(())
}
