//! A step's own database transaction: the user's SQL first, the fenced record last, one commit.
//!
//! Decides what an answer, a refusal and a lost answer mean for both together. A transaction that
//! nobody ends here (a dropped step, a passed limit) closes its connection, so that the server
//! rolls it back. Refuses to know what the user's SQL does.

use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ring_core::store::{Write, Written};
use tokio::time::sleep;
use tokio_postgres::{Client, SimpleQueryMessage, types::ToSql};

use super::{
    Store, batch,
    connect::Session,
    error::{Error, Reason},
    row::{self, get},
    sql, words,
};

const RUN: &str = "run a step in the store's transaction";
const COMMIT: &str = "commit a step with its record";

/// Tries of a row that somebody else holds, this far apart: two thirds of a second, within any
/// third of a lease that this is meant for.
const HELD_TRIES: u32 = 66;
const HELD_PAUSE: Duration = Duration::from_millis(10);

/// A fate that could not be read is read again after this, doubling …
const FIRST_READ: Duration = Duration::from_millis(50);
/// … up to this, as for wake-ups.
const LAST_READ: Duration = Duration::from_secs(2);

/// The store's database transaction as a step gets it: derefs to a connection that is inside of
/// it. Everything that is done over it is committed together with the step's record, or not at
/// all.
///
/// The step neither commits nor rolls back: it returns. On an error all of it is rolled back. It
/// must not keep it beyond its return, nor hand it to a task that outlives it. Settings of the
/// session end with the step.
///
/// A statement may take a third of the owner's lease (2 s by default), and so may a pause between
/// two statements; a lock is waited for half as long. So the locks of a process that froze are
/// gone before another one repeats the step. Long work belongs into a step of its own.
#[derive(Debug)]
pub struct StoreTransaction(Arc<Held>);

/// Its connection is closed when nobody took it back.
#[derive(Debug)]
struct Held(Option<Session>);

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Open {
    held: Arc<Held>,
    /// Set locally in it: gone when the step ended the transaction itself.
    mark: String,
}

/// How long a transaction may stand in others' way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    lock: Duration,
    statement: Duration,
    idle: Duration,
}

/// What became of a step's SQL together with its record.
#[derive(Debug)]
pub(crate) enum Fate {
    /// The store answered the record. All is committed when it is `Done`, and nothing else is.
    Written(Written),
    /// Nothing is committed, and why.
    Undone(Error),
    /// The step ended the transaction itself: nobody knows what became of its SQL.
    Torn,
}

impl Limits {
    /// A renewal is at most a third of the lease old when a process freezes; a statement and a
    /// pause after it fit into what is left.
    pub(crate) fn within(lease: Duration) -> Self {
        Self {
            lock: lease / 6,
            statement: lease / 3,
            idle: lease / 3,
        }
    }
}

impl Deref for StoreTransaction {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.client()
    }
}

impl Held {
    /// It is taken out by the only holder that is left, so whoever asks still has it.
    fn client(&self) -> &Client {
        self.0.as_ref().expect("held").client()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            session.discard();
        }
    }
}

impl Open {
    /// What the step gets.
    pub(crate) fn hand_out(&self) -> StoreTransaction {
        StoreTransaction(Arc::clone(&self.held))
    }

    /// The connection, when the step kept no part of it.
    fn session(self) -> Result<Session, Error> {
        let mut held = Arc::try_unwrap(self.held).map_err(|_| kept())?;
        held.0.take().ok_or_else(kept)
    }
}

fn kept() -> Error {
    let reason = "the step kept its StoreTransaction beyond its return: nothing was committed";
    Error::permanent(COMMIT, Reason(reason))
}

impl Store {
    /// Begins a step's transaction.
    pub(crate) async fn begin(&self, limits: Limits) -> Result<Open, Error> {
        let limit = self.inner.config.call_timeout;
        let opened = async {
            let session = self.inner.step.session(RUN).await?;
            let held = Held(Some(session));
            let mark = uuid::Uuid::new_v4().simple().to_string();
            let Limits {
                lock,
                statement,
                idle,
            } = limits;
            let begin = format!(
                "begin isolation level read committed; \
                 set local lock_timeout = {}; set local statement_timeout = {}; \
                 set local idle_in_transaction_session_timeout = {}; \
                 set local ringsaga.step = '{mark}'",
                lock.as_millis().max(1),
                statement.as_millis().max(1),
                idle.as_millis().max(1),
            );
            held.client().batch_execute(&begin).await.map_err(said)?;
            let held = Arc::new(held);
            Ok(Open { held, mark })
        };
        match tokio::time::timeout(limit, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(Error::unreachable(RUN, "no connection in time")),
        }
    }

    /// Undoes a step's SQL; a connection that does not answer is closed, which undoes it, too.
    pub(crate) async fn roll_back(&self, open: Open) {
        let Ok(session) = open.session() else {
            return;
        };
        undo(session).await;
    }

