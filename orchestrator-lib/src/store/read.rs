//! What the engine asks besides claims and writes: outcomes for those who wait, wake-ups, and
//! whether anybody could continue what stands still.

use std::collections::BTreeSet;

use ring_core::{
    id::{SagaName, StepName, TargetName, TransactionId},
    saga::{Payload, State, Wake},
};
use uuid::Uuid;

use super::{
    Store,
    error::Error,
    row::{self, get, known},
    saga_name, sql, wake,
};

/// How a transaction stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which.
    pub id: TransactionId,
    /// Its saga.
    pub saga: SagaName,
    /// The saga's version.
    pub version: u32,
    /// Its state.
    pub state: State,
    /// The saga's result, when it completed.
    pub result: Option<Payload>,
    /// What was said last: of a pause or an end that is not good.
    pub error: Option<String>,
}

/// Whether a service's waiting transactions have somebody to continue them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryNodes {
    /// A living retry node exists.
    pub present: bool,
    /// Transactions that wait for one: parked, waiting for a target, or left by the dead. Counted
    /// up to 10,000 of a kind, and only when there is none.
    pub waiting: u64,
}

/// Answer to a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    /// Stored; the row's wake-ups now.
    Stored(u64),
    /// Stored by an earlier send of the same id.
    Already,
    /// There is no such transaction, or it is settled.
    NotOpen,
}

impl Store {
    /// How transactions stand; those that don't exist are left out.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn outcomes(&self, ids: &[TransactionId]) -> Result<Vec<Outcome>, Error> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let asked = self.inner.claim.call("read outcomes", async |s| {
            s.rows(sql::OUTCOME, &[&ids]).await
        });
        let rows = asked.await?;
        let outcomes = rows.iter().map(|row| {
            let result: Option<&str> = get(row, "result")?;
            let state = State::parse(get(row, "state")?);
            Ok(Outcome {
                id: TransactionId(get(row, "id")?),
                saga: known(saga_name(get(row, "saga")?), "a saga without a valid name")?,
                version: row::small(row, "version")?,
                state: known(state, "an unknown state")?,
                result: result.map(row::payload).transpose()?,
                error: get(row, "error")?,
            })
        });
        outcomes.collect()
    }

    /// Signals a transaction: the value is kept under its unique id for the step of this name,
    /// whether that is reached already or not, and the row is due now if it is parked. A repeat of
    /// the same id changes nothing; of several signals the first counts.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away; asking again with the same id is safe.
    pub async fn signal(
        &self,
        signal: Uuid,
        id: TransactionId,
        name: &StepName,
        value: &Payload,
    ) -> Result<Woke, Error> {
        let body = wake::signal(name, value)?;
        self.wake(signal, id, wake::SIGNAL, &body).await
    }

    /// Asks a transaction to undo itself at its next step's boundary. A repeat of the same id
    /// changes nothing.
    ///
    /// # Errors
    /// As for [`Store::signal`].
    pub async fn cancel(
        &self,
        cancel: Uuid,
        id: TransactionId,
        (actor, reason): (&str, &str),
    ) -> Result<Woke, Error> {
        let body = wake::cancel(actor, reason)?;
        self.wake(cancel, id, wake::CANCEL, &body).await
    }

    async fn wake(
        &self,
        wake: Uuid,
        id: TransactionId,
        kind: &str,
        body: &Payload,
    ) -> Result<Woke, Error> {
        let asked = self.inner.claim.call("wake a transaction", async |s| {
            let statement = s.prepare(sql::WAKE).await?;
            s.one(&statement, &[&wake, &kind, &body.as_str(), &id.0])
                .await
        });
        let row = asked.await?;
        let wake_seq: Option<i64> = get(&row, "wake_seq")?;
        Ok(match wake_seq {
            Some(_) => Woke::Stored(row::count(&row, "wake_seq")?),
            None if get(&row, "open")? => Woke::Already,
            None => Woke::NotOpen,
        })
    }

    /// All wake-ups of a transaction, oldest first, and the row's count of them.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn hear(&self, id: TransactionId) -> Result<(u64, Vec<Wake>), Error> {
        let asked = self
            .inner
            .claim
            .call("read wake-ups", async |s| s.rows(sql::HEAR, &[&id.0]).await);
        let rows = asked.await?;
        let first = known(rows.first(), "a transaction that is not there")?;
        let seen = row::count(first, "wake_seq")?;
        let mut wakes = Vec::with_capacity(rows.len());
        for row in &rows {
            let kind: Option<&str> = get(row, "kind")?;
            if let Some(kind) = kind {
                wakes.push(wake::read(kind, get(row, "body")?)?);
            }
        }
        Ok((seen, wakes))
    }

    /// For which of these targets transactions of the service wait.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn waited_for(
        &self,
        targets: &BTreeSet<TargetName>,
    ) -> Result<BTreeSet<TargetName>, Error> {
        let (region, cluster, service) = self.place();
        let names: Vec<&str> = targets.iter().map(TargetName::as_str).collect();
        let asked = self
            .inner
            .claim
            .call("look for what waits for targets", async |s| {
                s.rows(sql::WAITED_FOR, &[&region, &cluster, &service, &names])
                    .await
            });
        let rows = asked.await?;
        let waits = rows.iter().map(|row| {
            let name = TargetName::new(get::<&str>(row, "target")?).ok();
            known(name, "a target that was not asked for")
        });
        waits.collect()
    }

    /// Whether this service's waiting transactions have a living retry node.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn retry_nodes(&self) -> Result<RetryNodes, Error> {
        let (region, cluster, service) = self.place();
        let asked = self.inner.claim.call("look for retry nodes", async |s| {
            let statement = s.prepare(sql::RETRY_NODES).await?;
            s.one(&statement, &[&region, &cluster, &service]).await
        });
        let row = asked.await?;
        Ok(RetryNodes {
            present: get(&row, "retry_node")?,
            waiting: row::count(&row, "waiting")?,
        })
    }
}
