//! What a saga calls participants with: a step from a service's name.
//!
//! ```no_run
//! use orchestrator_lib::{Key, Saga, Step};
//! use ring_participant::client::{Client, Fixed, Settings};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Clone, Serialize, Deserialize)] struct Order { customer: String, cents: u64 }
//! #[derive(Serialize)]
//! struct Charge { customer: String, cents: u64 }
//! #[derive(Serialize, Deserialize)]
//! struct Receipt { id: u64 }
//!
//! const CHARGE: Key<Receipt> = Key::new("charge");
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let nodes = Fixed::new()
//!     .service("payment", ["http://payment-1:8080", "http://payment-2:8080"])?
//!     .service("mail", ["nats:eu.mail"])?;
//! let client = Client::new(nodes, Settings::default())?;
//! let payment = client.target("payment");
//!
//! let saga = Saga::<Order>::new("place-order", 1)
//!     // Its action and its compensation, which gets the receipt.
//!     .step(payment.step(CHARGE, |order: &Order, _| {
//!         Ok(Charge { customer: order.customer.clone(), cents: order.cents })
//!     }))
//!     .build()?;
//! # drop(saga);
//! # Ok(()) }
//! ```
//!
//! Every reply ends in a result or in a classified [`StepError`], by the table in
//! [`wire`](crate::wire); nothing hangs longer than its time limit. What happens before there is a
//! reply:
//!
//! | seen | class | because |
//! |---|---|---|
//! | connection refused, name unknown, certificate not trusted, no responders | transient | nothing was sent; the next node is tried at once |
//! | the time limit, a connection that broke, a reply too large or cut off | unknown | it may have been applied |
//!
//! Knows no retry and no breaker: those are the saga's.

mod ask;
mod http;
#[cfg(feature = "nats")]
mod nats;
mod pause;
mod registry;
mod rotation;
mod settings;
mod target;

use std::sync::Arc;

pub use self::{
    ask::Ask,
    registry::{BoxFuture, Fixed, Node, NodeError, Registry, RegistryError},
    settings::{ClientError, Settings},
    target::Target,
};

#[cfg(doc)]
use orchestrator_lib::StepError;

/// Connections to participants, shared by all steps. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Box<dyn Registry>,
    http: reqwest::Client,
    #[cfg(feature = "nats")]
    nats: Option<async_nats::Client>,
    settings: Settings,
}

impl Client {
    /// Over the nodes that a registry knows. Connects to nothing yet.
    ///
    /// # Errors
    /// When a CA's file can't be read or a limit makes no sense.
    pub fn new(registry: impl Registry + 'static, settings: Settings) -> Result<Self, ClientError> {
        Ok(Self(Arc::new(Inner {
            registry: Box::new(registry),
            http: http::pool(&settings)?,
            #[cfg(feature = "nats")]
            nats: None,
            settings,
        })))
    }

    /// The same, with a way to nodes that are reached over NATS.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg(feature = "nats")]
    pub fn with_nats(
        registry: impl Registry + 'static,
        nats: async_nats::Client,
        settings: Settings,
    ) -> Result<Self, ClientError> {
        Ok(Self(Arc::new(Inner {
            registry: Box::new(registry),
            http: http::pool(&settings)?,
            nats: Some(nats),
            settings,
        })))
    }

    /// A service, by the name under which the registry knows it. The same name is the saga's
    /// [target](orchestrator_lib::Step::target), which shares a breaker, and the audience of
    /// service tokens.
    #[must_use]
    pub fn target(&self, service: impl Into<String>) -> Target {
        Target::new(self.clone(), service.into())
    }
}