    /// Writes the step's record and commits it with the step's SQL. Answers only when it is known
    /// what became of both; dropped, the connection is closed.
    pub(crate) async fn commit(&self, open: Open, write: &Write, limits: Limits) -> Fate {
        if let Some(refused) = batch::refuse(write) {
            self.roll_back(open).await;
            return Fate::Written(Written::Invalid(refused));
        }
        let mark = open.mark.clone();
        let session = match open.session() {
            Ok(session) => session,
            Err(error) => return Fate::Undone(error),
        };
        // Closes the connection when this future is dropped.
        let mut held = Held(Some(session));
        let recorded = tokio::time::timeout(limits.statement, async {
            let session = held.0.as_ref().ok_or_else(kept)?;
            if !prepared(session, &mark).await.map_err(said)? {
                return Ok(None);
            }
            record(session, write).await.map(Some)
        });
        let written = match recorded.await {
            Ok(Ok(Some(written))) => written,
            Ok(Ok(None)) => return Fate::Torn,
            Ok(Err(error)) => return Fate::Undone(error),
            Err(_) => return Fate::Undone(Error::unreachable(COMMIT, "the time limit is over")),
        };
        let Written::Done { .. } = written else {
            if let Some(session) = held.0.take() {
                undo(session).await;
            }
            return Fate::Written(written);
        };
        let before = self.inner.unconfirmed.load(Ordering::SeqCst);
        let committed =
            tokio::time::timeout(limits.statement, held.client().batch_execute("commit"));
        match committed.await {
            Ok(Ok(())) if self.inner.unconfirmed.load(Ordering::SeqCst) == before => {
                // Back to the pool.
                drop(held.0.take());
                Fate::Written(written)
            }
            // The server said that it did not commit (a deferred constraint, a serialization
            // failure); an answer from a server that is gone says nothing.
            Ok(Err(error)) if !Error::breaks(&error) => Fate::Undone(said(error)),
            Ok(_) | Err(_) => {
                drop(held);
                self.fate(write).await
            }
        }
    }

    /// Whether a commit whose answer was lost took place, however long it takes to know.
    async fn fate(&self, write: &Write) -> Fate {
        let mut pause = FIRST_READ;
        loop {
            match self.read_fate(write).await {
                Ok(Some(written)) => return Fate::Written(written),
                Ok(None) => {
                    let lost = "the connection broke before the commit";
                    return Fate::Undone(Error::unreachable(COMMIT, lost));
                }
                Err(error) => {
                    tracing::debug!(id = %write.id, %error, "a step's fate is not known yet");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_READ);
        }
    }

    /// None: it did not take place, and never will.
    async fn read_fate(&self, write: &Write) -> Result<Option<Written>, Error> {
        let epoch = words::big(write.fence.epoch);
        let number = i64::from(write.number);
        let values: [&(dyn ToSql + Sync); 4] = [&write.id.0, &epoch, &write.fence.nonce.0, &number];
        let asked = self.inner.claim.call("read a step's fate", async |s| {
            s.rows(sql::FATE, &values).await
        });
        let rows = asked.await?;
        let Some(row) = rows.first() else {
            return Ok(Some(Written::Lost));
        };
        if !get::<Option<bool>>(row, "own")?.unwrap_or(false) {
            return Ok(Some(Written::Lost));
        }
        if !get::<bool>(row, "written")? {
            return Ok(None);
        }
        let wake_seq = row::count(row, "wake_seq")?;
        Ok(Some(Written::Done { wake_seq }))
    }
}

/// Pins the plan of the record, and says whether this is still the transaction that was begun.
async fn prepared(session: &Session, mark: &str) -> Result<bool, tokio_postgres::Error> {
    let pins = sql::PINS.replace("set ", "set local ");
    let asked = format!(
        "{pins}set local plan_cache_mode = force_generic_plan; \
         select pg_catalog.current_setting('ringsaga.step', true)"
    );
    let said = session.client().simple_query(&asked).await?;
    let found = said.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else {
            return None;
        };
        row.get(0)
    });
    Ok(found == Some(mark))
}

/// The record as the last statement; waits a moment for a row that somebody holds.
async fn record(session: &Session, write: &Write) -> Result<Written, Error> {
    let lines = batch::lines([write]);
    for _ in 0..HELD_TRIES {
        // Around: a lock limit would end the transaction that the step's own writes are in.
        let rows = batch::send(session, sql::WRITE_AROUND, &lines).await;
        if let Some(written) = batch::moved(&rows.map_err(said)?, 1)?.pop().flatten() {
            return Ok(written);
        }
        let rows = batch::explain(session, &lines).await.map_err(said)?;
        if let Some(batch::Fate::Written(written)) = batch::explained(&rows, 1)?.pop() {
            return Ok(written);
        }
        sleep(HELD_PAUSE).await;
    }
    Err(Error::conflict(
        COMMIT,
        "the row was held by another session",
    ))
}

async fn undo(session: Session) {
    let held = Held(Some(session));
    let done = tokio::time::timeout(LAST_READ, held.client().batch_execute("rollback"));
    if matches!(done.await, Ok(Ok(()))) {
        let mut held = held;
        drop(held.0.take());
    }
}

fn said(error: tokio_postgres::Error) -> Error {
    Error::classify(COMMIT, error).0
}
