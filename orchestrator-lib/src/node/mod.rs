//! A node: what a service holds of the engine. Starts transactions, waits for their ends, says
//! whether it is ready, leaves in order.
//!
//! Decides nothing about transactions; everything here asks the engine or the store.

mod builder;
mod ended;
mod start_in;
mod tell;
mod wait;

use std::{
    fmt,
    sync::{Arc, PoisonError},
    time::Duration,
};

use ring_core::{id::TransactionId, saga::Payload};
use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    builder::NodeBuilder,
    ended::{Drained, Ended, Output, Reached, Started},
    start_in::Pending,
    tell::Heard,
};
use crate::{
    Config, Error, Key, Saga,
    engine::{self, Engine, Life, Strings},
    store::Operator,
};

/// A running node; cheap to clone. When the last clone is dropped without
/// [`drain`](Self::drain), everything it does is dropped at once, as if the process had died:
/// other nodes continue its transactions when its lease is over.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    engine: Arc<Engine>,
    /// Taken by the one that drains.
    strings: std::sync::Mutex<Option<Strings>>,
    drained: tokio::sync::OnceCell<Drained>,
}

impl Node {
    /// Begins to set up a node.
    #[must_use]
    pub fn builder(config: Config) -> NodeBuilder {
        NodeBuilder::new(config)
    }

    fn new(engine: Arc<Engine>, strings: Strings) -> Self {
        Self(Arc::new(Inner {
            engine,
            strings: std::sync::Mutex::new(Some(strings)),
            drained: tokio::sync::OnceCell::new(),
        }))
    }

    /// Starts a transaction and runs it here, at once.
    ///
    /// The key makes it safe to ask again: the same key with the same input is the same
    /// transaction ([`Started::is_new`] tells), for as long as the store keeps it. When this
    /// returns, the transaction is stored and will come to an end whatever dies. Without room
    /// here it is left to any retry node of the service.
    ///
    /// # Errors
    /// [`Error::KeyUsed`] (another input), [`Error::UnknownSaga`], [`Error::InputTooLarge`],
    /// [`Error::NotTaking`] and others. An error says that nothing was started, but for
    /// [`Error::InProgress`] and [`Error::Store`]: ask again with the same key.
    pub async fn start<I>(
        &self,
        saga: &Saga<I>,
        key: impl Into<String>,
        input: I,
    ) -> Result<Started, Error>
    where
        I: Serialize + DeserializeOwned + Send + 'static,
    {
        let json = serde_json::to_string(&input).map_err(Error::Input)?;
        drop(input);
        let input = Payload::new(json).map_err(|e| Error::InputTooLarge(e.to_string()))?;
        let definition = saga.definition();
        self.0.engine.start(definition, key.into(), input).await
    }

    /// Waits for a transaction's end, on whichever node it comes.
    ///
    /// # Errors
    /// [`Error::NotEnded`] when the time is over, [`Error::NoTransaction`] when there is none,
    /// [`Error::Store`] when the store can't be asked until then.
    pub async fn wait(&self, id: TransactionId, within: Duration) -> Result<Ended, Error> {
        wait::wait(&self.0.engine, id, within).await
    }

    /// Waits until a step of a transaction is done, on whichever node, and reads its result.
    ///
    /// # Errors
    /// As for [`Node::wait`], and [`Error::Result`] when the result is of another type.
    pub async fn wait_for_step<R: DeserializeOwned>(
        &self,
        id: TransactionId,
        step: impl Into<Key<R>>,
        within: Duration,
    ) -> Result<Reached<R>, Error> {
        wait::step(&self.0.engine, id, step.into(), within).await
    }

    /// Why this node can't do its work; empty when it can. The texts are for people and for a
    /// readiness page.
    #[must_use]
    pub fn ready(&self) -> Vec<String> {
        self.0.engine.unready()
    }

    /// What makes retries slower here, while everything still comes to its end: no bus, no valid
    /// window, a [target](crate::Step::target) that is down. Not a reason to take the node out of service.
    #[must_use]
    pub fn degraded(&self) -> Vec<String> {
        self.0.engine.degraded()
    }

    /// The store as people see it: lists, one transaction in full, counts, restore.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.0.engine.operator
    }

    /// Leaves in order: leaves the ring, claims and starts nothing more, lets running steps end
    /// or hands their transactions back within [`Config::grace`]. A second call waits for the
    /// same end.
    pub async fn drain(&self) -> Drained {
        let strings = self
            .0
            .strings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match strings {
            Some(strings) => {
                // In a task of its own: a caller that stops waiting does not stop the leaving.
                let node = self.clone();
                let leaving = tokio::spawn(async move {
                    let left = engine::drain(&node.0.engine, strings).await;
                    // Only the holder of the strings sets it.
                    drop(node.0.drained.set(left));
                });
                if leaving.await.is_err() {
                    tracing::error!("leaving panicked; the log has it");
                }
            }
            None => self.0.engine.left().await,
        }
        self.0.drained.get().copied().unwrap_or_default()
    }

    /// Completes when the node has ended: `Ok` after [`drain`](Self::drain). When a newer process
    /// holds this node's id it drains by itself and says so here: a binary ends then.
    ///
    /// # Errors
    /// [`Error::Superseded`] when a newer process has this node's id, [`Error::Broken`] when a
    /// background task panicked.
    pub async fn ended(&self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.0.engine.superseded() => {
                self.drain().await;
                Err(Error::Superseded(self.config().instance.to_string()))
            }
            () = self.0.engine.broken() => Err(Error::Broken),
            () = self.0.engine.left() => Ok(()),
        }
    }

    /// The configuration that it was started with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.engine.config
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({:?})", self.0.engine)
    }
}

impl Engine {
    async fn left(&self) {
        let mut life = self.life.subscribe();
        // An error is that the engine is gone.
        drop(life.wait_for(|life| *life == Life::Left).await);
    }
}
