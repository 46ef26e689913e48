//! Wake-ups as they are stored: JSON of three shapes. Decides the shapes, nothing else.

use std::time::Duration;

use ring_core::{
    id::StepName,
    saga::{Payload, Retry, Text, Wake},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::{Error, Reason};

const READ: &str = "read a stored wake-up";

#[derive(Serialize, Deserialize)]
struct Signal<'a> {
    name: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct Cancel {
    actor: String,
    reason: String,
}

#[derive(Serialize, Deserialize)]
struct Child<'a> {
    step: String,
    state: String,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Policy {
    attempts: Option<u32>,
    base_ms: u64,
    cap_ms: u64,
}

/// The kind of a signal.
pub(super) const SIGNAL: &str = "signal";
/// The kind of a cancel.
pub(super) const CANCEL: &str = "cancel";
/// The kind of a child's end.
pub(super) const CHILD: &str = "child";

/// A stored wake-up.
pub(super) fn read(kind: &str, body: &str) -> Result<Wake, Error> {
    match kind {
        SIGNAL => {
            let signal: Signal<'_> = parse(body)?;
            Ok(Wake::Signal {
                name: step(&signal.name)?,
                body: payload(signal.value.get())?,
            })
        }
        CANCEL => {
            let Cancel { actor, reason } = parse(body)?;
            let why = Text::new(&format!("cancelled by {actor}: {reason}"));
            Ok(Wake::Cancel { why })
        }
        CHILD => {
            let child: Child<'_> = parse(body)?;
            let end = match child.state.as_str() {
                "completed" => Ok(payload(child.result.map_or("null", RawValue::get))?),
                _ => Err(Text::new(child.error.as_deref().unwrap_or("undone"))),
            };
            let step = step(&child.step)?;
            Ok(Wake::Child { step, end })
        }
        _ => Err(Error::permanent(READ, Reason("an unknown kind"))),
    }
}

/// A signal's body.
pub(super) fn signal(name: &StepName, value: &Payload) -> Result<Payload, Error> {
    let value = serde_json::from_str(value.as_str()).map_err(|e| Error::permanent(READ, e))?;
    let name = name.to_string();
    write(&Signal { name, value })
}

/// A cancel's body.
pub(super) fn cancel(actor: &str, reason: &str) -> Result<Payload, Error> {
    let (actor, reason) = (actor.to_owned(), reason.to_owned());
    write(&Cancel { actor, reason })
}

/// An operator's retry policy.
pub(super) fn policy(json: &str) -> Result<Retry, Error> {
    let policy: Policy = parse(json)?;
    Ok(Retry {
        attempts: policy.attempts,
        base: Duration::from_millis(policy.base_ms),
        cap: Duration::from_millis(policy.cap_ms),
        ..Retry::ACTION
    })
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|e| Error::permanent(READ, e))
}

fn write(body: &impl Serialize) -> Result<Payload, Error> {
    let json = serde_json::to_string(body).map_err(|e| Error::permanent(READ, e))?;
    payload(&json)
}

fn step(name: &str) -> Result<StepName, Error> {
    StepName::new(name).map_err(|e| Error::permanent(READ, e))
}

fn payload(json: &str) -> Result<Payload, Error> {
    Payload::new(json).map_err(|e| Error::permanent(READ, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let name = StepName::new("approve").unwrap();
        let body = Payload::new(r#"{"by":"ann"}"#).unwrap();
        let stored = signal(&name, &body).unwrap();
        let read_back = read(SIGNAL, stored.as_str()).unwrap();
        assert_eq!(read_back, Wake::Signal { name, body });
        let stored = cancel("ann", "typo").unwrap();
        let why = Text::new("cancelled by ann: typo");
        assert_eq!(read(CANCEL, stored.as_str()).unwrap(), Wake::Cancel { why });
        assert!(read("other", "{}").is_err());
    }

    #[test]
    fn a_childs_end_tells_its_result_or_why_it_was_undone() {
        let step = StepName::new("ship").unwrap();
        let done = r#"{"step":"ship","state":"completed","result":7,"error":null}"#;
        let end = Ok(Payload::new("7").unwrap());
        let wake = Wake::Child {
            step: step.clone(),
            end,
        };
        assert_eq!(read(CHILD, done).unwrap(), wake);
        let undone = r#"{"step":"ship","state":"compensated","result":null,"error":"no"}"#;
        let end = Err(Text::new("no"));
        assert_eq!(read(CHILD, undone).unwrap(), Wake::Child { step, end });
    }
}
