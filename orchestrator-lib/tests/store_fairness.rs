//! Who comes first: oldest, in turns between sagas, and never a saga that has its share.
#![allow(
    clippy::unwrap_used,
    reason = "names and values that are right by sight"
)]

mod store_support;

use std::{collections::BTreeSet, time::Duration};

use ring_core::{
    id::SagaName,
    store::{Claim, Claimed, Look},
    token::Range,
};
use store_support::*;

const DUE: Duration = Duration::ZERO;

fn of(rows: &[Claimed], saga: &str) -> usize {
    rows.iter().filter(|c| c.saga.as_str() == saga).count()
}

async fn claim_without(
    node: &Node,
    look: Look,
    saga: &str,
) -> Result<Vec<Claimed>, Box<dyn std::error::Error>> {
    let claim = Claim {
        look,
        nonces: (0..10).map(|_| nonce()).collect(),
        suspects: false,
        without: BTreeSet::from([SagaName::new(saga)?]),
    };
    Ok(node.store.claim(node.me, &claim).await?.rows)
}

#[tokio::test]
async fn a_sweep_takes_turns_between_sagas() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy", "sell"]).await?;
    for i in 0..40 {
        node.parked("buy", &format!("k{i}")).await?;
    }
    for i in 0..3 {
        node.parked("sell", &format!("k{i}")).await?;
    }
    let rows = node.claim(Look::Overdue { by: DUE }, 4).await?.rows;
    assert_eq!((of(&rows, "buy"), of(&rows, "sell")), (2, 2));
    let rows = node.claim(Look::Overdue { by: DUE }, 4).await?.rows;
    assert_eq!((of(&rows, "buy"), of(&rows, "sell")), (3, 1));
    Ok(())
}

#[tokio::test]
async fn a_saga_that_has_its_share_is_left_by_every_look() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy", "sell"]).await?;
    for i in 0..40 {
        node.parked("buy", &format!("k{i}")).await?;
    }
    for i in 0..3 {
        node.parked("sell", &format!("k{i}")).await?;
    }
    let due = Look::Due {
        ranges: vec![Range::RING],
    };
    let rows = claim_without(&node, due, "buy").await?;
    assert_eq!((of(&rows, "buy"), of(&rows, "sell")), (0, 3));
    let rows = claim_without(&node, Look::Overdue { by: DUE }, "sell").await?;
    assert_eq!((of(&rows, "buy"), of(&rows, "sell")), (10, 0));
    Ok(())
}

#[tokio::test]
async fn of_those_that_wait_for_a_target_the_oldest_are_taken_however_many_nodes_look() -> Checked {
    let bench = Bench::new().await?;
    let first = bench.node("a", &["buy"]).await?;
    let second = bench.node("b", &["buy"]).await?;
    for i in 0..60 {
        first.parked("buy", &format!("k{i}")).await?;
    }
    bench
        .run(
            "update ringsaga.transaction t set waiting_on = 'payment',
                due_at = now() + n * interval '1 s'
             from (select id, row_number() over (order by created_at, id) as n
                from ringsaga.transaction) numbered
             where numbered.id = t.id",
        )
        .await?;
    let oldest = "select array_agg(id order by due_at) from ringsaga.transaction";
    let order: Vec<uuid::Uuid> = bench.ask(oldest).await?;
    let waiting = || Look::Waiting {
        target: "payment".into(),
        ranges: vec![Range::RING],
    };
    let mut places = Vec::new();
    for _ in 0..6 {
        let (a, b) =
            futures_util::try_join!(first.claim(waiting(), 5), second.claim(waiting(), 5))?;
        for claimed in a.rows.iter().chain(&b.rows) {
            places.push(order.iter().position(|id| *id == claimed.id.0).unwrap());
        }
    }
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len());
    assert!(
        places.len() >= 50,
        "nobody stands in the other's way: {}",
        places.len()
    );
    let last = places.iter().max().unwrap();
    assert!(*last < places.len() + 10, "{places:?}");
    Ok(())
}
