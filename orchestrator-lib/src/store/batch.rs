//! One batch of writes as the columns of one statement, and what its answer means. Refuses to know
//! connections and who waits for the answers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use ring_core::{
    id::TransactionId,
    saga::{Attempt, Ending, Payload, Text},
    store::{To, Write, Written},
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    connect::Session,
    error::Error,
    row::{self, get, known},
    sql, words,
};

/// Most writes that share a commit: beyond it a batch only grows latency.
pub(super) const MAX_ROWS: usize = 512;

/// Most bytes of values that share a commit, far below Postgres' limit of 1 GiB a message.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Longest name of a target that is waited for, in bytes: an index entry must hold it.
const MAX_TARGET_BYTES: usize = 256;

/// The columns of `write.sql`, in its order.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    epochs: Vec<i64>,
    nonces: Vec<Uuid>,
    numbers: Vec<i64>,
    from_directions: Vec<&'static str>,
    from_seqs: Vec<i64>,
    seen: Vec<Option<i64>>,
    states: Vec<&'static str>,
    directions: Vec<&'static str>,
    seqs: Vec<i64>,
    after: Vec<Option<i64>>,
    attempts: Vec<Option<i64>>,
    doubts: Vec<Option<bool>>,
    targets: Vec<Option<&'a str>>,
    handed_back: Vec<bool>,
    recorded: Vec<bool>,
    results: Vec<Option<&'a str>>,
    errors: Vec<Option<&'a str>>,
    entries: Entries<'a>,
}

/// The columns of the log's records; a step of `None` is no record.
#[derive(Default)]
struct Entries<'a> {
    steps: Vec<Option<&'a str>>,
    directions: Vec<Option<&'static str>>,
    seqs: Vec<Option<i64>>,
    outcomes: Vec<Option<&'static str>>,
    classes: Vec<Option<&'static str>>,
    doubts: Vec<Option<bool>>,
    results: Vec<Option<&'a str>>,
    errors: Vec<Option<&'a str>>,
    attempts: Vec<Option<i64>>,
    started: Vec<Option<DateTime<Utc>>>,
    ended: Vec<Option<DateTime<Utc>>>,
}

/// What a write makes of its row besides the intent.
struct Change<'a> {
    state: &'static str,
    /// Refused when the row was woken meanwhile.
    conditional: bool,
    after: Option<i64>,
    attempts: Option<i64>,
    doubt: Option<bool>,
    target: Option<&'a str>,
    handed_back: bool,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

/// What became of the writes of a batch, by transaction. Writes that are in neither map nor set
/// don't exist here: [`Written::Lost`].
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Decided.
    pub(super) written: BTreeMap<TransactionId, Written>,
    /// Held by somebody else right now: to be sent again alone.
    pub(super) busy: BTreeSet<TransactionId>,
}

/// Why a write can't be stored, before it is queued.
pub(super) fn refuse(write: &Write) -> Option<Text> {
    if write.number == 0 {
        return Some(Text::new("writes of a claim are counted from 1"));
    }
    if let To::Park {
        waiting_on: Some(target),
        ..
    } = &write.to
    {
        if target.len() > MAX_TARGET_BYTES {
            return Some(Text::new("the target's name is longer than 256 bytes"));
        }
        if target.contains('\0') {
            return Some(Text::new("the target's name holds a NUL character"));
        }
    }
    let result = match &write.to {
        To::Settle {
            ending: Ending::Completed(result),
            ..
        } => Some(result),
        To::Next(_) | To::Stay | To::Park { .. } | To::Settle { .. } | To::HandBack { .. } => None,
    };
    let recorded = match write.entry.as_ref().map(|e| &e.attempt) {
        Some(Attempt::Done(result)) => Some(result),
        Some(Attempt::Refused { .. } | Attempt::Skipped | Attempt::Paused { .. }) | None => None,
    };
    result.into_iter().chain(recorded).find_map(refuse_payload)
}

/// Postgres keeps no NUL in text. JSON writes it as an escape, so only broken text has one.
pub(super) fn refuse_payload(payload: &Payload) -> Option<Text> {
    let broken = payload.as_str().contains('\0');
    broken.then(|| Text::new("the value is no JSON text: it holds a NUL character"))
}

/// Bytes of values that a write carries.
pub(super) fn bytes(write: &Write) -> usize {
    let entry = match write.entry.as_ref().map(|e| &e.attempt) {
        Some(Attempt::Done(result)) => result.as_str().len(),
        Some(Attempt::Refused { error, .. } | Attempt::Paused { error, .. }) => {
            error.as_str().len()
        }
        Some(Attempt::Skipped) | None => 0,
    };
    let change = change(&write.to);
    entry + change.result.map_or(0, str::len) + change.error.map_or(0, str::len) + 256
}

/// Sends a batch; one write a transaction at most.
pub(super) async fn send(
    session: &Session,
    writes: &[&Write],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let mut sorted = writes.to_vec();
    sorted.sort_by_key(|w| w.id);
    let columns = Columns::of(&sorted);
    session.rows(sql::WRITE, &columns.values()).await
}

