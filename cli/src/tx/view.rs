//! How transactions look: a line in a list, and one in full.

use orchestrator_lib::store::{Shown, Summary};
use ring_core::{
    id::TransactionId,
    saga::{Attempt, Class, Entry, State},
    store::Counts,
    token::Token,
    wire::Time,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{args::StateArg, output};

/// A transaction in a list.
#[derive(Serialize)]
pub(super) struct Line {
    id: TransactionId,
    token: Token,
    service: String,
    saga: String,
    version: u32,
    state: &'static str,
    direction: &'static str,
    step: u32,
    in_doubt: bool,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Time>,
    created_at: Time,
    expires_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<Time>,
}

/// A transaction in full.
#[derive(Serialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    line: Line,
    digest: String,
    epoch: u64,
    deaths: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    progressed_at: Time,
    log: Vec<Record>,
}

/// One record of the step log.
#[derive(Serialize)]
struct Record {
    step: String,
    direction: &'static str,
    seq: u32,
    outcome: &'static str,
    attempts: u32,
    started_at: Time,
    ended_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Counted {
    state: &'static str,
    direction: &'static str,
    transactions: u64,
}

impl Line {
    pub(super) fn new(s: &Summary) -> Self {
        Self {
            id: s.id,
            token: s.token,
            service: s.service.clone(),
            saga: s.saga.to_string(),
            version: s.version,
            state: s.state.as_str(),
            direction: s.position.direction.as_str(),
            step: s.position.seq,
            in_doubt: s.doubt,
            attempts: s.attempts,
            waiting_on: s.waiting_on.clone(),
            owner: s.instance.clone(),
            due_at: s.due_at.map(Time),
            created_at: Time(s.created_at),
            expires_at: Time(s.expires_at),
            settled_at: s.settled_at.map(Time),
        }
    }

    fn when(&self) -> String {
        let due = self.due_at.map(|t| format!("due {}", t.0.rfc3339()));
        let done = self.settled_at.map(|t| format!("ended {}", t.0.rfc3339()));
        let owned = self.owner.as_ref().map(|owner| format!("run by {owner}"));
        due.or(done).or(owned).unwrap_or_default()
    }

    fn standing(&self) -> String {
        let doubt = if self.in_doubt { ", in doubt" } else { "" };
        match self.attempts {
            0 => format!("{} {}{doubt}", self.direction, self.step),
            n => format!("{} {}, {n} failed{doubt}", self.direction, self.step),
        }
    }
}

impl Whole {
    pub(super) fn new(shown: &Shown) -> Self {
        Self {
            line: Line::new(&shown.summary),
            digest: shown.digest.clone(),
            epoch: shown.epoch,
            deaths: shown.deaths,
            key: shown.key.clone(),
            input: shown.input.clone().and_then(raw),
            result: shown.result.clone().and_then(raw),
            error: shown.error.clone(),
            progressed_at: Time(shown.progressed_at),
            log: shown.log.iter().map(Record::new).collect(),
        }
    }

    pub(super) fn print(&self) -> anyhow::Result<()> {
        let line = &self.line;
        let mut facts = output::table(&["TRANSACTION", &line.id.to_string()]);
        let mut fact = |name: &str, value: String| {
            facts.add_row([name.to_owned(), value]);
        };
        fact(
            "saga",
            format!("{} v{} ({})", line.saga, line.version, self.digest),
        );
        fact(
            "service, token",
            format!("{}, {}", line.service, line.token),
        );
        fact("state", format!("{}, {}", line.state, line.standing()));
        fact("when", line.when());
        fact(
            "created, lives until",
            times(line.created_at, line.expires_at),
        );
        fact("claims, deaths", format!("{}, {}", self.epoch, self.deaths));
        for (name, value) in [("key", &self.key), ("said last", &self.error)] {
            if let Some(value) = value {
                fact(name, plain(value));
            }
        }
        for (name, value) in [("input", &self.input), ("result", &self.result)] {
            if let Some(value) = value {
                fact(name, value.get().to_owned());
            }
        }
        output::line(&facts.trim_fmt())?;
        let mut log = output::table(&["STEP", "", "OUTCOME", "CALLS", "ENDED", "RESULT OR ERROR"]);
        for r in &self.log {
            let said = r
                .result
                .as_ref()
                .map(|v| v.get().to_owned())
                .or_else(|| r.error.clone());
            log.add_row([
                r.step.clone(),
                r.direction.to_owned(),
                r.outcome.to_owned(),
                r.attempts.to_string(),
                r.ended_at.0.rfc3339(),
                plain(&said.unwrap_or_default()),
            ]);
        }
        output::line(&log.trim_fmt())?;
        Ok(())
    }
}

impl Record {
    fn new(entry: &Entry) -> Self {
        let (outcome, result, error) = match &entry.attempt {
            Attempt::Done(payload) => ("done", raw(payload.as_str().to_owned()), None),
            Attempt::Refused {
                class,
                error,
                doubt,
            } => {
                let outcome = if *doubt {
                    "refused, in doubt"
                } else {
                    refused(*class)
                };
                (outcome, None, Some(error.to_string()))
            }
            Attempt::Skipped => ("nothing to undo", None, None),
            Attempt::Paused { error, .. } => ("paused", None, Some(error.to_string())),
        };
        Self {
            step: entry.step.to_string(),
            direction: entry.position.direction.as_str(),
            seq: entry.position.seq,
            outcome,
            attempts: entry.attempts,
            started_at: Time(entry.started_at),
            ended_at: Time(entry.ended_at),
            result,
            error,
        }
    }
}

/// The list's table.
pub(super) fn table(lines: &[Line]) -> String {
    let mut table = output::table(&["ID", "SERVICE", "SAGA", "STATE", "STANDS AT", "WHEN"]);
    for line in lines {
        table.add_row([
            line.id.to_string(),
            line.service.clone(),
            format!("{} v{}", line.saga, line.version),
            line.state.to_owned(),
            line.standing(),
            line.when(),
        ]);
    }
    table.trim_fmt()
}

/// Prints counts by state and direction.
pub(super) fn counted(counts: &Counts, json: bool) -> anyhow::Result<()> {
    let rows = counts
        .iter()
        .map(|((state, direction), transactions)| Counted {
            state: state.as_str(),
            direction: direction.as_str(),
            transactions: *transactions,
        });
    if json {
        return rows.into_iter().try_for_each(|row| output::json(&row));
    }
    let mut table = output::table(&["STATE", "DIRECTION", "TRANSACTIONS"]);
    for row in rows {
        table.add_row([row.state, row.direction, &row.transactions.to_string()]);
    }
    output::line(&table.trim_fmt())?;
    Ok(())
}

/// The store's word for the command line's.
pub(super) fn state(arg: StateArg) -> State {
    match arg {
        StateArg::Running => State::Running,
        StateArg::Paused => State::Paused,
        StateArg::Completed => State::Completed,
        StateArg::Compensated => State::Compensated,
        StateArg::Terminated => State::Terminated,
        StateArg::Disabled => State::Disabled,
        StateArg::Quarantined => State::Quarantined,
    }
}

fn refused(class: Class) -> &'static str {
    match class {
        Class::Business => "refused",
        Class::Persistent => "refused for good",
        Class::Transient => "gave up",
        Class::Unknown => "gave up, in doubt",
    }
}

fn times(from: Time, until: Time) -> String {
    format!("{}, {}", from.0.rfc3339(), until.0.rfc3339())
}

/// Text of others, without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn raw(json: String) -> Option<Box<RawValue>> {
    RawValue::from_string(json).ok()
}
