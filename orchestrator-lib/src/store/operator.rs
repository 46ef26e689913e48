//! What people ask and order: lists, one transaction in full, counts, restoring. Every order names
//! what the operator saw, so that a double click does nothing twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use ring_core::{
    id::{SagaName, Scope, Service, TransactionId},
    saga::{Direction, Entry, Position, State},
    store::Counts,
    time::Wall,
    token::Token,
};
use tokio_postgres::Row;

use super::{
    config::Config,
    connect::{Link, Purpose},
    error::Error,
    row::{self, get, known},
    saga_name, sql, words,
};

/// The store as people see it: every service of a region and cluster.
#[derive(Clone, Debug)]
pub struct Operator {
    link: Link,
    scope: Scope,
}

/// Which transactions to list; the default is all of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this service's.
    pub service: Option<Service>,
    /// Only these states; empty is every state.
    pub states: Vec<State>,
    /// Only this saga's.
    pub saga: Option<SagaName>,
}

/// Where a page begins: after the last id of the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(pub Option<TransactionId>);

/// One line of a list.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its id.
    pub id: TransactionId,
    /// Its place on the ring.
    pub token: Token,
    /// Its service.
    pub service: String,
    /// The saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// Where it stands.
    pub state: State,
    /// The open intent.
    pub position: Position,
    /// Whether the open intent may have been applied.
    pub doubt: bool,
    /// Failed attempts of the open intent.
    pub attempts: u32,
    /// The target it waits for.
    pub waiting_on: Option<String>,
    /// The instance that runs it.
    pub instance: Option<String>,
    /// When it is due, when parked.
    pub due_at: Option<Wall>,
    /// When it was started.
    pub created_at: Wall,
    /// When its lifetime ends.
    pub expires_at: Wall,
    /// When it ended.
    pub settled_at: Option<Wall>,
}

/// One transaction in full.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What a list shows.
    pub summary: Summary,
    /// Digest of its definition.
    pub digest: String,
    /// The caller's idempotency key; none when it was purged.
    pub key: Option<String>,
    /// The input, JSON text.
    pub input: Option<String>,
    /// The saga's result, JSON text.
    pub result: Option<String>,
    /// What was said last.
    pub error: Option<String>,
    /// Deaths of owners blamed on it.
    pub deaths: u32,
    /// How often it was claimed; an order names it.
    pub epoch: u64,
    /// When it last moved.
    pub progressed_at: Wall,
    /// The step log, oldest first.
    pub log: Vec<Entry>,
}

/// Answer to a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Parked and due now, under this epoch.
    Done(u64),
    /// It is not disabled, terminated or quarantined, or it changed since it was looked at.
    Changed,
}

impl Operator {
    /// Prepares a connection; makes none yet.
    ///
    /// # Errors
    /// [`Error::Permanent`] when the address can't be read or TLS can't be set up.
    pub fn new(config: &Config, scope: Scope) -> Result<Self, Error> {
        let link = Link::new(config, Purpose::Admin, &Arc::new(AtomicU64::new(0)))?;
        Ok(Self { link, scope })
    }

    /// A page of transactions, newest first, and where the next one begins (none at the end).
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn list(
        &self,
        filter: &Filter,
        after: Cursor,
        limit: u32,
    ) -> Result<(Vec<Summary>, Option<Cursor>), Error> {
        let (region, cluster) = (self.scope.region.as_str(), self.scope.cluster.as_str());
        let service = filter.service.as_ref().map(Service::as_str);
        let states: Vec<&str> = filter.states.iter().copied().map(State::as_str).collect();
        let states = (!states.is_empty()).then_some(states);
        let saga = filter.saga.as_ref().map(SagaName::as_str);
        let before = after.0.map(|id| id.0);
        let most = i64::from(limit);
        let asked = self.link.call("list transactions", async |s| {
            s.rows(
                sql::LIST,
                &[&region, &cluster, &service, &states, &saga, &before, &most],
            )
            .await
        });
        let rows = asked.await?;
        let page: Vec<Summary> = rows.iter().map(summary).collect::<Result<_, _>>()?;
        let full = page.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let next = page.last().filter(|_| full).map(|s| Cursor(Some(s.id)));
        Ok((page, next))
    }