/// Reads a batch's answer; `sorted` order as sent.
pub(super) fn read(writes: &[&Write], rows: &[Row]) -> Result<Answers, Error> {
    let mut sorted: Vec<TransactionId> = writes.iter().map(|w| w.id).collect();
    sorted.sort_unstable();
    let mut answers = Answers::default();
    for row in rows {
        let n: i64 = get(row, "n")?;
        let place = usize::try_from(n - 1).ok().and_then(|i| sorted.get(i));
        let id = *known(place, "an answer to a write that was not sent")?;
        let wake_seq = row::count(row, "wake_seq")?;
        let written = match get::<&str>(row, "verdict")? {
            "done" => Written::Done { wake_seq },
            "already" => Written::Already { wake_seq },
            "woken" => Written::Woken { wake_seq },
            _ => Written::Lost,
        };
        answers.written.insert(id, written);
    }
    Ok(answers)
}

fn change(to: &To) -> Change<'_> {
    let base = Change {
        state: "running",
        conditional: false,
        after: None,
        attempts: None,
        doubt: None,
        target: None,
        handed_back: false,
        result: None,
        error: None,
    };
    match to {
        To::Next(_) => Change {
            attempts: Some(0),
            doubt: Some(false),
            ..base
        },
        To::Stay => base,
        To::Park {
            after,
            attempts,
            doubt,
            why,
            waiting_on,
        } => Change {
            state: "paused",
            conditional: true,
            after: Some(words::millis(*after)),
            attempts: Some(i64::from(*attempts)),
            doubt: Some(*doubt),
            target: waiting_on.as_deref(),
            error: Some(why.as_str()),
            ..base
        },
        To::Settle { ending, why } => Change {
            state: ending.state().as_str(),
            conditional: true,
            result: match ending {
                Ending::Completed(result) => Some(result.as_str()),
                Ending::Compensated | Ending::Terminated | Ending::Disabled => None,
            },
            error: why.as_ref().map(Text::as_str),
            ..base
        },
        To::HandBack { attempts, doubt } => Change {
            state: "paused",
            after: Some(0),
            attempts: Some(i64::from(*attempts)),
            doubt: Some(*doubt),
            handed_back: true,
            ..base
        },
    }
}

impl<'a> Columns<'a> {
    fn of(writes: &[&'a Write]) -> Self {
        let mut columns = Self::default();
        for write in writes {
            columns.push(write);
        }
        columns
    }

    fn push(&mut self, write: &'a Write) {
        let change = change(&write.to);
        let next = match &write.to {
            To::Next(position) => *position,
            To::Stay | To::Park { .. } | To::Settle { .. } | To::HandBack { .. } => write.from,
        };
        self.ids.push(write.id.0);
        self.epochs.push(words::big(write.fence.epoch));
        self.nonces.push(write.fence.nonce.0);
        self.numbers.push(i64::from(write.number));
        self.from_directions.push(write.from.direction.as_str());
        self.from_seqs.push(i64::from(write.from.seq));
        let seen = change.conditional.then(|| words::big(write.wake_seq));
        self.seen.push(seen);
        self.states.push(change.state);
        self.directions.push(next.direction.as_str());
        self.seqs.push(i64::from(next.seq));
        self.after.push(change.after);
        self.attempts.push(change.attempts);
        self.doubts.push(change.doubt);
        self.targets.push(change.target);
        self.handed_back.push(change.handed_back);
        // A step that moved on recorded an outcome, and so did a pause with its record.
        let moved = matches!(write.to, To::Next(_) | To::Settle { .. });
        self.recorded
            .push(!change.handed_back && (moved || write.entry.is_some()));
        self.results.push(change.result);
        self.errors.push(change.error);
        self.entries.push(write);
    }

    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &self.ids,
            &self.epochs,
            &self.nonces,
            &self.numbers,
            &self.from_directions,
            &self.from_seqs,
            &self.seen,
            &self.states,
            &self.directions,
            &self.seqs,
            &self.after,
            &self.attempts,
            &self.doubts,
            &self.targets,
            &self.handed_back,
            &self.recorded,
            &self.results,
            &self.errors,
        ];
        values.extend(self.entries.values());
        values
    }
}

impl<'a> Entries<'a> {
    fn push(&mut self, write: &'a Write) {
        let entry = write.entry.as_ref();
        let attempt = entry.map(|e| &e.attempt);
        self.steps.push(entry.map(|e| e.step.as_str()));
        self.directions
            .push(entry.map(|e| e.position.direction.as_str()));
        self.seqs.push(entry.map(|e| i64::from(e.position.seq)));
        self.outcomes.push(attempt.map(words::outcome));
        let (class, doubt, result, error) = match attempt {
            Some(Attempt::Done(result)) => (None, false, Some(result.as_str()), None),
            Some(
                Attempt::Refused {
                    class,
                    error,
                    doubt,
                }
                | Attempt::Paused {
                    class,
                    error,
                    doubt,
                },
            ) => (Some(class.as_str()), *doubt, None, Some(error.as_str())),
            Some(Attempt::Skipped) | None => (None, false, None, None),
        };
        self.classes.push(class);
        self.doubts.push(entry.map(|_| doubt));
        self.results.push(result);
        self.errors.push(error);
        self.attempts.push(entry.map(|e| i64::from(e.attempts)));
        self.started.push(entry.map(|e| words::time(e.started_at)));
        self.ended.push(entry.map(|e| words::time(e.ended_at)));
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 11] {
        [
            &self.steps,
            &self.directions,
            &self.seqs,
            &self.outcomes,
            &self.classes,
            &self.doubts,
            &self.results,
            &self.errors,
            &self.attempts,
            &self.started,
            &self.ended,
        ]
    }
}
