//! The one writer: transactions share commits. What arrives while a commit is under way goes into
//! the next one; more writers would only wait for each other's flush.
//!
//! Decides what goes into a batch, what is sent again and what each waiter hears. A batch that
//! fails because of one row's data is halved until the row is found; a row that somebody else
//! holds is tried again alone; after a lost answer the same batch is sent again, and what was
//! committed answers "already".

mod finish;

use std::{
    collections::{BTreeSet, VecDeque},
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

use super::{
    batch::{self, MAX_BYTES, MAX_ROWS},
    connect::Link,
    error::{Error, Reason},
    lock,
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

/// Pause between tries of rows that somebody else holds.
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
    Write(Asked<Write, Written>),
    Start(Asked<Request, Started>),
}

/// A question with the one who waits for its answer.
#[derive(Debug)]
struct Asked<Q, A> {
    question: Q,
    answer: oneshot::Sender<Result<A, Error>>,
    tries: u32,
}

#[derive(Debug, Default)]
struct Batch {
    writes: Vec<Asked<Write, Written>>,
    starts: Vec<Asked<Request, Started>>,
}

struct Task {
    link: Link,
    place: Place,
    meter: Meter,
    unconfirmed: Arc<AtomicU64>,
    queue: VecDeque<Job>,
    /// Writes of rows that somebody else holds.
    held: Vec<Asked<Write, Written>>,
    /// Until they are tried again.
    pause: Pin<Box<Sleep>>,
}

type Rows = Result<Vec<Row>, Error>;

impl Writer {
    pub(super) fn spawn(link: Link, place: Place, unconfirmed: Arc<AtomicU64>) -> Self {
        let (jobs, arriving) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let task = Task {
            link,
            meter: Meter::new(&place.scope, Role::Orchestrator),
            place,
            unconfirmed,
            queue: VecDeque::new(),
            held: Vec::new(),
            pause: Box::pin(sleep(Duration::ZERO)),
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
                let idle = self.held.is_empty();
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
        let (mut transactions, mut keys) = (BTreeSet::new(), BTreeSet::new());
        transactions.extend(self.held.iter().map(|held| held.question.id));
        let mut bytes = 0;
        let mut left = VecDeque::new();
        while let Some(job) = self.queue.pop_front() {
            let rows = batch.writes.len() + batch.starts.len();
            if rows >= MAX_ROWS || (bytes >= MAX_BYTES && rows > 0) {
                left.push_back(job);
                break;
            }
            match job {
                Job::Write(asked) if transactions.insert(asked.question.id) => {
                    bytes += batch::bytes(&asked.question);
                    batch.writes.push(asked);
                }
                Job::Start(asked)
                    if batch.suits(&asked.question) && keys.insert(asked.question.key()) =>
                {
                    bytes += asked.question.start.input.as_str().len();
                    batch.starts.push(asked);
                }
                later @ (Job::Write(_) | Job::Start(_)) => left.push_back(later),
            }
        }
        left.append(&mut self.queue);
        self.queue = left;
        // Two batches of two processes never wait for each other's keys in a circle.
        batch.starts.sort_by_key(|asked| asked.question.key());
        batch
    }

    /// Sends a batch until its fate is known, and answers everybody.
    async fn commit(&mut self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let rows = batch.writes.len() + batch.starts.len();
        self.meter.count(COMMITS);
        self.meter
            .add(COMMIT_ROWS, u64::try_from(rows).unwrap_or(u64::MAX));
        match self.send(&batch).await {
            Ok((writes, starts)) => {
                self.finish_writes(batch.writes, writes).await;
                self.finish_starts(batch.starts, starts).await;
            }
            Err(error) => {
                tracing::warn!(%error, rows, "a batch's fate is unknown");
                finish::fail(batch.writes, &error);
                finish::fail(batch.starts, &error);
            }
        }
    }

    /// One round trip, again after a lost answer. Both statements are safe to repeat: their rows
    /// remember the number of the write and the key of the start.
    async fn send(&self, batch: &Batch) -> Result<(Rows, Rows), Error> {
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

    async fn send_once(&self, batch: &Batch) -> Result<(Rows, Rows), Error> {
        let writes: Vec<&Write> = batch.writes.iter().map(|a| &a.question).collect();
        let starts: Vec<&Request> = batch.starts.iter().map(|a| &a.question).collect();
        let asked = self.link.call("write", async |session| {
            // Both statements travel together; each commits by itself.
            let write = async {
                if writes.is_empty() {
                    return Ok(Vec::new());
                }
                batch::send(session, &writes).await
            };
            let start = async {
                if starts.is_empty() {
                    return Ok(Vec::new());
                }
                start::send(session, &self.place, &starts).await
            };
            let (write, start) = tokio::join!(write, start);
            Ok((harmless(write)?, harmless(start)?))
        });
        asked.await
    }

    /// Tries rows that somebody else held, each alone, when their pause is over; waits for that
    /// only when there is nothing else to do.
    async fn retry_held(&mut self, nothing_else: bool) {
        if self.held.is_empty() {
            return;
        }
        if nothing_else {
            self.pause.as_mut().await;
        } else if self.pause.as_mut().now_or_never().is_none() {
            return;
        }
        for mut asked in std::mem::take(&mut self.held) {
            if asked.tries >= HELD_TRIES {
                let held = Error::conflict("write", "the row was held by another session");
                asked.reply(Err(held));
                continue;
            }
            asked.tries += 1;
            let batch = Batch {
                writes: vec![asked],
                starts: Vec::new(),
            };
            self.commit(batch).await;
        }
        self.pause = Box::pin(sleep(HELD_PAUSE));
    }
}

impl<Q, A> Asked<Q, A> {
    fn new(question: Q, answer: oneshot::Sender<Result<A, Error>>) -> Self {
        Self {
            question,
            answer,
            tries: 0,
        }
    }

    /// Somebody who stopped waiting hears nothing.
    fn reply(self, answer: Result<A, Error>) {
        drop(self.answer.send(answer));
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.starts.is_empty()
    }

    /// Claiming starts of one batch have one owner.
    fn suits(&self, request: &Request) -> bool {
        let owner = self.starts.iter().find_map(|asked| asked.question.owner);
        owner.is_none() || request.owner.is_none() || owner == request.owner
    }
}

/// An error that broke the connection concerns the whole round trip; another only its statement.
fn harmless(rows: Result<Vec<Row>, tokio_postgres::Error>) -> Result<Rows, tokio_postgres::Error> {
    match rows {
        Err(error) if Error::breaks(&error) => Err(error),
        Err(error) => Ok(Err(Error::classify("write", error).0)),
        Ok(rows) => Ok(Ok(rows)),
    }
}