    /// One transaction with payloads and log; none when there is none here.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn show(&self, id: TransactionId) -> Result<Option<Shown>, Error> {
        let asked = self.link.call("show a transaction", async |s| {
            let shown = s.rows(sql::SHOW, &[&id.0]).await?;
            let log = s.rows(sql::LOG, &[&vec![id.0]]).await?;
            Ok((shown, log))
        });
        let (shown, log) = asked.await?;
        let Some(row) = shown.first() else {
            return Ok(None);
        };
        let here = get::<&str>(row, "region")? == self.scope.region.as_str()
            && get::<&str>(row, "cluster")? == self.scope.cluster.as_str();
        if !here {
            return Ok(None);
        }
        Ok(Some(Shown {
            summary: summary(row)?,
            digest: get(row, "digest")?,
            key: get(row, "key")?,
            input: get(row, "input")?,
            result: get(row, "result")?,
            error: get(row, "error")?,
            deaths: row::deaths(row)?,
            epoch: row::count(row, "epoch")?,
            progressed_at: words::wall(get(row, "progressed_at")?),
            log: row::logs(&log)?
                .remove(&id)
                .transpose()?
                .unwrap_or_default(),
        }))
    }

    /// Counts by state and direction; reads every row of the service (or of all).
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn counts(&self, service: Option<&Service>) -> Result<Counts, Error> {
        let (region, cluster) = (self.scope.region.as_str(), self.scope.cluster.as_str());
        let service = service.map(Service::as_str);
        let asked = self.link.call("count transactions", async |s| {
            s.rows(sql::COUNTS, &[&region, &cluster, &service]).await
        });
        let mut counts = BTreeMap::new();
        for row in &asked.await? {
            let state = State::parse(get(row, "state")?);
            let direction = Direction::parse(get(row, "direction")?);
            let key = (
                known(state, "an unknown state")?,
                known(direction, "an unknown direction")?,
            );
            counts.insert(key, row::count(row, "transactions")?);
        }
        Ok(counts)
    }

    /// Puts a disabled, terminated or quarantined transaction back where it stood, due at once,
    /// with at least `lifetime` from now; audited in the same database transaction.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn restore(
        &self,
        id: TransactionId,
        epoch: u64,
        lifetime: Duration,
        actor: &str,
        reason: &str,
    ) -> Result<Restored, Error> {
        let (epoch, lifetime) = (words::big(epoch), words::millis(lifetime));
        let asked = self.link.call("restore a transaction", async |s| {
            s.rows(sql::RESTORE, &[&id.0, &epoch, &lifetime, &actor, &reason])
                .await
        });
        Ok(match asked.await?.first() {
            Some(row) => Restored::Done(row::count(row, "epoch")?),
            None => Restored::Changed,
        })
    }
}

fn summary(row: &Row) -> Result<Summary, Error> {
    let time = |column| {
        let at: Option<chrono::DateTime<chrono::Utc>> = get(row, column)?;
        Ok::<_, Error>(at.map(words::wall))
    };
    let state = State::parse(get(row, "state")?);
    Ok(Summary {
        id: TransactionId(get(row, "id")?),
        token: Token(get(row, "token")?),
        service: get(row, "service")?,
        saga: known(saga_name(get(row, "saga")?), "a saga without a valid name")?,
        version: row::small(row, "version")?,
        state: known(state, "an unknown state")?,
        position: row::position(row)?,
        doubt: get(row, "doubt")?,
        attempts: row::small(row, "attempts")?,
        waiting_on: get(row, "waiting_on")?,
        instance: get(row, "instance")?,
        due_at: time("due_at")?,
        created_at: words::wall(get(row, "created_at")?),
        expires_at: words::wall(get(row, "expires_at")?),
        settled_at: time("settled_at")?,
    })
}
