//! One batch of writes as the parameter of one statement, and what its answer means. Refuses to know
//! connections and who waits for the answers.

use ring_core::{
    saga::{Attempt, Ending, Entry, Payload, Text},
    store::{To, Write, Written},
};
use tokio_postgres::Row;

use super::{
    connect::Session,
    error::Error,
    line::{AsRow, Failure, Fields, Line},
    row::{self, get, known},
    sql, words,
};

/// Most writes that share a commit: beyond it a batch only grows latency.
pub(super) const MAX_ROWS: usize = 512;

/// Most bytes of values that share a commit, far below Postgres' limit of 1 GiB a message.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Longest name of a target that is waited for, in bytes: an index entry must hold it.
const MAX_TARGET_BYTES: usize = 256;

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

/// What became of a write that was sent in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Decided.
    Written(Written),
    /// Its row is held by somebody else right now: to be sent again alone.
    Held,
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

/// Writes as the parameter of the statements that take them.
pub(super) fn lines<'a>(writes: impl IntoIterator<Item = &'a Write>) -> Vec<AsRow<&'a Write>> {
    writes.into_iter().map(AsRow).collect()
}

/// Sends writes in the order of their ids; one write a transaction at most.
pub(super) async fn send(
    session: &Session,
    sql: &str,
    writes: &[AsRow<&Write>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    session.rows(sql, &[&writes]).await
}

/// The writes of a batch of so many that moved their rows: their places, and the wake-ups now.
pub(super) fn moved(rows: &[Row], sent: usize) -> Result<Vec<Option<Written>>, Error> {
    let mut written = vec![None; sent];
    for row in rows {
        let Some(n) = get::<Option<i64>>(row, "written")? else {
            continue;
        };
        let place = usize::try_from(n - 1).ok();
        let place = place.and_then(|place| written.get_mut(place));
        let wake_seq = row::count(row, "wake_seq")?;
        *known(place, "an answer to a write that was not sent")? = Some(Written::Done { wake_seq });
    }
    Ok(written)
}

/// Why writes moved nothing; a row that does not exist is lost.
pub(super) async fn explain(
    session: &Session,
    writes: &[AsRow<&Write>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    session.rows(sql::SILENT, &[&writes]).await
}

/// The answer of [`explain`] to so many writes.
pub(super) fn explained(rows: &[Row], asked: usize) -> Result<Vec<Fate>, Error> {
    let mut fates = vec![Fate::Written(Written::Lost); asked];
    for row in rows {
        let n: i64 = get(row, "n")?;
        let place = usize::try_from(n - 1).ok();
        let place = place.and_then(|place| fates.get_mut(place));
        let wake_seq = row::count(row, "wake_seq")?;
        *known(place, "an answer to a write that was not asked about")? =
            match get::<&str>(row, "verdict")? {
                "already" => Fate::Written(Written::Already { wake_seq }),
                "woken" => Fate::Written(Written::Woken { wake_seq }),
                "held" => Fate::Held,
                _ => Fate::Written(Written::Lost),
            };
    }
    Ok(fates)
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

impl Line for &Write {
    const TYPE: &'static str = "write_1";

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), Failure> {
        let change = change(&self.to);
        let next = match &self.to {
            To::Next(position) => *position,
            To::Stay | To::Park { .. } | To::Settle { .. } | To::HandBack { .. } => self.from,
        };
        // A step that moved on recorded an outcome, and so did a pause with its record.
        let moved = matches!(self.to, To::Next(_) | To::Settle { .. });
        let recorded = !change.handed_back && (moved || self.entry.is_some());
        let seen = change.conditional.then(|| words::big(self.wake_seq));
        fields.put(&self.id.0)?;
        fields.put(&words::big(self.fence.epoch))?;
        fields.put(&self.fence.nonce.0)?;
        fields.put(&i64::from(self.number))?;
        fields.put(&self.from.direction.as_str())?;
        fields.put(&i64::from(self.from.seq))?;
        fields.put(&seen)?;
        fields.put(&change.state)?;
        fields.put(&next.direction.as_str())?;
        fields.put(&i64::from(next.seq))?;
        fields.put(&change.after)?;
        fields.put(&change.attempts)?;
        fields.put(&change.doubt)?;
        fields.put(&change.target)?;
        fields.put(&change.handed_back)?;
        fields.put(&recorded)?;
        fields.put(&change.result)?;
        fields.put(&change.error)?;
        put_entry(self.entry.as_ref(), fields)
    }
}

/// The record of the log; without one every field is null.
fn put_entry(entry: Option<&Entry>, fields: &mut Fields<'_>) -> Result<(), Failure> {
    let attempt = entry.map(|e| &e.attempt);
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
    fields.put(&entry.map(|e| e.step.as_str()))?;
    fields.put(&entry.map(|e| e.position.direction.as_str()))?;
    fields.put(&entry.map(|e| i64::from(e.position.seq)))?;
    fields.put(&attempt.map(words::outcome))?;
    fields.put(&class)?;
    fields.put(&entry.map(|_| doubt))?;
    fields.put(&result)?;
    fields.put(&error)?;
    fields.put(&entry.map(|e| i64::from(e.attempts)))?;
    fields.put(&entry.map(|e| words::time(e.started_at)))?;
    fields.put(&entry.map(|e| words::time(e.ended_at)))
}
