//! Starting a transaction inside the caller's own database transaction.

use std::{fmt, sync::Arc};

use ring_core::{
    id::{SagaName, TransactionId},
    saga::Payload,
};
use serde::{Serialize, de::DeserializeOwned};

use super::Node;
use crate::{Error, Saga, Started, engine::Engine};

/// A transaction that exists when its caller's database transaction commits: say
/// [`committed`](Self::committed) then. Dropped, nothing is lost: any retry node of the service
/// finds it when its turn on the ring comes.
pub struct Pending {
    started: Started,
    saga: SagaName,
    engine: Arc<Engine>,
}

impl Node {
    /// Starts a transaction inside the caller's own Postgres transaction: it exists if, and only
    /// if, the caller commits.
    ///
    /// ```no_run
    /// # use orchestrator_lib::{Error, Node, Saga, tokio_postgres};
    /// # async fn place(
    /// #     node: &Node, saga: &Saga<u32>, client: &mut tokio_postgres::Client,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tx = client.transaction().await?;
    /// tx.execute("insert into orders (id) values (4711)", &[]).await?;
    /// let pending = node.start_in(&mut tx, saga, "order-4711", 4711).await?;
    /// tx.commit().await?;
    /// let started = pending.committed().await; // runs here, at once
    /// # drop(started); Ok(()) }
    /// ```
    ///
    /// The caller's connection must lead to the database of the saga store, with a role that may
    /// write there; its schema path, isolation and settings are its own. Everything is done in a
    /// savepoint, so no error spoils the caller's transaction: it can go on, or roll back.
    ///
    /// The key means what it means for [`start`](Self::start): the same key and input is the same
    /// transaction, also when it was started in this very database transaction. A key that another
    /// session is storing at the moment is waited for, 500 ms at most.
    ///
    /// # Errors
    /// As for [`start`](Self::start). [`Error::OtherDatabase`]: the connection leads elsewhere.
    /// [`Error::RetryTransaction`]: under `repeatable read` or `serializable` somebody else was
    /// faster; roll back and repeat the whole database transaction.
    pub async fn start_in<I>(
        &self,
        caller: &mut tokio_postgres::Transaction<'_>,
        saga: &Saga<I>,
        key: impl Into<String>,
        input: I,
    ) -> Result<Pending, Error>
    where
        I: Serialize + DeserializeOwned + Send + 'static,
    {
        let json = serde_json::to_string(&input).map_err(Error::Input)?;
        drop(input);
        let input = Payload::new(json).map_err(|e| Error::InputTooLarge(e.to_string()))?;
        let engine = &self.0.engine;
        let started = engine
            .start_in(caller, saga.definition(), key.into(), input)
            .await?;
        Ok(Pending {
            started,
            saga: saga.definition().plan.runs().saga.clone(),
            engine: Arc::clone(engine),
        })
    }
}

impl Pending {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> TransactionId {
        self.started.id
    }

    /// Whether this call stored it; else the key belonged to it before.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.started.is_new
    }

    /// Says that the caller's transaction is committed: this node takes it and runs it, if it has
    /// room and nobody was faster. Said too early or after a rollback, it does nothing.
    pub async fn committed(self) -> Started {
        self.engine.take_started(&self.saga, self.started.id).await;
        self.started
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({})", self.started.id)
    }
}
