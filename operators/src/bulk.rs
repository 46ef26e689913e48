//! Orders about all that a filter finds, bounded so that a request ends; and purging.

use std::{num::NonZeroU32, time::Duration};

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, rejection::BytesRejection},
};
use orchestrator_lib::store::{Answer, Bulk, Error, Operator, Purge, Summary};
use ring_core::id::Service;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    auth::Caller,
    json::{self, Wanted},
    order::{Details, meant, read, signed},
    said::Said,
};

/// Rows of one request, at most: with the least rate it takes a minute.
const MOST: u32 = 1_000;
/// So many a second, unless the caller says; and at least.
const RATE: u32 = 100;
const LEAST_RATE: u32 = 17;
/// Rows that a dry run shows in full.
const SHOWN: u32 = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Many {
    reason: String,
    #[serde(default)]
    filter: Wanted,
    #[serde(default)]
    dry_run: bool,
    most: Option<u32>,
    rate: Option<u32>,
    #[serde(default)]
    with: Details,
}

/// Gives an order about many, or shows which.
pub(crate) async fn bulk(
    Extension(operator): Extension<Operator>,
    Extension(caller): Extension<Caller>,
    Path(verb): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Said> {
    let many: Many = read(body)?;
    let by = signed(&caller, &many.reason)?;
    if ["skip", "close", "signal"].contains(&verb.as_str()) {
        let text = "evidence and signals are for one transaction: POST /transactions/{id}/…";
        return Err(Said::wrong(text));
    }
    let rate = many.rate.unwrap_or(RATE).max(LEAST_RATE);
    let bulk = Bulk {
        filter: many.filter.filter().map_err(|e| Said::wrong(&e))?,
        verb: meant(&verb, &many.with)?,
        most: many.most.unwrap_or(MOST).min(MOST),
        rate: NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN),
    };
    if many.dry_run {
        let preview = operator.preview(&bulk, SHOWN).await?;
        let first: Vec<Value> = preview.first.iter().map(json::summary).collect();
        return Ok(Json(
            json!({"count": preview.count, "more": preview.more, "first": first}),
        ));
    }
    let mut results = Vec::new();
    let told = |line: &Summary, answer: &Result<Answer, Error>| {
        results.push(match answer {
            Ok(Answer::Done { epoch }) => json!({"id": line.id, "result": "done", "epoch": epoch}),
            Ok(Answer::Refused(refusal)) => {
                json!({"id": line.id, "result": "refused", "why": refusal.to_string()})
            }
            Err(error) => json!({"id": line.id, "result": "failed", "why": error.to_string()}),
        });
    };
    let tally = operator.order_all(&bulk, &by, told).await?;
    Ok(Json(json!({
        "done": tally.done,
        "refused": tally.refused,
        "failed": tally.failed,
        "results": results,
    })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Old {
    reason: String,
    service: Option<Service>,
    retention_ms: u64,
    after: Option<Uuid>,
}

/// One batch of a purge; `next` is where the next one begins.
pub(crate) async fn purge(
    Extension(operator): Extension<Operator>,
    Extension(caller): Extension<Caller>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Said> {
    let old: Old = read(body)?;
    let by = signed(&caller, &old.reason)?;
    let purge = Purge {
        service: old.service,
        saga: None,
        retention: Duration::from_millis(old.retention_ms),
    };
    let purged = operator.purge(&purge, old.after, &by).await?;
    Ok(Json(
        json!({"purged": purged.transactions, "next": purged.next}),
    ))
}
