//! An operator's desk: what the tests of orders share.

use std::time::Duration;

use orchestrator_lib::store::{Answer, By, Operator, Refusal, Verb};
use ring_core::{
    id::{StepName, TransactionId},
    saga::{Ending, Payload, Text},
    store::{Claimed, To, Write, Written},
};

use super::{Bench, Node, next, park, scope, settle};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn desk(bench: &Bench) -> Operator {
    Operator::new(&bench.config, scope()).unwrap()
}

pub(crate) fn eva() -> By {
    By::new("eva", "the bank said so").unwrap()
}

pub(crate) fn restore() -> Verb {
    Verb::Restore {
        lifetime: HOUR,
        not_applied: false,
    }
}

pub(crate) fn step(name: &str) -> StepName {
    StepName::new(name).unwrap()
}

pub(crate) fn json(text: &str) -> Payload {
    Payload::new(text).unwrap()
}

pub(crate) async fn seen(desk: &Operator, id: TransactionId) -> u64 {
    desk.show(id).await.unwrap().unwrap().epoch
}

pub(crate) async fn ordered(desk: &Operator, verb: &Verb, id: TransactionId) -> Answer {
    let epoch = seen(desk, id).await;
    desk.order(verb, id, epoch, &eva()).await.unwrap()
}

pub(crate) async fn terminated(
    node: &Node,
    key: &str,
    why: &str,
) -> Result<TransactionId, Box<dyn std::error::Error>> {
    let bad = node.started("buy", key).await?;
    let ending = Write {
        to: To::Settle {
            ending: Ending::Terminated,
            why: Some(Text::new(why)),
        },
        entry: None,
        ..next(&bad, 1)
    };
    assert!(matches!(
        node.store.write(ending).await?,
        Written::Done { .. }
    ));
    Ok(bad.id)
}

pub(crate) async fn completed(
    node: &Node,
    key: &str,
) -> Result<TransactionId, Box<dyn std::error::Error>> {
    let good = node.started("buy", key).await?;
    node.store.write(settle(&good)).await?;
    Ok(good.id)
}

pub(crate) async fn paused(node: &Node, key: &str) -> Result<Claimed, Box<dyn std::error::Error>> {
    let claimed = node.started("buy", key).await?;
    node.store.write(park(&claimed, HOUR)).await?;
    Ok(claimed)
}

pub(crate) fn refused(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused(refusal) => refusal,
        done => panic!("not refused: {done:?}"),
    }
}
