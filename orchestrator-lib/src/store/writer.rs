//! The one writer: transactions share commits. What arrives while a commit is under way goes into
//! the next one; more writers would only wait for each other's flush.
//!
//! Decides what goes into a batch, what is sent again and what each waiter hears. A batch that
//! fails because of one row's data is halved until the row is found; a row that somebody else
//! holds is tried again alone; after a lost answer the same batch is sent again, and what was
//! committed answers "already".

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ring_core::{
    saga::Text,
    store::{Incarnation, Start, Started, Write, Written},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;

use super::{
    batch::{self, MAX_BYTES, MAX_ROWS},
    connect::Link,
    error::{Error, Reason},
    lock, sql,
    start::{self, Place, Request},
};

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

/// Tries of a start whose key another session stored or purged at that moment.
const START_TRIES: u32 = 3;

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
    unconfirmed: Arc<AtomicU64>,
    queue: VecDeque<Job>,
    /// Writes of rows that somebody else holds.
    held: Vec<Asked<Write, Written>>,
}

type Rows = Result<Vec<Row>, Error>;

impl Writer {
    pub(super) fn spawn(link: Link, place: Place, unconfirmed: Arc<AtomicU64>) -> Self {
        let (jobs, arriving) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let task = Task {
            link,
            place,
            unconfirmed,
            queue: VecDeque::new(),
            held: Vec::new(),
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
                        None => tokio::time::sleep(HELD_PAUSE).await,
                    },
                    () = closing.cancelled(), if !arriving.is_closed() => arriving.close(),
                    () = tokio::time::sleep(HELD_PAUSE), if !idle => {}
                }
            }
            while self.queue.len() < QUEUE
                && let Ok(job) = arriving.try_recv()
            {
                self.queue.push_back(job);
            }
            let batch = self.take();
            self.commit(batch).await;
            self.retry_held().await;
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
                other => left.push_back(other),
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
        if batch.writes.is_empty() && batch.starts.is_empty() {
            return;
        }
        match self.send(&batch).await {
            Ok((writes, starts)) => {
                self.finish_writes(batch.writes, writes).await;
                self.finish_starts(batch.starts, starts).await;
            }
            Err(error) => {
                tracing::warn!(%error, rows = batch.writes.len() + batch.starts.len(),
                    "a batch's fate is unknown");
                fail(batch.writes, &error);
                fail(batch.starts, &error);
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
                    metrics::counter!("ringsaga_commit_ambiguous_total").increment(1);
                    tokio::time::sleep(*pause).await;
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

    async fn finish_writes(&mut self, writes: Vec<Asked<Write, Written>>, rows: Rows) {
        let questions: Vec<&Write> = writes.iter().map(|a| &a.question).collect();
        let answers = rows.and_then(|rows| batch::read(&questions, &rows));
        match answers {
            Ok(mut answers) => {
                if let Err(error) = self.find_busy(&questions, &mut answers).await {
                    return fail(writes, &error);
                }
                for asked in writes {
                    let id = asked.question.id;
                    if answers.busy.contains(&id) {
                        self.held.push(asked);
                    } else {
                        let written = answers.written.remove(&id);
                        asked.reply(Ok(written.unwrap_or(Written::Lost)));
                    }
                }
            }
            Err(error) if error.refused_data() => self.halve_writes(writes, &error).await,
            Err(error) if error.is_conflict() => self.held.extend(writes),
            Err(error) => fail(writes, &error),
        }
    }

    /// Rows without an answer either don't exist or are held by somebody else.
    async fn find_busy(
        &self,
        questions: &[&Write],
        answers: &mut batch::Answers,
    ) -> Result<(), Error> {
        let silent = questions.iter().map(|w| w.id);
        let silent: Vec<_> = silent
            .filter(|id| !answers.written.contains_key(id))
            .map(|id| id.0)
            .collect();
        if silent.is_empty() {
            return Ok(());
        }
        let asked = self.link.call("look for held rows", async |s| {
            s.rows(sql::PRESENT, &[&silent]).await
        });
        for row in asked.await? {
            let id = super::row::get(&row, "id")?;
            answers.busy.insert(ring_core::id::TransactionId(id));
        }
        Ok(())
    }

    /// Finds the row whose data can't be stored without failing its neighbours.
    async fn halve_writes(&mut self, mut writes: Vec<Asked<Write, Written>>, error: &Error) {
        if writes.len() == 1 {
            for asked in writes {
                asked.reply(Ok(Written::Invalid(said(error))));
            }
            return;
        }
        let second = writes.split_off(writes.len() / 2);
        for writes in [writes, second] {
            let batch = Batch {
                writes,
                starts: Vec::new(),
            };
            Box::pin(self.commit(batch)).await;
        }
    }

    async fn finish_starts(&mut self, starts: Vec<Asked<Request, Started>>, rows: Rows) {
        match rows {
            Ok(rows) => self.answer_starts(starts, &rows).await,
            Err(error) if error.refused_data() || error.is_conflict() => {
                self.start_alone(starts, &error).await;
            }
            Err(error) => fail(starts, &error),
        }
    }

    async fn answer_starts(&mut self, starts: Vec<Asked<Request, Started>>, rows: &[Row]) {
        let stored: Result<BTreeSet<i64>, Error> =
            rows.iter().map(|row| super::row::get(row, "n")).collect();
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => return fail(starts, &error),
        };
        let mut known = Vec::new();
        for (n, asked) in (1_i64..).zip(starts) {
            if stored.contains(&n) {
                let answer = start::stored(&asked.question);
                asked.reply(Ok(answer));
            } else {
                known.push(asked);
            }
        }
        if known.is_empty() {
            return;
        }
        let mut answers = match self.find_starts(&known).await {
            Ok(answers) => answers,
            Err(error) => return fail(known, &error),
        };
        let mut again = Vec::new();
        for (asked, answer) in known.into_iter().zip(answers.drain(..)) {
            match answer {
                Some(answer) => asked.reply(Ok(answer)),
                None if asked.question.start.claim.is_some() => {
                    asked.reply(Ok(Started::NoLease));
                }
                None => again.push(asked),
            }
        }
        if !again.is_empty() {
            let gone = Error::conflict("start a transaction", "its key came and went");
            self.start_alone(again, &gone).await;
        }
    }

    /// What the keys of starts that stored nothing belong to; `None` where there is no such key.
    async fn find_starts(
        &self,
        starts: &[Asked<Request, Started>],
    ) -> Result<Vec<Option<Started>>, Error> {
        let requests: Vec<&Request> = starts.iter().map(|a| &a.question).collect();
        let asked = self.link.call("read a started transaction", async |s| {
            start::ask(s, &self.place, &requests).await
        });
        let mut answers: Vec<Option<Started>> = requests.iter().map(|_| None).collect();
        for row in &asked.await? {
            let (n, answer) = start::found(row, &requests)?;
            answers[n] = Some(answer);
        }
        Ok(answers)
    }

    /// One bad or contested start must not fail its neighbours: each is sent by itself.
    async fn start_alone(&mut self, starts: Vec<Asked<Request, Started>>, error: &Error) {
        let alone = starts.len() == 1;
        for mut asked in starts {
            if alone && error.refused_data() {
                asked.reply(Ok(Started::Invalid(said(error))));
            } else if alone && error.lock_limit() {
                asked.reply(Ok(Started::InProgress));
            } else if asked.tries >= START_TRIES {
                asked.reply(Err(error.clone()));
            } else {
                asked.tries += 1;
                let batch = Batch {
                    writes: Vec::new(),
                    starts: vec![asked],
                };
                Box::pin(self.commit(batch)).await;
            }
        }
    }

    /// Tries rows that somebody else held, each alone.
    async fn retry_held(&mut self) {
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
        if !self.held.is_empty() {
            tokio::time::sleep(HELD_PAUSE).await;
        }
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
    /// Claiming starts of one batch have one owner.
    fn suits(&self, request: &Request) -> bool {
        let owner = self.starts.iter().find_map(|asked| asked.question.owner);
        owner.is_none() || request.owner.is_none() || owner == request.owner
    }
}

fn fail<Q, A>(waiting: Vec<Asked<Q, A>>, error: &Error) {
    for asked in waiting {
        asked.reply(Err(error.clone()));
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

fn said(error: &Error) -> Text {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    Text::new(&cause.unwrap_or_else(|| error.to_string()))
}
