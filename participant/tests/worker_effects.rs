//! A worker's effects in Postgres: what comes twice, late, first, or fails on the way.
#![cfg(all(feature = "http", feature = "barrier"))]

mod shared;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use ring_participant::worker::{Call, Refusal, Started, Transactional, Worker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::{
    Checked, Own,
    served::{Served, ask},
};
use tokio_postgres::Transaction;

#[derive(Deserialize)]
struct Charge {
    cents: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    id: i64,
}

async fn charge(sql: &Transaction<'_>, _: Call, ask: Charge) -> Result<Receipt, Refusal> {
    let note = "insert into effect (what) values ('charge ' || $1::bigint) returning id";
    let id = sql.query_one(note, &[&ask.cents]).await?.try_get(0)?;
    match ask.cents {
        1_000.. => Err(Refusal::business("limit reached")),
        0 => Err(Refusal::unknown("who knows")),
        ..0 => {
            sql.execute("select 1/0", &[]).await?;
            Ok(Receipt { id })
        }
        _ => Ok(Receipt { id }),
    }
}

async fn refund(
    sql: &Transaction<'_>,
    _: Call,
    ask: Charge,
    receipt: Option<Receipt>,
) -> Result<(), Refusal> {
    let id = receipt.map_or(-1, |receipt| receipt.id);
    let note = "insert into effect (what) values ('refund ' || $1::bigint || ' of ' || $2::bigint)";
    sql.execute(note, &[&ask.cents, &id]).await?;
    Ok(())
}

async fn charging(own: &Own) -> Checked<Served> {
    let work = Transactional::new(&own.pool, charge).compensate(refund);
    Served::new(&Worker::builder().on("charge", work).build()?).await
}

#[tokio::test]
async fn eight_calls_at_once_have_one_effect_and_one_answer() -> Checked {
    let own = Own::new().await?;
    let served = Arc::new(charging(&own).await?);
    let calls = (0..8).map(|_| {
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let (status, body) = served
                .call("execute", "charge", &ask("charge", 5))
                .await
                .map_err(|e| e.to_string())?;
            Ok::<_, String>((status, body["result"]["id"].clone()))
        })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await??, (200, json!(1)));
    }
    assert_eq!(own.number("select count(*) from effect").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_compensation_gets_the_stored_answer_although_its_caller_knows_none() -> Checked {
    let own = Own::new().await?;
    let served = charging(&own).await?;
    served.call("execute", "charge", &ask("charge", 5)).await?;
    // With a slash at the end, too, as some coordinators write it.
    let (status, body) = served
        .call("compensate/", "charge", &ask("charge", 5))
        .await?;
    assert_eq!((status, &body["success"]), (200, &json!(true)));
    let refunds = "select count(*) from effect where what = 'refund 5 of 1'";
    assert_eq!(own.number(refunds).await?, 1);
    let (status, body) = served.call("execute", "charge", &ask("charge", 5)).await?;
    assert_eq!((status, &body["outcome"]), (409, &json!("compensated")));
    assert_eq!(body["success"], false);
    Ok(())
}

#[tokio::test]
async fn what_is_refused_or_fails_leaves_nothing_behind() -> Checked {
    let own = Own::new().await?;
    let served = charging(&own).await?;
    for (cents, status, outcome) in [
        (1_000, 422, "refused"),
        (0, 500, "unknown"),
        // By `?` inside the transaction: rolled back, so it is known not to be applied.
        (-1, 503, "transient"),
    ] {
        let (seen, body) = served
            .call("execute", "charge", &ask("charge", cents))
            .await?;
        assert_eq!(
            (seen, &body["outcome"]),
            (status, &json!(outcome)),
            "{body}"
        );
    }
    assert_eq!(own.number("select count(*) from effect").await?, 0);
    assert_eq!(own.number("select count(*) from barrier").await?, 0);
    let (status, _) = served.call("execute", "charge", &ask("charge", 5)).await?;
    assert_eq!(status, 200);
    Ok(())
}

#[tokio::test]
async fn a_compensation_without_its_action_is_done_without_the_function() -> Checked {
    let own = Own::new().await?;
    let served = charging(&own).await?;
    let (status, body) = served
        .call("compensate", "charge", &ask("charge", 5))
        .await?;
    assert_eq!((status, &body["result"]), (200, &Value::Null));
    assert_eq!(own.number("select count(*) from effect").await?, 0);
    Ok(())
}

#[tokio::test]
async fn started_work_that_runs_over_its_limit_is_undone_for_real() -> Checked {
    let own = Own::new().await?;
    let undone = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&undone);
    let work = Started::new(&own.pool, async |_: Call, _: Charge| {
        std::future::pending::<Result<Receipt, Refusal>>().await
    });
    let work = work
        .compensate(move |_: Call, _: Charge, receipt: Option<Receipt>| {
            seen.fetch_add(1, Ordering::Relaxed);
            std::future::ready(match receipt {
                None => Ok(()),
                Some(_) => Err(Refusal::persistent("a receipt of nothing")),
            })
        })
        .time_limit(Duration::from_millis(50));
    let served = Served::new(&Worker::builder().on("mail", work).build()?).await?;
    let (status, body) = served.call("execute", "mail", &ask("mail", 5)).await?;
    assert_eq!(
        (status, &body["outcome"]),
        (500, &json!("unknown")),
        "{body}"
    );
    let (status, body) = served.call("compensate", "mail", &ask("mail", 5)).await?;
    assert_eq!(status, 200, "{body}");
    assert_eq!(undone.load(Ordering::Relaxed), 1);
    Ok(())
}
