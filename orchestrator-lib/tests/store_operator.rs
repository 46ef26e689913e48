//! Operators' orders on real Postgres: what each does, how it is refused, and that nobody who
//! runs the transaction meanwhile can undo it or be undone unnoticed.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use orchestrator_lib::store::{Answer, By, Cursor, Filter, Order, Refusal, Verb};
use ring_core::{
    saga::{Attempt, State},
    store::Written,
};
use store_support::{desk::*, *};

#[tokio::test]
async fn a_list_finds_by_every_filter_and_from_either_end() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let bad = terminated(&node, "bad", "Refund REFUSED by the bank").await?;
    let tried = paused(&node, "tried").await?.id;
    let fresh = node.parked("buy", "fresh").await?;
    let run = node.started("buy", "run").await?.id;
    bench
        .run(&format!(
            "update ringsaga.transaction set waiting_on = 'bank' where id = '{tried}'"
        ))
        .await?;
    let any = Filter::default;
    let filters = [
        (
            vec![bad],
            Filter {
                states: vec![State::Terminated],
                ..any()
            },
        ),
        (
            vec![bad],
            Filter {
                error: Some("refused BY".to_owned()),
                ..any()
            },
        ),
        (
            vec![tried],
            Filter {
                attempts: Some(1),
                ..any()
            },
        ),
        (
            vec![tried],
            Filter {
                waiting_on: Some("bank".to_owned()),
                ..any()
            },
        ),
        (
            vec![tried],
            Filter {
                waiting_on: Some("bank".to_owned()),
                service: Some(service()),
                ..any()
            },
        ),
        (
            vec![fresh],
            Filter {
                key: Some("fresh".to_owned()),
                ..any()
            },
        ),
        (
            vec![run],
            Filter {
                states: vec![State::Running],
                ..any()
            },
        ),
        (
            vec![],
            Filter {
                version: Some(2),
                ..any()
            },
        ),
    ];
    for (wanted, filter) in filters {
        let page = desk
            .list(&filter, Order::Newest, Cursor::default(), 10)
            .await?;
        let found: Vec<_> = page.lines.iter().map(|line| line.id).collect();
        assert_eq!(found, wanted, "{filter:?}");
        assert_eq!(page.next, None);
    }
    let newest = desk
        .list(&any(), Order::Newest, Cursor::default(), 10)
        .await?;
    let mut back: Vec<_> = newest.lines.iter().map(|line| line.id).collect();
    back.reverse();
    let oldest = desk
        .list(&any(), Order::Oldest, Cursor::default(), 10)
        .await?;
    let there: Vec<_> = oldest.lines.iter().map(|line| line.id).collect();
    assert_eq!((there.len(), there), (4, back));
    let keyed = desk.keyed("fresh", None, None).await?;
    assert_eq!(keyed.iter().map(|k| k.id).collect::<Vec<_>>(), [fresh]);
    Ok(())
}

#[tokio::test]
async fn why_tells_what_the_rows_say() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let codes = async |id| {
        let why = desk.why(id).await.unwrap().unwrap();
        why.reasons.iter().map(|r| r.code).collect::<Vec<_>>()
    };
    let tried = paused(&node, "tried").await?.id;
    assert_eq!(codes(tried).await, ["not-due", "in-doubt"]);
    let run = node.started("buy", "run").await?.id;
    assert_eq!(codes(run).await, ["running"]);
    let bad = terminated(&node, "bad", "no").await?;
    assert_eq!(codes(bad).await, ["terminated"]);
    let other = bench.node("o-2", &["sell"]).await?;
    bench.kill(node.me, &other).await?;
    assert_eq!(codes(run).await, ["owner-dead", "executor-missing"]);
    assert_eq!(
        codes(tried).await,
        ["not-due", "executor-missing", "in-doubt"]
    );
    Ok(())
}

