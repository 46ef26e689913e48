//! Setting up a node: which sagas, with what.

use std::{any::Any, collections::BTreeMap, sync::Arc};

use ring_core::id::SagaName;
use serde::{Serialize, de::DeserializeOwned};

use super::Node;
use crate::{
    Config, Error, Saga,
    context::Shared,
    engine::{self, Parts},
    saga::Definition,
};

/// Sets up a [`Node`].
#[derive(Debug)]
pub struct NodeBuilder {
    config: Config,
    sagas: BTreeMap<(SagaName, u32), Arc<Definition>>,
    twice: Option<(SagaName, u32)>,
    shared: Shared,
}

impl NodeBuilder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            sagas: BTreeMap::new(),
            twice: None,
            shared: Shared::default(),
        }
    }

    /// Gives the node a saga to run. Several versions of one saga may be given: transactions keep
    /// the version they were started with.
    #[must_use]
    pub fn saga<I>(mut self, saga: Saga<I>) -> Self
    where
        I: Serialize + DeserializeOwned + Send + 'static,
    {
        let definition = Arc::clone(saga.definition());
        let runs = definition.plan.runs();
        let id = (runs.saga.clone(), runs.version);
        if self.sagas.insert(id.clone(), definition).is_some() {
            self.twice = Some(id);
        }
        self
    }

    /// Whether the node also retries what other nodes paused or left behind; overrides
    /// [`Config::retry_node`].
    #[must_use]
    pub fn retry_node(mut self, retries: bool) -> Self {
        self.config.retry_node = retries;
        self
    }

    /// Gives steps something to use, found by its type with
    /// [`Context::shared`](crate::Context::shared): an HTTP client, a pool.
    #[must_use]
    pub fn provide<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.shared.put(value);
        self
    }

    /// As [`provide`](Self::provide), for a value that the caller keeps a share of.
    #[must_use]
    pub fn provide_shared<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.shared.put_shared(value);
        self
    }

    /// Starts the node. Waits, with backoff and saying so, while the database can't be reached.
    ///
    /// # Errors
    /// [`Error::Config`] with all mistakes of the configuration, [`Error::SagaTwice`].
    pub async fn start(self) -> Result<Node, Error> {
        self.config.check()?;
        if let Some((saga, version)) = self.twice {
            let saga = saga.to_string();
            return Err(Error::SagaTwice { saga, version });
        }
        let parts = Parts {
            config: self.config,
            sagas: self.sagas,
            shared: self.shared,
        };
        // On the heap: connecting to everything is a large future, and not the caller's concern.
        let (engine, strings) = Box::pin(engine::up(parts)).await?;
        Ok(Node::new(engine, strings))
    }
}
