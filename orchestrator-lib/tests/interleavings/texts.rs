//! A NUL character in every text that a caller can set: said at once, nothing half stored, and the
//! store goes on. Postgres keeps no NUL; an engine that asks for ever would hang on a done step.

use std::time::Duration;

use orchestrator_lib::store::{By, Error, Filter, Operator, Order, Verb, Woke};
use ring_core::{
    id::{SagaName, StepName},
    saga::{Attempt, Class, Ending, Payload, Text, Wake},
    store::{Claimed, Look, Start, Started, To, Write, Written},
    token::Range,
};
use uuid::Uuid;

use crate::store_support::{self as support, Bench, Checked, Node};

const NUL: &str = "a\0b";

#[tokio::test]
async fn a_start_with_a_nul_in_any_text_is_refused_and_stores_nothing() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let with = |change: fn(&mut Start)| {
        let mut start = support::start("buy", "k", None);
        change(&mut start);
        node.store.start(None, start)
    };
    let key = with(|s| NUL.clone_into(&mut s.key)).await?;
    assert!(matches!(key, Started::Invalid(_)), "{key:?}");
    let input = with(|s| s.input = Payload::new(format!("\"{NUL}\"")).unwrap()).await?;
    assert!(matches!(input, Started::Invalid(_)), "{input:?}");
    refused(with(|s| NUL.clone_into(&mut s.digest)).await);
    assert!(SagaName::new(NUL).is_err());
    nothing_stored(&bench).await?;
    assert_eq!(with(|_| ()).await?, Started::New(None), "the store goes on");
    Ok(())
}

#[tokio::test]
async fn a_write_with_a_nul_in_any_text_is_refused_or_cleaned_and_never_hangs() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let value = Payload::new(format!("\"{NUL}\""))?;
    let claimed = node.started("buy", "refused").await?;
    let refusals: [fn(&Claimed, Payload) -> Write; 3] = [
        |c, value| {
            let mut write = support::next(c, 1);
            write.entry.as_mut().unwrap().attempt = Attempt::Done(value);
            write
        },
        |c, value| Write {
            to: To::Settle {
                ending: Ending::Completed(value),
                why: None,
            },
            ..support::settle(c)
        },
        |c, _| {
            let mut write = support::park(c, Duration::ZERO);
            if let To::Park { waiting_on, .. } = &mut write.to {
                *waiting_on = Some(NUL.to_owned());
            }
            write
        },
    ];
    for refusal in refusals {
        let answer = node.store.write(refusal(&claimed, value.clone())).await?;
        assert!(matches!(answer, Written::Invalid(_)), "{answer:?}");
    }
    assert!(StepName::new(NUL).is_err());
    // What people read is cleaned instead: a step's error must not stop its saga.
    let mut write = support::park(&claimed, Duration::ZERO);
    if let (To::Park { why, .. }, Some(entry)) = (&mut write.to, &mut write.entry) {
        *why = Text::new(NUL);
        entry.attempt = Attempt::Paused {
            class: Class::Unknown,
            error: Text::new(NUL),
            doubt: true,
        };
    }
    let answer = node.store.write(write).await?;
    assert_eq!(answer, Written::Done { wake_seq: 0 });
    let kept: String = bench.ask("select error from ringsaga.step").await?;
    assert_eq!(kept, "ab");
    Ok(())
}

#[tokio::test]
async fn a_wake_up_a_claim_and_an_order_with_a_nul_are_refused_for_good() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let name = StepName::new("approve")?;
    let value = Payload::new(format!("\"{NUL}\""))?;
    let signal = node.store.signal(Uuid::new_v4(), claimed.id, &name, &value);
    refused(signal.await);
    let look = Look::Waiting {
        target: NUL.to_owned(),
        ranges: vec![Range::RING],
    };
    assert!(node.claim(look, 1).await.is_err());
    let desk = Operator::new(&bench.config, support::scope())?;
    let skip = Verb::Skip {
        step: name,
        result: Payload::null(),
        reference: NUL.to_owned(),
        lifetime: Duration::from_secs(3_600),
    };
    let by = By::new(NUL, NUL)?;
    assert_eq!((by.actor(), by.reason()), ("ab", "ab"), "cleaned");
    refused(desk.order(&skip, claimed.id, 1, &by).await);
    assert!(desk.counts(None).await.is_ok(), "the desk goes on");
    assert!(
        desk.list(&Filter::default(), Order::Newest, Default::default(), 10)
            .await
            .is_ok()
    );
    unchanged(&bench, &node, &claimed).await
}

/// What a person typed is no reason to stop: JSON keeps it as an escape, and who reads it cleans.
#[tokio::test]
async fn a_cancel_with_a_nul_is_told_without_it() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let cancel = node.store.cancel(Uuid::new_v4(), claimed.id, (NUL, NUL));
    assert_eq!(cancel.await?, Woke::Stored(1));
    let (seen, wakes) = node.store.hear(claimed.id).await?;
    let why = Text::new("cancelled by ab: ab");
    assert_eq!((seen, wakes), (1, vec![Wake::Cancel { why }]));
    Ok(())
}

async fn unchanged(bench: &Bench, node: &Node, claimed: &Claimed) -> Checked {
    let traces: i64 = bench
        .ask("select (select count(*) from ringsaga.wake) + (select count(*) from ringsaga.audit)")
        .await?;
    assert_eq!(traces, 0);
    let written = node.store.write(support::next(claimed, 1)).await?;
    assert_eq!(written, Written::Done { wake_seq: 0 }, "the store goes on");
    Ok(())
}

/// Not "ask again later": that would never end.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.unwrap_err();
    assert!(!error.is_unreachable() && !error.is_conflict(), "{error:?}");
}

async fn nothing_stored(bench: &Bench) -> Checked {
    for table in ["transaction", "idempotency", "payload"] {
        let rows: i64 = bench
            .ask(&format!("select count(*) from ringsaga.{table}"))
            .await?;
        assert_eq!(rows, 0, "{table}");
    }
    Ok(())
}
