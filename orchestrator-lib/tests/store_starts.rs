//! Starts: one transaction a key, whoever asks and however often; and what people see of them.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::time::Duration;

use orchestrator_lib::store::{
    Answer, By, Cursor, Filter, Operator, Order, Refusal, Verb, migrate,
};
use ring_core::{
    saga::{Direction, Ending, Payload, State, Text},
    store::{Started, To, Write, Written},
};
use store_support::*;

#[tokio::test]
async fn the_same_key_finds_its_transaction_and_refuses_another_input() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy", "sell"]).await?;
    let first = start("buy", "k", Some(nonce()));
    let id = first.id;
    let begun = node.store.start(Some(node.me), first.clone()).await?;
    assert!(matches!(begun, Started::New(Some(_))));
    let sent_again = node.store.start(Some(node.me), first).await?;
    assert_eq!(sent_again, begun, "its answer was lost, perhaps");
    let same = node.store.start(None, start("buy", "k", None)).await?;
    assert_eq!(same, Started::Same(id));
    let mut other = start("buy", "k", None);
    other.input = Payload::new(r#"{"item":"pen"}"#)?;
    let different = node.store.start(None, other).await?;
    assert_eq!(different, Started::Different(id));
    let elsewhere = node.store.start(None, start("sell", "k", None)).await?;
    assert_eq!(
        elsewhere,
        Started::New(None),
        "a key counts within its saga"
    );
    Ok(())
}

#[tokio::test]
async fn a_burst_of_starts_with_few_keys_stores_each_key_once() -> Checked {
    let bench = Bench::new().await?;
    let (a, b) = (
        bench.node("a", &["buy"]).await?,
        bench.node("b", &["buy"]).await?,
    );
    let asked = (0..400).map(|i| {
        let node = if i % 2 == 0 { &a } else { &b };
        let start = start("buy", &format!("k{}", i % 50), Some(nonce()));
        node.store.start(Some(node.me), start)
    });
    let mut new = 0;
    for answer in futures_util::future::join_all(asked).await {
        match answer? {
            Started::New(_) => new += 1,
            Started::Same(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    assert_eq!(new, 50);
    let rows: i64 = bench
        .ask("select count(*) from ringsaga.transaction")
        .await?;
    assert_eq!(rows, 50);
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_being_stored_elsewhere_is_in_progress_and_holds_up_nobody_else() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let mut session = bench.session().await?;
    let other = session.transaction().await?;
    other
        .execute(
            "insert into ringsaga.idempotency values \
             ('eu', 'main', 'orders', 'buy', 'k', gen_random_uuid(), 'x')",
            &[],
        )
        .await?;
    let (stuck, free) = futures_util::try_join!(
        node.store.start(None, start("buy", "k", None)),
        node.store.start(None, start("buy", "free", None)),
    )?;
    assert_eq!((stuck, free), (Started::InProgress, Started::New(None)));
    other.rollback().await?;
    let now = node.store.start(None, start("buy", "k", None)).await?;
    assert_eq!(now, Started::New(None));
    Ok(())
}

#[tokio::test]
async fn a_start_and_a_write_that_come_together_share_a_commit() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let (written, started) = futures_util::try_join!(
        node.store.write(next(&claimed, 1)),
        node.store.start(None, start("buy", "other", None)),
    )?;
    assert_eq!(written, Written::Done { wake_seq: 0 });
    assert_eq!(started, Started::New(None));
    let commits: i64 = bench
        .ask("select count(distinct xmin::text) from ringsaga.transaction")
        .await?;
    assert_eq!(commits, 1);
    Ok(())
}

#[tokio::test]
async fn a_start_that_only_the_server_refuses_never_fails_its_neighbours() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    bench
        .run("alter table ringsaga.idempotency add constraint bad check (key <> 'bad')")
        .await?;
    let (written, bad, good) = futures_util::try_join!(
        node.store.write(next(&claimed, 1)),
        node.store.start(None, start("buy", "bad", None)),
        node.store.start(None, start("buy", "good", None)),
    )?;
    assert_eq!(written, Written::Done { wake_seq: 0 });
    assert!(matches!(bad, Started::Invalid(_)), "{bad:?}");
    assert_eq!(good, Started::New(None));
    Ok(())
}

/// The stuck start is asked about again and again; writes go on meanwhile.
#[tokio::test]
async fn writes_go_on_while_a_key_is_being_stored_elsewhere() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    let mut session = bench.session().await?;
    let other = session.transaction().await?;
    other
        .execute(
            "insert into ringsaga.idempotency values \
             ('eu', 'main', 'orders', 'buy', 'stuck', gen_random_uuid(), 'x')",
            &[],
        )
        .await?;
    let mut stuck = std::pin::pin!(node.store.start(None, start("buy", "stuck", None)));
    let writes = async {
        for number in 1..=5 {
            let written = node.store.write(next(&claimed, number)).await?;
            assert_eq!(written, Written::Done { wake_seq: 0 }, "{number}");
        }
        Checked::Ok(())
    };
    tokio::select! {
        biased;
        answer = &mut stuck => return Err(format!("answered before the writes: {answer:?}").into()),
        done = writes => done?,
    }
    assert_eq!(stuck.await?, Started::InProgress);
    Ok(())
}

