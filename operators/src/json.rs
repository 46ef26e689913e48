//! How transactions and filters look as JSON. Tokens are decimal strings (numbers lose them),
//! times RFC 3339 in UTC.

use orchestrator_lib::store::{Filter, Happened, Shown, Summary, Why};
use ring_core::{
    id::{SagaName, Service, TransactionId},
    saga::{Attempt, Direction, Entry, State},
    time::Wall,
    wire::Time,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Which transactions, in a query and in a body; states separated by commas.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wanted {
    service: Option<Service>,
    state: Option<String>,
    saga: Option<SagaName>,
    version: Option<u32>,
    direction: Option<String>,
    created_from: Option<Time>,
    created_before: Option<Time>,
    due_before: Option<Time>,
    waiting_on: Option<String>,
    error: Option<String>,
    attempts: Option<u32>,
    key: Option<String>,
    /// `newest` (default) or `oldest`.
    pub(crate) order: Option<String>,
    /// Behind this one.
    pub(crate) after: Option<TransactionId>,
    /// At most so many.
    pub(crate) limit: Option<u32>,
}

impl Wanted {
    /// The filter, or what is wrong with it.
    pub(crate) fn filter(&self) -> Result<Filter, String> {
        let words = self.state.as_deref().unwrap_or("").split(',');
        let words = words.map(str::trim).filter(|word| !word.is_empty());
        let state = |word: &str| State::parse(word).ok_or_else(|| format!("no state: {word:?}"));
        let way =
            |word: &str| Direction::parse(word).ok_or_else(|| format!("no direction: {word:?}"));
        Ok(Filter {
            service: self.service.clone(),
            states: words.map(state).collect::<Result<_, _>>()?,
            saga: self.saga.clone(),
            version: self.version,
            direction: self.direction.as_deref().map(way).transpose()?,
            created_from: self.created_from.map(|t| t.0),
            created_before: self.created_before.map(|t| t.0),
            due_before: self.due_before.map(|t| t.0),
            waiting_on: self.waiting_on.clone(),
            error: self.error.clone(),
            attempts: self.attempts,
            key: self.key.clone(),
        })
    }
}

pub(crate) fn summary(s: &Summary) -> Value {
    json!({
        "id": s.id,
        "token": s.token,
        "service": s.service,
        "saga": s.saga,
        "version": s.version,
        "state": s.state.as_str(),
        "direction": s.position.direction.as_str(),
        "seq": s.position.seq,
        "step": s.step,
        "in_doubt": s.doubt,
        "attempts": s.attempts,
        "error": s.error,
        "waiting_on": s.waiting_on,
        "owner": s.instance,
        "epoch": s.epoch,
        "due_at": time(s.due_at),
        "created_at": Time(s.created_at),
        "expires_at": Time(s.expires_at),
        "settled_at": time(s.settled_at),
    })
}

pub(crate) fn whole(shown: &Shown) -> Value {
    let mut all = summary(&shown.summary);
    let parent = shown.parent.as_ref();
    let more = json!({
        "digest": shown.digest,
        "region_code": shown.summary.id.region_code().map(|code| code.value()),
        "key": shown.key,
        "input": raw(shown.input.as_deref()),
        "result": raw(shown.result.as_deref()),
        "error": shown.error,
        "retry": raw(shown.retry.as_deref()),
        "parent": parent.map(|(id, step)| json!({"id": id, "step": step})),
        "deaths": shown.deaths,
        "opened_at": Time(shown.opened_at),
        "progressed_at": Time(shown.progressed_at),
        "log": shown.log.iter().map(entry).collect::<Vec<_>>(),
        "happened": shown.happened.iter().map(happened).collect::<Vec<_>>(),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

pub(crate) fn why(why: &Why) -> Value {
    let reasons = why.reasons.iter();
    let reasons = reasons.map(|r| json!({"code": r.code, "says": r.says, "todo": r.todo}));
    json!({
        "id": why.id,
        "state": why.state.as_str(),
        "epoch": why.epoch,
        "at": Time(why.at),
        "reasons": reasons.collect::<Vec<_>>(),
    })
}

fn entry(entry: &Entry) -> Value {
    let (outcome, result, error) = match &entry.attempt {
        Attempt::Done(result) => ("done", raw(Some(result.as_str())), None),
        Attempt::Refused { error, .. } => ("refused", None, Some(error)),
        Attempt::Skipped => ("skipped", None, None),
        Attempt::Paused { error, .. } => ("paused", None, Some(error)),
    };
    json!({
        "step": entry.step,
        "direction": entry.position.direction.as_str(),
        "seq": entry.position.seq,
        "outcome": outcome,
        "attempts": entry.attempts,
        "started_at": Time(entry.started_at),
        "ended_at": Time(entry.ended_at),
        "result": result,
        "error": error.map(|text| text.as_str()),
    })
}

fn happened(happened: &Happened) -> Value {
    match happened {
        Happened::Woken { at, kind, body } => {
            json!({"at": Time(*at), "what": kind, "detail": raw(Some(body))})
        }
        Happened::Ordered {
            at,
            action,
            actor,
            reason,
            detail,
        } => json!({
            "at": Time(*at),
            "what": action,
            "actor": actor,
            "reason": reason,
            "detail": raw(detail.as_deref()),
        }),
    }
}

fn time(at: Option<Wall>) -> Option<Time> {
    at.map(Time)
}

/// JSON text as it is; what is none is left out.
fn raw(text: Option<&str>) -> Option<Value> {
    text.and_then(|text| serde_json::from_str(text).ok())
}

/// A value of a body as text.
pub(crate) fn text(value: Option<&RawValue>) -> &str {
    value.map_or("null", RawValue::get)
}
