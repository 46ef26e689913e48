//! A node: what a service holds of the engine. Starts transactions, waits for their ends, says
//! whether it is ready, leaves in order.
//!
//! Decides nothing about transactions; everything here asks the engine or the store.

mod builder;
mod ended;

use std::{sync::Arc, time::Duration};

use ring_core::id::TransactionId;
use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    builder::NodeBuilder,
    ended::{Drained, Ended, Output, Started},
};
use crate::{Config, Error, Saga};

/// A running node; cheap to clone. When the last clone is dropped without
/// [`drain`](Self::drain), everything it does is dropped at once, as if the process had died:
/// other nodes continue its transactions when its lease is over.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
}

impl Node {
    /// Begins to set up a node.
    #[must_use]
    pub fn builder(config: Config) -> NodeBuilder {
        NodeBuilder::new(config)
    }

    /// Starts a transaction and runs it here, at once.
    ///
    /// The key makes it safe to ask again: the same key with the same input is the same
    /// transaction ([`Started::is_new`] tells), for as long as the store keeps it. When this
    /// returns, the transaction is stored and will come to an end whatever dies.
    ///
    /// # Errors
    /// [`Error::KeyUsed`] (another input), [`Error::UnknownSaga`], [`Error::InputTooLarge`],
    /// [`Error::NotTaking`] and others. An error says that nothing was started, but for
    /// [`Error::InProgress`] and a lost connection: ask again with the same key.
    #[expect(clippy::unused_async, reason = "the store is asked")]
    pub async fn start<I>(
        &self,
        saga: &Saga<I>,
        key: impl Into<String>,
        input: I,
    ) -> Result<Started, Error>
    where
        I: Serialize + DeserializeOwned + Send + 'static,
    {
        let input = serde_json::to_string(&input).map_err(Error::Input)?;
        tracing::trace!(
            saga = saga.name(),
            key = key.into(),
            bytes = input.len(),
            "start"
        );
        Err(Error::NotTaking("no engine".into()))
    }

    /// Waits for a transaction's end.
    ///
    /// # Errors
    /// [`Error::NotEnded`] when the time is over, [`Error::NoTransaction`].
    #[expect(clippy::unused_async, reason = "the store is asked")]
    pub async fn wait(&self, id: TransactionId, within: Duration) -> Result<Ended, Error> {
        let _ = within;
        Err(Error::NoTransaction(id))
    }

    /// Why this node can't do all of its work; empty when it can. The texts are for people and
    /// for a readiness page.
    #[must_use]
    pub fn ready(&self) -> Vec<String> {
        vec!["no engine".into()]
    }

    /// Leaves in order: leaves the ring, claims and starts nothing more, lets running steps end
    /// or hands their transactions back within [`Config::grace`]. A second call waits for the
    /// same end.
    #[expect(clippy::unused_async, reason = "calls are waited for")]
    pub async fn drain(&self) -> Drained {
        Drained::default()
    }

    /// Completes when the node has ended: `Ok` after [`drain`](Self::drain).
    ///
    /// # Errors
    /// [`Error::Superseded`] when a newer process has this node's id, [`Error::Broken`] when a
    /// background task panicked.
    #[expect(clippy::unused_async, reason = "the end is waited for")]
    pub async fn ended(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The configuration that it was started with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config
    }
}
