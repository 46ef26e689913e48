//! The one writer: transactions share commits. What arrives while a commit is under way goes into
//! the next one; more writers would only wait for each other's flush.
//!
//! Decides what goes into a batch, what is sent again and what each waiter hears. Writes and starts
//! share a commit; when it fails, each kind is sent by itself. Writes that fail because of one
//! row's data are halved until the row is found; a row or a key that somebody else holds is tried
//! again alone; after a lost answer the same batch is sent again, and what was committed answers
//! "already".

mod asked;
mod finish;

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use ring_core::{
    store::{Incarnation, Start, Started, Write, Written},
    wire::Role,
};
use ring_shell::telemetry::Meter;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Sleep, sleep},
};
use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;

use self::asked::{Asked, AskedStart, AskedWrite, Batch};
use super::{
    batch::{self, MAX_BYTES, MAX_ROWS},
    connect::Link,
    error::{Error, Reason},
    line::AsRow,
    lock, sql,
    start::{self, Place, Request},
};
use crate::telemetry::{COMMIT_ROWS, COMMITS, COMMITS_AMBIGUOUS};

/// Jobs that wait at most before callers wait too: eight full batches.
const QUEUE: usize = 8 * MAX_ROWS;

/// Pauses before a batch whose answer was lost is sent again. Their sum and the calls' own limits
/// outlast an owner's lease: whoever waits that long has lost its rows anyway.
const RESEND_AFTER: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_millis(1_000),
];

/// How long a batch waits for a row or a key that somebody else holds: longer than most commits,
/// and little enough that its neighbours are not held up. See [`super::connect`].
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(10);

/// Pause between tries of rows and keys that somebody else holds.
const HELD_PAUSE: Duration = Duration::from_millis(10);

/// Tries of a held row, [`HELD_PAUSE`] apart: about two seconds, a third of a lease.
const HELD_TRIES: u32 = 200;

/// Hands jobs to the task.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    closing: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
enum Job {
    Write(AskedWrite),
    Start(AskedStart),
}

struct Task {
    link: Link,
    place: Place,
    meter: Meter,
    unconfirmed: Arc<AtomicU64>,
    queue: VecDeque<Job>,
    /// Writes of rows that somebody else holds.
    held: Vec<AskedWrite>,
    /// Starts whose key somebody else is storing.
    contested: Vec<AskedStart>,
    /// Pauses until such a start is in progress for its caller.
    patience: u32,
    /// Until both are tried again.
    pause: Pin<Box<Sleep>>,
    /// For telling keys apart within a batch.
    hasher: RandomState,
}

type Rows = Result<Vec<Row>, Error>;

impl Writer {
    /// `lock_timeout`: how long a start waits for another session that stores the same key.
    pub(super) fn spawn(
        link: Link,
        place: Place,
        unconfirmed: Arc<AtomicU64>,
        lock_timeout: Duration,
    ) -> Self {
        let (jobs, arriving) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let task = Task {
            link,
            meter: Meter::new(&place.scope, Role::Orchestrator),
            place,
            unconfirmed,
            queue: VecDeque::new(),
            held: Vec::new(),
            contested: Vec::new(),
            patience: patience(lock_timeout),
            pause: Box::pin(sleep(Duration::ZERO)),
            hasher: RandomState::new(),
        };
        let task = tokio::spawn(task.run(arriving, closing.clone()));
        Self {
            jobs,
            closing,
            task: Mutex::new(Some(task)),
        }
    }

    pub(super) async fn write(&self, write: Write) -> Result<Written, Error> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked::new(write, answer);
        self.ask(Job::Write(asked), answered).await
    }

    pub(super) async fn start(
        &self,
        owner: Option<Incarnation>,
        definition: i32,
        start: Start,
    ) -> Result<Started, Error> {
        let (answer, answered) = oneshot::channel();
        let request = Request {
            owner,
            definition,
            start,
        };
        self.ask(Job::Start(Asked::new(request, answer)), answered)
            .await
    }

    async fn ask<A>(
        &self,
        job: Job,
        answered: oneshot::Receiver<Result<A, Error>>,
    ) -> Result<A, Error> {
        let closed = || Error::permanent("write", Reason("the store is closed"));
        self.jobs.send(job).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Takes nothing more, writes what is queued, and ends.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let task = lock(&self.task).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the store's writer did not end in order");
        }
    }
}

impl Task {
    async fn run(mut self, mut arriving: mpsc::Receiver<Job>, closing: CancellationToken) {
        loop {
            if self.queue.is_empty() {
                let idle = self.held.is_empty() && self.contested.is_empty();
                tokio::select! {
                    job = arriving.recv() => match job {
                        Some(job) => self.queue.push_back(job),
                        None if idle => return,
                        None => {}
                    },
                    () = closing.cancelled(), if !arriving.is_closed() => arriving.close(),
                    () = self.pause.as_mut(), if !idle => {}
                }
            }
            while self.queue.len() < QUEUE
                && let Ok(job) = arriving.try_recv()
            {
                self.queue.push_back(job);
            }
            let batch = self.take();
            let nothing_else = batch.is_empty();
            self.commit(batch).await;
            self.retry_held(nothing_else).await;
        }
    }

