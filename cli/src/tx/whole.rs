//! How one transaction looks in full: facts, the timeline of its steps, what came from outside.

use orchestrator_lib::store::{Happened, Shown};
use ring_core::{
    id::TransactionId,
    region::RegionCodes,
    saga::{Attempt, Class, Direction, Entry},
    wire::Time,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::view::{Line, plain};
use crate::output;

/// A transaction in full.
#[derive(Serialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    line: Line,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    region_code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_in: Option<String>,
    deaths: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<TransactionId>,
    opened_at: Time,
    progressed_at: Time,
    log: Vec<Record>,
    happened: Vec<Event>,
}

/// Something that came from outside.
#[derive(Serialize)]
struct Event {
    at: Time,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Box<RawValue>>,
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

impl Whole {
    pub(super) fn new(shown: &Shown, regions: &RegionCodes) -> Self {
        let mut line = Line::new(&shown.summary);
        line.error.clone_from(&shown.error);
        Self {
            line,
            digest: shown.digest.clone(),
            region_code: shown.summary.id.region_code().map(|code| code.value()),
            started_in: regions.resolve(shown.summary.id).map(ToString::to_string),
            deaths: shown.deaths,
            key: shown.key.clone(),
            input: shown.input.clone().and_then(raw),
            result: shown.result.clone().and_then(raw),
            retry: shown.retry.clone().and_then(raw),
            parent: shown.parent.as_ref().map(|(id, _)| *id),
            opened_at: Time(shown.opened_at),
            progressed_at: Time(shown.progressed_at),
            log: shown.log.iter().map(Record::new).collect(),
            happened: shown.happened.iter().map(Event::new).collect(),
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
        fact("epoch, deaths", format!("{}, {}", line.epoch, self.deaths));
        if let Some(code) = self.region_code.filter(|code| *code != 0) {
            let name = self.started_in.as_deref().unwrap_or("not registered");
            fact("region's code", format!("{code} ({name})"));
        }
        if let Some(parent) = self.parent {
            fact("started by", parent.to_string());
        }
        for (name, value) in [("key", &self.key), ("said last", &line.error)] {
            if let Some(value) = value {
                fact(name, plain(value));
            }
        }
        for (name, value) in [
            ("input", &self.input),
            ("result", &self.result),
            ("own retry policy", &self.retry),
        ] {
            if let Some(value) = value {
                fact(name, value.get().to_owned());
            }
        }
        output::line(&facts.trim_fmt())?;
        self.print_log()?;
        self.print_happened()
    }

    fn print_happened(&self) -> anyhow::Result<()> {
        if self.happened.is_empty() {
            return Ok(());
        }
        let mut table = output::table(&["AT", "WHAT", "WHO", "WHY", "DETAIL"]);
        for event in &self.happened {
            let text = |value: &Option<String>| plain(value.as_deref().unwrap_or(""));
            let detail = event.detail.as_ref().map(|v| v.get().to_owned());
            table.add_row([
                event.at.0.rfc3339(),
                event.what.clone(),
                text(&event.actor),
                text(&event.reason),
                text(&detail),
            ]);
        }
        output::line(&table.trim_fmt())?;
        Ok(())
    }

    fn print_log(&self) -> anyhow::Result<()> {
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

impl Event {
    fn new(happened: &Happened) -> Self {
        match happened.clone() {
            Happened::Woken { at, kind, body } => Self {
                at: Time(at),
                what: kind,
                actor: None,
                reason: None,
                detail: raw(body),
            },
            Happened::Ordered {
                at,
                action,
                actor,
                reason,
                detail,
            } => Self {
                at: Time(at),
                what: action,
                actor: Some(actor),
                reason: Some(reason),
                detail: detail.and_then(raw),
            },
        }
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
            Attempt::Skipped if entry.position.direction == Direction::Forward => {
                ("never called", None, None)
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

fn raw(json: String) -> Option<Box<RawValue>> {
    RawValue::from_string(json).ok()
}
