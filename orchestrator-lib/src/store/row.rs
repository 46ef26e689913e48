//! Reads rows into the words of the core. A row that does not read is reported, never guessed.

use std::collections::BTreeMap;

use ring_core::{
    id::{Nonce, StepName, TransactionId},
    saga::{Attempt, Class, Direction, Entry, Payload, Position, Retry, Text, Wake},
    store::{Capability, Claimed, Fence, Taken},
};
use tokio_postgres::{Row, types::FromSql};
use uuid::Uuid;

use super::{
    error::{Error, Reason},
    wake, words,
};

const READ: &str = "read a stored row";

/// One column.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, Error> {
    row.try_get(column).map_err(|e| Error::permanent(READ, e))
}

/// A word that must be known.
pub(super) fn known<T>(word: Option<T>, problem: &'static str) -> Result<T, Error> {
    word.ok_or_else(|| Error::permanent(READ, Reason(problem)))
}

/// A counter kept as `bigint`. Nothing of ours writes a negative one: read as 0, a step that ran
/// long ago would run again.
pub(super) fn count(row: &Row, column: &str) -> Result<u64, Error> {
    let n: i64 = get(row, column)?;
    known(u64::try_from(n).ok(), "a number out of range")
}

/// 32 bits kept as `bigint`.
pub(super) fn small(row: &Row, column: &str) -> Result<u32, Error> {
    let n: i64 = get(row, column)?;
    known(u32::try_from(n).ok(), "a number out of range")
}

/// Deaths blamed on a transaction.
pub(super) fn deaths(row: &Row) -> Result<u32, Error> {
    let n: i32 = get(row, "deaths")?;
    known(u32::try_from(n).ok(), "a number out of range")
}

/// Direction and number of the open intent.
pub(super) fn position(row: &Row) -> Result<Position, Error> {
    let direction = Direction::parse(get(row, "direction")?);
    Ok(Position {
        direction: known(direction, "an unknown direction")?,
        seq: small(row, "seq")?,
    })
}

/// A claimed row, yet without input and log.
pub(super) fn claimed(row: &Row, capability: Capability, taken: Taken) -> Result<Claimed, Error> {
    let nonce: Option<Uuid> = get(row, "nonce")?;
    Ok(Claimed {
        id: TransactionId(get(row, "id")?),
        saga: capability.saga,
        version: capability.version,
        digest: capability.digest,
        fence: Fence {
            epoch: count(row, "epoch")?,
            nonce: Nonce(known(nonce, "a running row without nonce")?),
        },
        position: position(row)?,
        doubt: get(row, "doubt")?,
        attempts: small(row, "attempts")?,
        deaths: deaths(row)?,
        wake_seq: count(row, "wake_seq")?,
        created_at: words::wall(get(row, "created_at")?),
        expires_at: words::wall(get(row, "expires_at")?),
        opened_at: words::wall(get(row, "opened_at")?),
        progressed_at: words::wall(get(row, "progressed_at")?),
        retry: None,
        wakes: Vec::new(),
        claimed_at: words::wall(get(row, "clock")?),
        taken,
        input: Payload::null(),
        log: Vec::new(),
    })
}

/// One record of the step log.
fn entry(row: &Row) -> Result<Entry, Error> {
    let step = StepName::new(get::<&str>(row, "name")?).map_err(|e| Error::permanent(READ, e))?;
    Ok(Entry {
        position: position(row)?,
        step,
        attempt: attempt(row)?,
        attempts: small(row, "attempts")?,
        started_at: words::wall(get(row, "started_at")?),
        ended_at: words::wall(get(row, "ended_at")?),
    })
}

/// What was read for each of several transactions: one that can't be read is nobody else's matter.
pub(super) type ById<T> = BTreeMap<TransactionId, Result<T, Error>>;

/// The logs of several transactions.
pub(super) fn logs(rows: &[Row]) -> Result<ById<Vec<Entry>>, Error> {
    let mut logs = ById::new();
    for row in rows {
        let id = TransactionId(get(row, "transaction")?);
        let log = logs.entry(id).or_insert_with(|| Ok(Vec::new()));
        match (log.as_mut(), entry(row)) {
            (Ok(log), Ok(entry)) => log.push(entry),
            (Ok(_), Err(error)) => *log = Err(error),
            (Err(_), _) => {}
        }
    }
    Ok(logs)
}

/// The inputs of several transactions, and the policies that operators gave them.
pub(super) fn inputs(rows: &[Row]) -> Result<ById<(Payload, Option<Retry>)>, Error> {
    let mut inputs = ById::new();
    for row in rows {
        let id = TransactionId(get(row, "transaction")?);
        let both = || {
            let retry: Option<&str> = get(row, "retry")?;
            let retry = retry.map(wake::policy).transpose()?;
            Ok((payload(get(row, "input")?)?, retry))
        };
        inputs.insert(id, both());
    }
    Ok(inputs)
}

/// The wake-ups of several transactions, oldest first.
pub(super) fn wakes(rows: &[Row]) -> Result<ById<Vec<Wake>>, Error> {
    let mut wakes = ById::new();
    for row in rows {
        let id = TransactionId(get(row, "transaction")?);
        let all = wakes.entry(id).or_insert_with(|| Ok(Vec::new()));
        match (
            all.as_mut(),
            wake::read(get(row, "kind")?, get(row, "body")?),
        ) {
            (Ok(all), Ok(wake)) => all.push(wake),
            (Ok(_), Err(error)) => *all = Err(error),
            (Err(_), _) => {}
        }
    }
    Ok(wakes)
}

/// JSON text as a payload.
pub(super) fn payload(text: &str) -> Result<Payload, Error> {
    Payload::new(text).map_err(|e| Error::permanent(READ, e))
}

fn attempt(row: &Row) -> Result<Attempt, Error> {
    let error = || Ok::<_, Error>(Text::new(get::<Option<&str>>(row, "error")?.unwrap_or("")));
    let class = || {
        let word: Option<&str> = get(row, "class")?;
        known(word.and_then(Class::parse), "an unknown class of failure")
    };
    let class: &dyn Fn() -> Result<Class, Error> = &class;
    Ok(match get::<&str>(row, "outcome")? {
        "done" => {
            let result: Option<&str> = get(row, "result")?;
            Attempt::Done(result.map_or_else(|| Ok(Payload::null()), payload)?)
        }
        "refused" => Attempt::Refused {
            class: class()?,
            error: error()?,
            doubt: get(row, "doubt")?,
        },
        "skipped" => Attempt::Skipped,
        "paused" => Attempt::Paused {
            class: class()?,
            error: error()?,
            doubt: get(row, "doubt")?,
        },
        _ => return known(None, "an unknown outcome of a step"),
    })
}