#[tokio::test]
async fn a_second_restore_is_told_who_was_first() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let bad = terminated(&node, "bad", "no").await?;
    let epoch = seen(&desk, bad).await;
    let (one, two) = (By::new("eva", "fixed")?, By::new("tom", "fixed, too")?);
    let verb = restore();
    let (a, b) = tokio::join!(
        desk.order(&verb, bad, epoch, &one),
        desk.order(&verb, bad, epoch, &two)
    );
    let (a, b) = (a?, b?);
    let done = [&a, &b]
        .into_iter()
        .filter(|x| matches!(x, Answer::Done { .. }))
        .count();
    assert_eq!(done, 1, "{a:?} {b:?}");
    let late = if matches!(a, Answer::Done { .. }) {
        b
    } else {
        a
    };
    assert!(matches!(refused(late), Refusal::Already { by, .. } if by.action == "restore"));
    let claimed = node.due(10).await?;
    assert_eq!((claimed.len(), claimed[0].attempts), (1, 0));
    // Its owner lives now.
    match refused(ordered(&desk, &restore(), bad).await) {
        Refusal::State {
            state,
            instance,
            last,
            ..
        } => {
            assert_eq!((state, instance.as_deref()), (State::Running, Some("o-1")));
            assert_eq!(last.unwrap().action, "restore");
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[tokio::test]
async fn retry_now_loses_to_a_claim_that_came_first() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let id = paused(&node, "tried").await?.id;
    let epoch = seen(&desk, id).await;
    // Another session holds the row as a claim does, and commits while the order waits.
    let mut session = bench.session().await?;
    let claim = session.transaction().await?;
    let took = format!(
        "update ringsaga.transaction set state = 'running', owner = {}, due_at = null, \
         epoch = epoch + 1 where id = '{id}'",
        node.me.0
    );
    claim.batch_execute(&took).await?;
    let by = eva();
    let waiting = desk.order(&Verb::Retry, id, epoch, &by);
    let commit = async {
        let blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                       and application_name = 'ringsaga admin' and datname = current_database()";
        while bench.ask::<i64>(blocked).await? == 0 {
            tokio::task::yield_now().await;
        }
        Ok::<_, Box<dyn std::error::Error>>(claim.commit().await?)
    };
    let (answer, committed) = tokio::join!(waiting, commit);
    committed?;
    match refused(answer?) {
        Refusal::State { state, .. } => assert_eq!(state, State::Running),
        other => panic!("{other:?}"),
    }
    let audited: i64 = bench.ask("select count(*) from ringsaga.audit").await?;
    assert_eq!(audited, 0);
    Ok(())
}

#[tokio::test]
async fn retry_now_takes_it_from_its_target_and_its_backoff() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let id = paused(&node, "tried").await?.id;
    let wait = format!("update ringsaga.transaction set waiting_on = 'bank' where id = '{id}'");
    bench.run(&wait).await?;
    assert!(node.due(10).await?.is_empty());
    assert!(matches!(
        ordered(&desk, &Verb::Retry, id).await,
        Answer::Done { .. }
    ));
    let claimed = node.due(10).await?;
    assert_eq!((claimed.len(), claimed[0].attempts), (1, 1));
    Ok(())
}

#[tokio::test]
async fn only_a_failed_compensation_is_retried_as_one() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let bad = terminated(&node, "bad", "no").await?;
    let verb = Verb::RetryCompensation { lifetime: HOUR };
    assert!(matches!(
        refused(ordered(&desk, &verb, bad).await),
        Refusal::State { .. }
    ));
    let turn =
        format!("update ringsaga.transaction set direction = 'compensating' where id = '{bad}'");
    bench.run(&turn).await?;
    assert!(matches!(
        ordered(&desk, &verb, bad).await,
        Answer::Done { .. }
    ));
    assert_eq!(node.due(10).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_skipped_step_is_done_with_evidence_and_its_old_owner_can_not_write() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let old = paused(&node, "tried").await?;
    let skip = |name: &str| Verb::Skip {
        step: step(name),
        result: json(r#"{"booking":7}"#),
        reference: "ticket 12".to_owned(),
        lifetime: HOUR,
    };
    let other = refused(ordered(&desk, &skip("step-9"), old.id).await);
    assert!(
        matches!(other, Refusal::State { .. }),
        "another step's name: {other:?}"
    );
    assert!(matches!(
        ordered(&desk, &skip("step-0"), old.id).await,
        Answer::Done { .. }
    ));
    let claimed = node.due(10).await?;
    let log = &claimed[0].log;
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].attempt, Attempt::Done(json(r#"{"booking":7}"#)));
    assert_eq!(node.store.write(next(&old, 2)).await?, Written::Lost);
    let detail: String = bench.ask("select detail from ringsaga.audit").await?;
    assert!(detail.contains("ticket 12"), "{detail}");
    Ok(())
}

#[tokio::test]
async fn who_looked_takes_the_doubt_away() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let id = paused(&node, "tried").await?.id;
    let end = "update ringsaga.transaction set state = 'terminated', due_at = null, \
               settled_at = now()";
    bench.run(end).await?;
    assert!(desk.show(id).await?.unwrap().summary.doubt);
    let looked = Verb::Restore {
        lifetime: HOUR,
        not_applied: true,
    };
    let answer = ordered(&desk, &looked, id).await;
    assert!(matches!(answer, Answer::Done { .. }));
    let claimed = node.due(10).await?;
    assert!(!claimed[0].doubt);
    let said = &claimed[0].log[0].attempt;
    assert!(
        matches!(said, Attempt::Paused { doubt: false, .. }),
        "{said:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_steps_name_is_known_once_its_definition_was_described() -> Checked {
    let bench = Bench::new().await?;
    let (node, desk) = (bench.node("o-1", &["buy"]).await?, desk(&bench));
    let id = node.parked("buy", "k").await?;
    let shown = desk.show(id).await?.unwrap();
    assert_eq!(shown.summary.step, None);
    let names = ["pay".to_owned(), "ship".to_owned()];
    node.store.describe(&capability("buy"), &names).await?;
    let shown = desk.show(id).await?.unwrap();
    assert_eq!(shown.summary.step.as_deref(), Some("pay"));
    Ok(())
}