    /// The next batch: first come, first served; a transaction or a key once; within the limits.
    fn take(&mut self) -> Batch {
        let mut batch = Batch::default();
        let mut transactions: HashSet<_> = self.held.iter().map(|h| h.question.id).collect();
        // By hash: of two keys with the same one the later waits for the next batch, no more.
        let hash = |request: &Request| self.hasher.hash_one(request.key());
        let mut keys: HashSet<_> = self.contested.iter().map(|c| hash(&c.question)).collect();
        let mut bytes = 0;
        let mut left = VecDeque::new();
        while let Some(job) = self.queue.pop_front() {
            if batch.rows() >= MAX_ROWS || (bytes >= MAX_BYTES && !batch.is_empty()) {
                left.push_back(job);
                break;
            }
            match job {
                Job::Write(asked) if transactions.insert(asked.question.id) => {
                    bytes += batch::bytes(&asked.question);
                    batch.writes.push(asked);
                }
                Job::Start(asked)
                    if batch.suits(&asked.question) && keys.insert(hash(&asked.question)) =>
                {
                    bytes += asked.question.start.input.as_str().len();
                    batch.starts.push(asked);
                }
                later @ (Job::Write(_) | Job::Start(_)) => left.push_back(later),
            }
        }
        left.append(&mut self.queue);
        self.queue = left;
        batch.writes.sort_unstable_by_key(|asked| asked.question.id);
        let by_key = |a: &AskedStart, b: &AskedStart| a.question.key().cmp(&b.question.key());
        batch.starts.sort_unstable_by(by_key);
        batch
    }

    /// Sends a batch until its fate is known, and answers everybody.
    async fn commit(&mut self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let rows = batch.rows();
        self.meter.count(COMMITS);
        self.meter
            .add(COMMIT_ROWS, u64::try_from(rows).unwrap_or(u64::MAX));
        match self.send(&batch).await {
            Ok(answer) => self.finish(batch, answer).await,
            Err(error) => {
                tracing::warn!(%error, rows, "a batch's fate is unknown");
                batch.fail(&error);
            }
        }
    }

    /// One round trip, again after a lost answer. The statement is safe to repeat: its rows
    /// remember the number of the write and the key of the start.
    async fn send(&self, batch: &Batch) -> Result<Rows, Error> {
        let mut pauses = RESEND_AFTER.iter();
        loop {
            let before = self.unconfirmed.load(Ordering::SeqCst);
            match self.send_once(batch).await {
                Ok(_) if self.unconfirmed.load(Ordering::SeqCst) != before => {
                    return Err(Error::unreachable(
                        "write",
                        "no standby confirmed the commit",
                    ));
                }
                Err(error) if error.is_unreachable() => {
                    let Some(pause) = pauses.next() else {
                        return Err(error);
                    };
                    self.meter.count(COMMITS_AMBIGUOUS);
                    sleep(*pause).await;
                }
                answer => return answer,
            }
        }
    }

    async fn send_once(&self, batch: &Batch) -> Result<Rows, Error> {
        let writes = batch::lines(batch.writes.iter().map(|asked| &asked.question));
        let starts: Vec<_> = batch.starts.iter().map(|a| AsRow(&a.question)).collect();
        let asked = self.link.call("write", async |session| {
            let sent = if !starts.is_empty() {
                start::send(session, &self.place, &starts, &writes).await
            } else if batch.around {
                batch::send(session, sql::WRITE_AROUND, &writes).await
            } else {
                batch::send(session, sql::WRITE, &writes).await
            };
            harmless(sent)
        });
        asked.await
    }

    /// Tries what somebody else held, each alone, when the pause is over; waits for that only when
    /// there is nothing else to do.
    async fn retry_held(&mut self, nothing_else: bool) {
        if self.held.is_empty() && self.contested.is_empty() {
            return;
        }
        if nothing_else {
            self.pause.as_mut().await;
        } else if self.pause.as_mut().now_or_never().is_none() {
            return;
        }
        for mut asked in std::mem::take(&mut self.held) {
            if asked.pauses >= HELD_TRIES {
                let held = Error::conflict("write", "the row was held by another session");
                asked.reply(Err(held));
                continue;
            }
            asked.pauses += 1;
            self.commit(Batch::of_writes(vec![asked], true)).await;
        }
        for mut asked in std::mem::take(&mut self.contested) {
            asked.pauses += 1;
            self.commit(Batch::of_starts(vec![asked])).await;
        }
        self.pause = Box::pin(sleep(HELD_PAUSE));
    }
}

/// Pauses after which a start has waited as long as `lock_timeout` says.
fn patience(lock_timeout: Duration) -> u32 {
    let wait = (LOCK_WAIT + HELD_PAUSE).as_millis();
    u32::try_from(lock_timeout.as_millis() / wait).unwrap_or(u32::MAX)
}

/// An error that broke the connection concerns the whole round trip; another only its statement.
fn harmless(rows: Result<Vec<Row>, tokio_postgres::Error>) -> Result<Rows, tokio_postgres::Error> {
    match rows {
        Err(error) if Error::breaks(&error) => Err(error),
        Err(error) => Ok(Err(Error::classify("write", error).0)),
        Ok(rows) => Ok(Ok(rows)),
    }
}
