//! The barrier on a real Postgres: two sessions in every order that can hurt.
#![cfg(feature = "barrier")]

mod shared;

use std::time::Duration;

use ring_participant::barrier::{self, Entered, Retention};
use shared::{Checked, Own, action, undo};

const FIRST: Entered = Entered::First { action: None };
const LONG: Duration = Duration::from_secs(60);

fn again(json: &str) -> Entered {
    Entered::Again(json.to_owned())
}

fn first_with(json: &str) -> Entered {
    Entered::First {
        action: Some(json.to_owned()),
    }
}

/// Enters, answers and commits.
async fn carry_out(own: &Own, key: &ring_participant::Key, json: &str) -> Checked<Entered> {
    let mut client = own.client().await?;
    let sql = client.transaction().await?;
    let entered = barrier::enter(&sql, key).await?;
    if matches!(entered, Entered::First { .. }) {
        barrier::answer(&sql, key, json).await?;
    }
    sql.commit().await?;
    Ok(entered)
}

#[tokio::test]
async fn a_concurrent_duplicate_waits_and_gets_the_stored_answer() -> Checked {
    let own = Own::new().await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    assert_eq!(barrier::enter(&sql, &action("charge")).await?, FIRST);
    let second = tokio::spawn(async move {
        let sql = two.transaction().await?;
        let entered = barrier::enter(&sql, &action("charge")).await?;
        sql.commit().await?;
        Ok::<_, tokio_postgres::Error>(entered)
    });
    own.blocked(1).await?;
    barrier::answer(&sql, &action("charge"), r#"{"receipt":1}"#).await?;
    sql.commit().await?;
    assert_eq!(second.await??, again(r#"{"receipt":1}"#));
    Ok(())
}

#[tokio::test]
async fn a_duplicate_of_a_call_that_was_refused_is_judged_anew() -> Checked {
    let own = Own::new().await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    assert_eq!(barrier::enter(&sql, &action("charge")).await?, FIRST);
    let second = tokio::spawn(async move {
        let sql = two.transaction().await?;
        barrier::enter(&sql, &action("charge")).await
    });
    own.blocked(1).await?;
    sql.rollback().await?;
    assert_eq!(second.await??, FIRST);
    Ok(())
}

#[tokio::test]
async fn an_empty_compensation_is_done_and_remembered() -> Checked {
    let own = Own::new().await?;
    assert_eq!(
        carry_out(&own, &undo("charge"), "0").await?,
        Entered::Nothing
    );
    assert_eq!(carry_out(&own, &undo("charge"), "0").await?, again("null"));
    let late = carry_out(&own, &action("charge"), "1").await?;
    assert_eq!(late, Entered::Compensated);
    Ok(())
}

#[tokio::test]
async fn a_compensation_that_races_with_its_action_waits_and_undoes_it() -> Checked {
    let own = Own::new().await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    assert_eq!(barrier::enter(&sql, &action("charge")).await?, FIRST);
    let second = tokio::spawn(async move {
        let sql = two.transaction().await?;
        let entered = barrier::enter(&sql, &undo("charge")).await?;
        barrier::answer(&sql, &undo("charge"), "null").await?;
        sql.commit().await?;
        Ok::<_, tokio_postgres::Error>(entered)
    });
    own.blocked(1).await?;
    barrier::answer(&sql, &action("charge"), r#"{"receipt":1}"#).await?;
    sql.commit().await?;
    assert_eq!(second.await??, first_with(r#"{"receipt":1}"#));
    assert_eq!(
        carry_out(&own, &action("charge"), "2").await?,
        Entered::Compensated
    );
    Ok(())
}

#[tokio::test]
async fn an_action_that_races_with_its_compensation_waits_and_is_blocked() -> Checked {
    let own = Own::new().await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    let nothing = barrier::enter(&sql, &undo("charge")).await?;
    assert_eq!(nothing, Entered::Nothing);
    let second = tokio::spawn(async move {
        let sql = two.transaction().await?;
        barrier::enter(&sql, &action("charge")).await
    });
    own.blocked(1).await?;
    sql.commit().await?;
    assert_eq!(second.await??, Entered::Compensated);
    Ok(())
}

#[tokio::test]
async fn an_action_goes_ahead_when_its_compensation_was_rolled_back() -> Checked {
    let own = Own::new().await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    barrier::enter(&sql, &undo("charge")).await?;
    let second = tokio::spawn(async move {
        let sql = two.transaction().await?;
        barrier::enter(&sql, &action("charge")).await
    });
    own.blocked(1).await?;
    sql.rollback().await?;
    assert_eq!(second.await??, FIRST);
    Ok(())
}

#[tokio::test]
async fn two_compensations_at_once_undo_once() -> Checked {
    let own = Own::new().await?;
    carry_out(&own, &action("charge"), "1").await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    assert_eq!(
        barrier::enter(&sql, &undo("charge")).await?,
        first_with("1")
    );
    let second = tokio::spawn(async move {
        let sql = two.transaction().await?;
        barrier::enter(&sql, &undo("charge")).await
    });
    own.blocked(1).await?;
    barrier::answer(&sql, &undo("charge"), "null").await?;
    sql.commit().await?;
    assert_eq!(second.await??, again("null"));
    Ok(())
}

#[tokio::test]
async fn a_refused_compensation_may_be_tried_again() -> Checked {
    let own = Own::new().await?;
    carry_out(&own, &action("charge"), "1").await?;
    let mut one = own.client().await?;
    let sql = one.transaction().await?;
    barrier::enter(&sql, &undo("charge")).await?;
    sql.rollback().await?;
    assert_eq!(
        carry_out(&own, &undo("charge"), "null").await?,
        first_with("1")
    );
    Ok(())
}

#[tokio::test]
async fn in_stricter_isolation_a_loser_is_busy_and_repeats() -> Checked {
    let own = Own::new().await?;
    let (mut one, mut two) = (own.client().await?, own.client().await?);
    let strict = || tokio_postgres::IsolationLevel::Serializable;
    let late = two
        .build_transaction()
        .isolation_level(strict())
        .start()
        .await?;
    late.batch_execute("select 1 from barrier").await?;
    let sql = one
        .build_transaction()
        .isolation_level(strict())
        .start()
        .await?;
    barrier::enter(&sql, &action("charge")).await?;
    barrier::answer(&sql, &action("charge"), "1").await?;
    sql.commit().await?;
    let error = barrier::enter(&late, &action("charge")).await.unwrap_err();
    assert!(barrier::is_busy(&error), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn begun_work_is_waited_for_by_its_duplicate_and_by_its_compensation() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    assert_eq!(barrier::begin(&client, &action("mail"), LONG).await?, FIRST);
    for key in [action("mail"), undo("mail")] {
        let entered = barrier::begin(&client, &key, LONG).await?;
        let Entered::InProgress(pause) = entered else {
            panic!("{entered:?}");
        };
        assert!(pause > LONG / 2 && pause <= LONG, "{pause:?}");
        let inside = carry_out(&own, &key, "null").await?;
        assert!(matches!(inside, Entered::InProgress(_)), "{inside:?}");
    }
    assert_eq!(
        barrier::finish(&client, &action("mail"), "7").await?,
        Some("7".to_owned())
    );
    assert_eq!(
        barrier::begin(&client, &action("mail"), LONG).await?,
        again("7")
    );
    assert_eq!(
        barrier::begin(&client, &undo("mail"), LONG).await?,
        first_with("7")
    );
    assert_eq!(
        barrier::begin(&client, &action("mail"), LONG).await?,
        Entered::Compensated
    );
    Ok(())
}

/// seata#6374: the row went with the failed action, and its effect was never undone.
#[tokio::test]
async fn work_that_was_begun_and_died_is_compensated_for_real() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    assert_eq!(
        barrier::begin(&client, &action("mail"), Duration::ZERO).await?,
        FIRST
    );
    assert_eq!(barrier::begin(&client, &undo("mail"), LONG).await?, FIRST);
    let late = barrier::begin(&client, &action("mail"), LONG).await?;
    assert_eq!(late, Entered::Compensated);
    // Whoever was slow with the action does not hear "done".
    assert_eq!(barrier::finish(&client, &action("mail"), "7").await?, None);
    Ok(())
}

#[tokio::test]
async fn work_that_was_begun_and_died_is_taken_up_again() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    for _ in 0..3 {
        assert_eq!(
            barrier::begin(&client, &action("mail"), Duration::ZERO).await?,
            FIRST
        );
    }
    // The first of two answers is the one.
    assert_eq!(
        barrier::finish(&client, &action("mail"), "1").await?,
        Some("1".to_owned())
    );
    assert_eq!(
        barrier::finish(&client, &action("mail"), "2").await?,
        Some("1".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn a_first_attempt_without_effect_leaves_no_trace() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    barrier::begin(&client, &action("mail"), LONG).await?;
    barrier::leave(&client, &action("mail"), false).await?;
    assert_eq!(own.number("select count(*) from barrier").await?, 0);
    assert_eq!(
        barrier::begin(&client, &undo("mail"), LONG).await?,
        Entered::Nothing
    );
    Ok(())
}

#[tokio::test]
async fn a_refusal_after_an_attempt_in_doubt_is_still_compensated_for_real() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    barrier::begin(&client, &action("mail"), LONG).await?;
    barrier::leave(&client, &action("mail"), true).await?;
    assert_eq!(barrier::begin(&client, &action("mail"), LONG).await?, FIRST);
    barrier::leave(&client, &action("mail"), false).await?;
    assert_eq!(barrier::begin(&client, &undo("mail"), LONG).await?, FIRST);
    Ok(())
}

#[tokio::test]
async fn a_failed_compensation_is_taken_up_again_and_blocks_the_action_meanwhile() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    barrier::begin(&client, &action("mail"), LONG).await?;
    barrier::finish(&client, &action("mail"), "7").await?;
    barrier::begin(&client, &undo("mail"), LONG).await?;
    let twin = barrier::begin(&client, &undo("mail"), LONG).await?;
    assert!(matches!(twin, Entered::InProgress(_)), "{twin:?}");
    barrier::leave(&client, &undo("mail"), false).await?;
    assert_eq!(
        barrier::begin(&client, &action("mail"), LONG).await?,
        Entered::Compensated
    );
    assert_eq!(
        barrier::begin(&client, &undo("mail"), LONG).await?,
        first_with("7")
    );
    Ok(())
}

#[tokio::test]
async fn a_dead_action_is_not_taken_up_while_it_is_being_undone() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    barrier::begin(&client, &action("mail"), Duration::ZERO).await?;
    let (mut one, two) = (own.client().await?, own.client().await?);
    let sql = one.transaction().await?;
    assert_eq!(barrier::enter(&sql, &undo("mail")).await?, FIRST);
    let second = tokio::spawn(async move { barrier::begin(&two, &action("mail"), LONG).await });
    own.blocked(1).await?;
    barrier::answer(&sql, &undo("mail"), "null").await?;
    sql.commit().await?;
    assert_eq!(second.await??, Entered::Compensated);
    Ok(())
}

#[tokio::test]
async fn a_purge_takes_whole_pairs_that_are_old_and_no_more_than_it_may() -> Checked {
    let own = Own::new().await?;
    let client = own.client().await?;
    for step in ["a", "b", "c"] {
        carry_out(&own, &action(step), "1").await?;
        carry_out(&own, &undo(step), "1").await?;
    }
    carry_out(&own, &action("young"), "1").await?;
    client
        .batch_execute(
            "update barrier set created_at = now() - interval '40 days' where step <> 'young'; \
             update barrier set created_at = now() where step = 'b' and direction = 'compensating'",
        )
        .await?;
    let day = Duration::from_secs(24 * 60 * 60);
    let retention = Retention::covering(day, 30 * day);
    assert_eq!(barrier::purge(&client, retention, 1).await?, 2);
    assert_eq!(barrier::purge(&client, retention, 1_000).await?, 2);
    assert_eq!(barrier::purge(&client, retention, 1_000).await?, 0);
    // The action of "b" is old, but its compensation is young: a late call must find both.
    assert_eq!(
        carry_out(&own, &action("b"), "1").await?,
        Entered::Compensated
    );
    assert_eq!(carry_out(&own, &action("young"), "1").await?, again("1"));
    Ok(())
}