#[tokio::test]
async fn what_can_not_be_stored_is_said_at_once() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let nul = start("buy", "a\0b", None);
    let mut value = start("buy", "k", None);
    value.input = Payload::new("\"\0\"")?;
    let mut lifeless = start("buy", "k", None);
    lifeless.lifetime = Duration::ZERO;
    for bad in [nul, start("buy", "", None), value, lifeless] {
        let answer = node.store.start(None, bad).await?;
        assert!(matches!(answer, Started::Invalid(_)), "{answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn migrating_again_and_at_once_changes_nothing() -> Checked {
    let bench = Bench::new().await?;
    let (a, b) = futures_util::try_join!(migrate(&bench.config), migrate(&bench.config))?;
    assert!(a.applied.is_empty() && b.applied.is_empty());
    let standing = bench.store()?.ready().await?;
    assert!(!standing.synchronous);
    assert!(standing.warnings[0].starts_with("durability="));
    Ok(())
}

#[tokio::test]
async fn people_list_show_and_restore_what_ended_badly() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let desk = Operator::new(&bench.config, scope())?;
    for i in 0..5 {
        node.parked("buy", &format!("k{i}")).await?;
    }
    let bad = node.started("buy", "bad").await?;
    let ending = Write {
        to: To::Settle {
            ending: Ending::Terminated,
            why: Some(Text::new("refund refused")),
        },
        ..next(&bad, 1)
    };
    node.store.write(ending).await?;

    let mut seen = Vec::new();
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        let page = desk
            .list(&Filter::default(), Order::Newest, from, 4)
            .await?;
        seen.extend(page.lines.into_iter().map(|line| line.id));
        cursor = page.next;
    }
    seen.dedup();
    assert_eq!(seen.len(), 6);
    let filter = Filter {
        states: vec![State::Terminated],
        ..Filter::default()
    };
    let page = desk
        .list(&filter, Order::Newest, Cursor::default(), 10)
        .await?;
    assert_eq!(page.lines.len(), 1);
    let counts = desk.counts(Some(&service())).await?;
    assert_eq!(counts.get(&(State::Paused, Direction::Forward)), Some(&5));

    let shown = desk.show(bad.id).await?.ok_or("not there")?;
    assert_eq!(shown.error.as_deref(), Some("refund refused"));
    assert_eq!(shown.log.len(), 1);
    let restore = Verb::Restore {
        lifetime: Duration::from_secs(3_600),
        not_applied: false,
    };
    let by = By::new("eva", "bank fixed it")?;
    let click = || desk.order(&restore, bad.id, shown.epoch, &by);
    let epoch = shown.epoch + 1;
    assert_eq!(click().await?, Answer::Done { epoch });
    let again = click().await?;
    let told = matches!(&again, Answer::Refused(Refusal::Already { by, .. }) if by.actor == "eva");
    assert!(told, "a double click: {again:?}");
    let audited: i64 = bench.ask("select count(*) from ringsaga.audit").await?;
    assert_eq!(audited, 1);
    assert_eq!(node.due(10).await?.len(), 6);
    Ok(())
}
