//! Postgres: who wins. Performs the port of [`ring_core::store`] over `tokio-postgres`.
//!
//! Decides how a question is asked, what is asked again, and what an answer means: a lost race is
//! a value, a broken connection an [`Error`]. Refuses to know what a saga does and when to claim.
//!
//! Read [`Store`] first; then `sql/commit/moved.sql` and `sql/claim/due.sql`, where safety is decided;
//! then [`writer`], which shares commits. [`Operator`] is what people ask.

mod address;
mod alert;
mod batch;
mod child;
mod claim;
mod config;
mod connect;
mod error;
mod line;
mod migrate;
mod operator;
mod owner;
mod read;
mod row;
pub mod sql;
mod standing;
mod start;
mod start_in;
mod transactional;
mod wake;
mod words;
mod writer;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use ring_core::{
    id::{SagaName, Scope, Service},
    store::{Capability, Incarnation, Start, Started, Write, Written},
};

pub use alert::{Alert, AlertKind, Alerts, Delivery, Failed, Hook, Listed, Taken};
pub use child::ChildStarted;
pub use claim::{Claims, Pushed};
pub use config::Config;
pub use error::{Cause, Error};
pub use migrate::{Migrated, migrate};
pub use operator::{
    Answer, Audited, Bulk, By, Closed, Cursor, Filter, Happened, Keyed, Operator, Order, Page,
    Policy, Preview, Purge, Purged, Reason, Refusal, Shown, Summary, Tally, Unfit, Verb, Why,
};
pub use owner::{Buried, Process};
pub use read::{Outcome, RetryNodes, Woke};
pub use standing::Standing;
pub(crate) use standing::patiently;
pub use start_in::Joined;
pub use transactional::StoreTransaction;
pub(crate) use transactional::{Fate, Limits, Open};

use connect::{Link, Purpose};
use writer::Writer;

/// The saga store of one service: one writer, a reserved connection for the lease, a few for
/// claims. Cheap to clone; [`Store::close`] ends it.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    scope: Scope,
    service: Service,
    config: Config,
    lease: Link,
    claim: Link,
    writer: Writer,
    write: Link,
    /// Steps that run in a database transaction of the store.
    step: Link,
    /// Which store it is, once somebody asked.
    id: tokio::sync::OnceCell<uuid::Uuid>,
    definitions: Definitions,
    /// What this process can run, from its first lease to its end. Not by incarnation: an opening
    /// that is not answered in time is asked again, and the caller may hold either.
    tenure: Mutex<Option<Arc<[i32]>>>,
    /// Commits of which Postgres warned that no standby confirmed them.
    unconfirmed: Arc<AtomicU64>,
}

/// Definitions by number and back. They never change, so they are read once.
#[derive(Debug, Default)]
struct Definitions {
    numbers: Mutex<BTreeMap<Capability, i32>>,
    names: Mutex<BTreeMap<i32, Capability>>,
}

impl Store {
    /// Prepares everything and connects to nothing yet: see [`Store::ready`].
    ///
    /// Spawns the writer's task on the current tokio runtime; it ends with [`Store::close`] or
    /// when the last clone is dropped.
    ///
    /// # Errors
    /// [`Error::Permanent`] when the address can't be read or TLS can't be set up.
    pub fn new(config: Config, scope: Scope, service: Service) -> Result<Self, Error> {
        let unconfirmed = Arc::new(AtomicU64::new(0));
        let link = |purpose| Link::new(&config, purpose, &unconfirmed);
        let (lease, claim, write) = (
            link(Purpose::Lease)?,
            link(Purpose::Claim)?,
            link(Purpose::Write)?,
        );
        let step = link(Purpose::Step)?;
        let place = start::Place {
            scope: scope.clone(),
            service: service.clone(),
        };
        let writer = Writer::spawn(
            write.clone(),
            place,
            Arc::clone(&unconfirmed),
            config.lock_timeout,
        );
        let inner = Inner {
            scope,
            service,
            config,
            lease,
            claim,
            writer,
            write,
            step,
            id: tokio::sync::OnceCell::new(),
            definitions: Definitions::default(),
            tenure: Mutex::new(None),
            unconfirmed,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Writes a transaction's next state and its record; answers after the commit. Writes of many
    /// transactions share commits; those of one are done in the order of the calls.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when nobody knows whether it was committed, although it was sent
    /// again several times: don't call anything, let the lease decide. [`Error::Conflict`] when
    /// somebody held the row until the limit.
    pub async fn write(&self, write: Write) -> Result<Written, Error> {
        if let Some(refused) = batch::refuse(&write) {
            return Ok(Written::Invalid(refused));
        }
        self.inner.writer.write(write).await
    }

    /// Stores a new transaction, or finds the one that the key belongs to. `owner` is the own
    /// incarnation when the start is to be its own claim.
    ///
    /// # Errors
    /// As for [`Store::write`]; asking again with the same id and key is safe.
    pub async fn start(&self, owner: Option<Incarnation>, start: Start) -> Result<Started, Error> {
        if let Some(refused) = start::refuse(&start) {
            return Ok(Started::Invalid(refused));
        }
        if start.claim.is_some() && owner.is_none() {
            return Ok(Started::NoLease);
        }
        let capability = Capability {
            saga: start.saga.clone(),
            version: start.version,
            digest: start.digest.clone(),
        };
        let definition = self.define(&capability).await?;
        self.inner.writer.start(owner, definition, start).await
    }

    /// Writes what is queued, then closes the connections.
    pub async fn close(&self) {
        self.inner.writer.close().await;
        let all = [
            &self.inner.lease,
            &self.inner.claim,
            &self.inner.write,
            &self.inner.step,
        ];
        for link in all {
            link.close();
        }
    }

    /// Commits of which Postgres warned that no synchronous standby confirmed them, since start.
    #[must_use]
    pub fn unconfirmed_commits(&self) -> u64 {
        self.inner.unconfirmed.load(Ordering::SeqCst)
    }

    /// The number of a definition, made when it is new.
    async fn define(&self, capability: &Capability) -> Result<i32, Error> {
        if let Some(number) = lock(&self.inner.definitions.numbers).get(capability) {
            return Ok(*number);
        }
        let (saga, version) = (capability.saga.as_str(), i64::from(capability.version));
        // A definition added by somebody else at this moment shows at the second look.
        for _ in 0..3 {
            let asked = self.inner.claim.call("store a definition", async |s| {
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                    [&saga, &version, &capability.digest];
                let rows = s.rows(sql::DEFINE, &values).await?;
                rows.first().map(|row| row.try_get::<_, i32>(0)).transpose()
            });
            if let Some(number) = asked.await? {
                lock(&self.inner.definitions.numbers).insert(capability.clone(), number);
                lock(&self.inner.definitions.names).insert(number, capability.clone());
                return Ok(number);
            }
        }
        Err(Error::conflict(
            "store a definition",
            "it was neither found nor stored",
        ))
    }

    fn defined(&self, number: i32) -> Option<Capability> {
        lock(&self.inner.definitions.names).get(&number).cloned()
    }

    fn place(&self) -> (&str, &str, &str) {
        (
            self.inner.scope.region.as_str(),
            self.inner.scope.cluster.as_str(),
            self.inner.service.as_str(),
        )
    }
}

/// Nothing is ever left half-changed under these locks, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A saga's name as stored; a stored name was checked before it was written.
fn saga_name(text: &str) -> Option<SagaName> {
    SagaName::new(text).ok()
}
