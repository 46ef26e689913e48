//! The saga library that services link: engine, fencing, retries on Postgres and the token ring.
//!
//! A *saga* is a definition: steps, each with an action and what undoes it. A *transaction* is one
//! run of it, stored in Postgres, which comes to an end whatever dies on the way: completed, or
//! undone in reverse order, or handed to a person.
//!
//! ```no_run
//! use std::time::Duration;
//! use orchestrator_lib::{Config, Context, Node, Retry, Saga, Step, StepError};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Order { item: String, cents: u64 }
//! #[derive(Serialize, Deserialize)]
//! struct Reservation { id: String }
//!
//! async fn reserve(cx: Context, order: Order) -> Result<Reservation, StepError> {
//!     // Ask the inventory service, sending cx.key() as idempotency key.
//! #   let _ = order.item;
//!     Ok(Reservation { id: cx.key().to_owned() })
//! }
//! async fn release(_: Context, _: Order, reserved: Option<Reservation>) -> Result<(), StepError> {
//!     // `None`: nobody knows whether the reservation was made.
//! #   drop(reserved);
//!     Ok(())
//! }
//! async fn charge(cx: Context, order: Order) -> Result<(), StepError> {
//!     let reserved: Reservation = cx.result("reserve")?;
//!     if order.cents > 100_000 {
//!         return Err(StepError::business(format!("{}: too expensive", reserved.id)));
//!     }
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let saga = Saga::<Order>::new("place-order", 1)
//!     .step(Step::new("reserve", reserve).compensate(release))
//!     .step(Step::new("charge", charge).retry(Retry::exponential(Duration::from_secs(2))))
//!     .build()?;
//!
//! let config = Config::new("eu", "main", "orders", "orders-1", "postgres://localhost/orders")?;
//! let node = Node::builder(config).saga(saga.clone()).retry_node(true).start().await?;
//!
//! let order = Order { item: "book".into(), cents: 2_000 };
//! let started = node.start(&saga, "order-4711", order).await?;
//! let end = node.wait(started.id, Duration::from_secs(30)).await?;
//! # drop(end);
//! node.drain().await;
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! Each step's *outcome* is recorded exactly once. Its *effect* happens exactly once when the step
//! [runs inside the store's own database transaction](Step::transactional) or behind the participant barrier; otherwise at
//! least once, always with the same [`Context::key`].
//!
//! # Where to read on
//!
//! [`Step`], [`Flow`] and [`StepError`] for writing sagas, [`Node`] for running them, [`Config`] for
//! where, [`guide`] for how to choose. Feature `testing`: a user's saga without servers.

mod config;
mod context;
mod engine;
mod error;
mod failure;
mod flow;
pub mod guide;
mod node;
mod region;
mod retry;
mod saga;
mod step;
pub mod store;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;

pub use config::{Config, ConfigError, ConfigErrors, Database, Nats, Targets, Times};
pub use context::{Context, Key};
pub use error::{Error, MAX_KEY_BYTES};
pub use failure::{Class, StepError};
pub use flow::{Branch, Flow, Group};
pub use node::{Drained, Ended, Heard, Node, NodeBuilder, Output, Pending, Reached, Started};
pub use retry::Retry;
pub use ring_core::{
    id::TransactionId,
    saga::{Recovery, State},
};
pub use saga::{DEFAULT_LIFETIME, Mistake, Mistakes, Saga, SagaBuilder};
pub use step::{DEFAULT_TIME_LIMIT, Probe, Step};
pub use store::StoreTransaction;
/// The driver whose transactions [`Node::start_in`] and [`StoreTransaction`] speak of.
pub use tokio_postgres;

/// The README's saga compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
