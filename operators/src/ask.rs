//! What is only read.

use axum::{
    Extension, Json,
    extract::{Path, Query, rejection::QueryRejection},
};
use orchestrator_lib::store::{Cursor, Filter, Operator, Order};
use ring_core::{
    id::{Service, TransactionId},
    saga::State,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    json::{self, Wanted},
    said::Said,
};

/// Rows of a page, unless the caller says; and at most.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 1_000;

type Asked = Result<Query<Wanted>, QueryRejection>;

/// Those that need a person.
pub(crate) async fn unfortunate(
    Extension(operator): Extension<Operator>,
    asked: Asked,
) -> Result<Json<Value>, Said> {
    let wanted = query(asked)?;
    let mut filter = wanted.filter().map_err(|e| Said::wrong(&e))?;
    let bad = [State::Terminated, State::Disabled, State::Quarantined];
    if filter.states.is_empty() {
        filter.states = bad.to_vec();
    }
    if let Some(other) = filter.states.iter().find(|state| !bad.contains(state)) {
        let text = format!("{} ones need nobody: see /transactions", other.as_str());
        return Err(Said::wrong(&text));
    }
    page(&operator, &wanted, &filter).await
}

/// Any.
pub(crate) async fn list(
    Extension(operator): Extension<Operator>,
    asked: Asked,
) -> Result<Json<Value>, Said> {
    let wanted = query(asked)?;
    let filter = wanted.filter().map_err(|e| Said::wrong(&e))?;
    page(&operator, &wanted, &filter).await
}

async fn page(operator: &Operator, wanted: &Wanted, filter: &Filter) -> Result<Json<Value>, Said> {
    let order = match wanted.order.as_deref() {
        None | Some("newest") => Order::Newest,
        Some("oldest") => Order::Oldest,
        Some(_) => return Err(Said::wrong("order is newest or oldest")),
    };
    let limit = wanted.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let page = operator
        .list(filter, order, Cursor(wanted.after), limit)
        .await?;
    let lines: Vec<Value> = page.lines.iter().map(json::summary).collect();
    let next = page.next.and_then(|cursor| cursor.0);
    Ok(Json(json!({"transactions": lines, "next": next})))
}

/// One in full.
pub(crate) async fn show(
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Said> {
    let id = transaction(&id)?;
    let shown = operator.show(id).await?;
    let shown = shown.ok_or_else(|| Said::missing(id))?;
    Ok(Json(json::whole(&shown)))
}

/// Why it stands still.
pub(crate) async fn why(
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Said> {
    let id = transaction(&id)?;
    let why = operator.why(id).await?;
    let why = why.ok_or_else(|| Said::missing(id))?;
    Ok(Json(json::why(&why)))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Of {
    service: Option<Service>,
}

/// How many.
pub(crate) async fn counts(
    Extension(operator): Extension<Operator>,
    of: Result<Query<Of>, QueryRejection>,
) -> Result<Json<Value>, Said> {
    let Query(of) = of.map_err(|e| Said::wrong(&e.body_text()))?;
    let counts = operator.counts(of.service.as_ref()).await?;
    let counts = counts.iter().map(|((state, direction), n)| {
        json!({"state": state.as_str(), "direction": direction.as_str(), "transactions": n})
    });
    Ok(Json(json!({"counts": counts.collect::<Vec<_>>()})))
}

fn query(asked: Asked) -> Result<Wanted, Said> {
    let Query(wanted) = asked.map_err(|e| Said::wrong(&e.body_text()))?;
    Ok(wanted)
}

/// The id in a path.
pub(crate) fn transaction(text: &str) -> Result<TransactionId, Said> {
    text.parse()
        .map_err(|_| Said::wrong(&format!("{text:?} is no transaction id")))
}
