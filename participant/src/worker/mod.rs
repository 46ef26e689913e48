//! A worker: functions registered by step name, called by sagas that run elsewhere.
//!
//! ```
//! use ring_participant::worker::{Call, Plain, Refusal, Worker};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Quote { sku: String }
//! #[derive(Serialize, Deserialize)]
//! struct Price { cents: u64 }
//!
//! async fn quote(_: Call, ask: Quote) -> Result<Price, Refusal> {
//!     match ask.sku.as_str() {
//!         "pen" => Ok(Price { cents: 150 }),
//!         other => Err(Refusal::business(format_args!("no {other} for sale"))),
//!     }
//! }
//! async fn forget(_: Call, _: Quote, _price: Option<Price>) -> Result<(), Refusal> {
//!     Ok(())
//! }
//!
//! # fn example() -> Result<(), ring_participant::worker::Mistakes> {
//! let worker = Worker::builder()
//!     .on("quote", Plain::new(quote).compensate(forget))
//!     .build()?;
//! # #[cfg(feature = "http")]
//! let router = worker.router(); // nest it in the service's own axum app
//! # Ok(()) }
//! # example().unwrap();
//! ```
//!
//! | kind of work | its effect | takes place |
//! |---|---|---|
//! | [`Transactional`] | in the worker's Postgres, in the transaction that the function is given | exactly once |
//! | [`Started`] | elsewhere; a row in Postgres remembers that it was begun | at least once, under one key |
//! | [`Plain`] | wherever; the function itself recognises [`Call::key`] | at least once |
//!
//! Decides which function a call belongs to and what its outcome is called; knows no transport.

mod call;
mod carry;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "nats")]
pub(crate) mod nats;
mod plain;
mod refusal;
#[cfg(feature = "barrier")]
mod started;
#[cfg(feature = "barrier")]
mod transactional;

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

#[cfg(feature = "nats")]
pub use self::nats::{Service, ServiceError};
pub use self::{call::Call, plain::Plain, refusal::Refusal};
use self::{call::Shared, carry::Erased};
#[cfg(feature = "barrier")]
pub use self::{
    started::Started,
    transactional::{Action, Compensation, Transactional},
};

/// How long a call may take unless its work says otherwise: as long as a saga waits for one.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(30);

/// Calls at once unless told otherwise; one more is asked to come again.
pub const DEFAULT_CALLS: usize = 256;

/// Carries out calls. Cheap to clone.
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

struct Inner {
    steps: BTreeMap<String, Work>,
    shared: Shared,
    calls: Arc<Semaphore>,
    #[cfg(feature = "token")]
    verifier: Option<crate::token::Verifier>,
}

/// Makes a [`Worker`].
pub struct WorkerBuilder {
    steps: BTreeMap<String, Work>,
    shared: Shared,
    calls: usize,
    mistakes: Vec<String>,
    #[cfg(feature = "token")]
    verifier: Option<crate::token::Verifier>,
}

/// What is done for one step, its types erased.
#[derive(Clone)]
pub struct Work {
    action: Erased,
    compensation: Option<Erased>,
    limit: Duration,
}

/// Everything that is wrong with a worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker can't be built: {}", .0.join("; "))]
pub struct Mistakes(pub Vec<String>);

impl Worker {
    /// Begins one.
    #[must_use]
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder {
            steps: BTreeMap::new(),
            shared: Shared::default(),
            calls: DEFAULT_CALLS,
            mistakes: Vec::new(),
            #[cfg(feature = "token")]
            verifier: None,
        }
    }

    /// The names of its steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.0.steps.keys().map(String::as_str)
    }
}

impl WorkerBuilder {
    /// What is done for a step.
    #[must_use]
    pub fn on(mut self, step: impl Into<String>, work: impl Into<Work>) -> Self {
        let step = step.into();
        if step.is_empty() || step.len() > 128 {
            self.mistakes
                .push(format!("{step:?} is no step's name: 1 to 128 bytes"));
        }
        if self.steps.insert(step.clone(), work.into()).is_some() {
            self.mistakes.push(format!("step {step:?} is given twice"));
        }
        self
    }

    /// What functions find with [`Call::shared`], by its type.
    #[must_use]
    pub fn provide<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.shared.put(value);
        self
    }

    /// How many calls at once; default [`DEFAULT_CALLS`].
    #[must_use]
    pub fn calls(mut self, most: usize) -> Self {
        self.calls = most;
        self
    }

    /// Calls need a service token that this accepts. Without, everyone who reaches the worker may
    /// call it.
    #[cfg(feature = "token")]
    #[must_use]
    pub fn verify(mut self, verifier: crate::token::Verifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Makes it.
    ///
    /// # Errors
    /// Every mistake at once.
    pub fn build(mut self) -> Result<Worker, Mistakes> {
        if self.steps.is_empty() {
            self.mistakes
                .push("it has no step: give it one with on(…)".to_owned());
        }
        if !(1..=Semaphore::MAX_PERMITS).contains(&self.calls) {
            self.mistakes
                .push(format!("calls must be at least 1, it is {}", self.calls));
        }
        if !self.mistakes.is_empty() {
            return Err(Mistakes(self.mistakes));
        }
        Ok(Worker(Arc::new(Inner {
            steps: self.steps,
            shared: self.shared,
            calls: Arc::new(Semaphore::new(self.calls)),
            #[cfg(feature = "token")]
            verifier: self.verifier,
        })))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<&str> = self.steps().collect();
        f.debug_struct("Worker").field("steps", &steps).finish()
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("steps", &self.steps)
            .field("mistakes", &self.mistakes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("compensated", &self.compensation.is_some())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
