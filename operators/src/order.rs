//! Orders about one transaction: a verb in the path, the rest in the body.

use std::time::Duration;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, rejection::BytesRejection},
};
use orchestrator_lib::store::{Answer, By, Closed, Operator, Policy, Verb};
use ring_core::{
    id::{Cluster, Region, Scope, StepName},
    saga::Payload,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use uuid::Uuid;

use crate::{ask::transaction, auth::Caller, json::text, said::Said};

/// How long what is restored lives, unless the caller says: a day.
const LIFETIME_MS: u64 = 24 * 3_600_000;

/// A body. Which fields an order needs is its own matter; one that none knows is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Details {
    /// Why; kept in the audit log.
    reason: Option<String>,
    /// What the caller saw.
    epoch: Option<u64>,
    lifetime_ms: Option<u64>,
    not_applied: bool,
    step: Option<StepName>,
    result: Option<Box<RawValue>>,
    reference: Option<String>,
    attempts: Option<u32>,
    base_ms: Option<u64>,
    cap_ms: Option<u64>,
    reset: bool,
    id: Option<Uuid>,
    name: Option<StepName>,
    value: Option<Box<RawValue>>,
    #[serde(rename = "as")]
    end: Option<String>,
    to_region: Option<Region>,
    to_cluster: Option<Cluster>,
}

/// Gives an order.
pub(crate) async fn order(
    Extension(operator): Extension<Operator>,
    Extension(caller): Extension<Caller>,
    Path((id, verb)): Path<(String, String)>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Said> {
    let id = transaction(&id)?;
    let details: Details = read(body)?;
    let by = signed(&caller, details.reason.as_deref().unwrap_or(""))?;
    let verb = meant(&verb, &details)?;
    let seen = details.epoch.ok_or_else(|| {
        Said::wrong("say the epoch that you saw (GET /transactions/{id}), so that a double click does nothing twice")
    })?;
    match operator.order(&verb, id, seen, &by).await? {
        Answer::Done { epoch } => Ok(Json(json!({"id": id, "result": "done", "epoch": epoch}))),
        Answer::Refused(refusal) => Err(Said::refused(id, &refusal)),
    }
}

/// Who and why.
pub(crate) fn signed(caller: &Caller, reason: &str) -> Result<By, Said> {
    By::new(&caller.0, reason).map_err(|e| Said::wrong(&e.to_string()))
}

/// A body's JSON.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(
    body: Result<Bytes, BytesRejection>,
) -> Result<T, Said> {
    let body = body.map_err(|e| Said::body(e.status(), &e.body_text()))?;
    serde_json::from_slice(&body).map_err(|e| Said::wrong(&e.to_string()))
}

/// The order that a verb's word and its details mean.
pub(crate) fn meant(verb: &str, more: &Details) -> Result<Verb, Said> {
    let lifetime = Duration::from_millis(more.lifetime_ms.unwrap_or(LIFETIME_MS));
    let reference = || needed(more.reference.clone(), "reference");
    Ok(match verb {
        "retry" => Verb::Retry,
        "restore" => Verb::Restore {
            lifetime,
            not_applied: more.not_applied,
        },
        "retry-compensation" => Verb::RetryCompensation { lifetime },
        "skip" => Verb::Skip {
            step: needed(more.step.clone(), "step")?,
            result: payload(more.result.as_deref())?,
            reference: reference()?,
            lifetime,
        },
        "policy" if more.reset => Verb::Policy(None),
        "policy" => {
            let base = Duration::from_millis(needed(more.base_ms, "base_ms")?);
            let cap = Duration::from_millis(needed(more.cap_ms, "cap_ms")?);
            let policy = Policy::new(more.attempts, base, cap);
            let wrong = "attempts must be 1 or more, and 0 < base_ms <= cap_ms";
            Verb::Policy(Some(policy.map_err(|_| Said::wrong(wrong))?))
        }
        "signal" => Verb::Signal {
            id: needed(more.id, "id")?,
            name: needed(more.name.clone(), "name")?,
            value: payload(more.value.as_deref())?,
        },
        "cancel" => Verb::Cancel {
            id: more.id.unwrap_or_else(Uuid::now_v7),
        },
        "close" => Verb::Close {
            end: match more.end.as_deref() {
                Some("completed") => Closed::Completed(payload(more.result.as_deref())?),
                Some("compensated") => Closed::Compensated,
                Some(_) | None => return Err(Said::wrong("as is completed or compensated")),
            },
            reference: reference()?,
        },
        "rehome" => Verb::Rehome {
            to: Scope {
                region: needed(more.to_region.clone(), "to_region")?,
                cluster: needed(more.to_cluster.clone(), "to_cluster")?,
            },
        },
        other => return Err(Said::wrong(&format!("no order: {other:?}"))),
    })
}

fn needed<T>(value: Option<T>, name: &str) -> Result<T, Said> {
    value.ok_or_else(|| Said::wrong(&format!("this order needs `{name}`")))
}

fn payload(value: Option<&RawValue>) -> Result<Payload, Said> {
    Payload::new(text(value)).map_err(|e| Said::wrong(&e.to_string()))
}
