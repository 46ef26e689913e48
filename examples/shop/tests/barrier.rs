//! A participant's promises on a real Postgres: one effect, whatever comes twice, late or first.

use std::{sync::Arc, time::Duration};

use ring_local::{Set, Settings, TestDatabase};
use shop::{
    participant::{Answer, Database, Faults, Hold, Inventory, Key, Payment},
    wire::{About, Charge, Reserve},
};

type Checked = Result<(), Box<dyn std::error::Error>>;

/// A database of the test's own; it goes with the test.
struct Own {
    database: Database,
    _held: (Arc<Set>, TestDatabase),
}

impl Own {
    async fn with(schema: &'static str) -> Result<Self, Box<dyn std::error::Error>> {
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let made = TestDatabase::create(set.addresses()).await?;
        let database = Database::new(&made.url().into(), schema)?;
        database.prepare().await?;
        Ok(Self {
            database,
            _held: (set, made),
        })
    }

    async fn number(&self, sql: &str) -> Result<i64, Box<dyn std::error::Error>> {
        Ok(self
            .database
            .connection()
            .await?
            .query_one(sql, &[])
            .await?
            .try_get(0)?)
    }
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn key(direction: &str, step: &str) -> Key {
    let text = format!("0190b3a0-7c3e-7000-8000-000000000001/{direction}/{step}");
    text.parse().unwrap()
}

fn charge(customer: &str) -> Charge {
    Charge {
        order_id: "A-1".to_owned(),
        customer: customer.to_owned(),
        amount_cents: 700,
    }
}

fn about() -> About {
    About {
        order_id: "A-1".to_owned(),
    }
}

fn reserve(quantity: u32) -> Reserve {
    Reserve {
        order_id: "A-1".to_owned(),
        sku: "pen".to_owned(),
        quantity,
    }
}

const BALANCE: &str = "select coalesce(sum(amount_cents), 0)::bigint from entry";
const ENTRIES: &str = "select count(*) from entry";
const REPEATS: &str = "select sum(repeats)::bigint from barrier";

#[tokio::test]
async fn a_duplicate_gets_the_stored_answer_and_no_second_effect() -> Checked {
    let own = Own::with(Payment::SCHEMA).await?;
    let payment = Payment::new(own.database.clone(), Arc::default());
    let calls = (0..8).map(|_| {
        let payment = payment.clone();
        tokio::spawn(async move {
            payment
                .charge(key("forward", "charge"), charge("ann"))
                .await
        })
    });
    let mut done = 0;
    for call in calls.collect::<Vec<_>>() {
        match call.await? {
            Ok(Answer::Done(answer)) => {
                done += 1;
                assert_eq!(answer, r#"{"receipt":1}"#);
            }
            Err(Answer::Again(answer)) => assert_eq!(answer, r#"{"receipt":1}"#),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, own.number(BALANCE).await?), (1, 700));
    assert_eq!(own.number(REPEATS).await?, 7);
    Ok(())
}

#[tokio::test]
async fn a_refund_of_an_unknown_charge_is_accepted_and_blocks_the_late_one() -> Checked {
    let own = Own::with(Payment::SCHEMA).await?;
    let payment = Payment::new(own.database.clone(), Arc::default());
    let refund = || payment.refund(key("compensating", "charge"), about());
    let null = || "null".to_owned();
    // The first, and a repetition: nothing to pay back, done.
    assert_eq!(refund().await, Err(Answer::Done(null())));
    assert_eq!(refund().await, Err(Answer::Done(null())));
    let late = payment
        .charge(key("forward", "charge"), charge("ann"))
        .await;
    assert_eq!(late, Err(Answer::Compensated));
    assert_eq!(own.number(ENTRIES).await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_action_that_comes_again_after_it_was_undone_is_not_answered_done() -> Checked {
    let own = Own::with(Payment::SCHEMA).await?;
    let payment = Payment::new(own.database.clone(), Arc::default());
    let ask = || payment.charge(key("forward", "charge"), charge("ann"));
    assert!(matches!(ask().await, Ok(Answer::Done(_))));
    let refund = || payment.refund(key("compensating", "charge"), about());
    assert!(matches!(refund().await, Ok(Answer::Done(_))));
    assert!(matches!(refund().await, Err(Answer::Again(_))));
    assert_eq!(ask().await, Err(Answer::Compensated));
    assert_eq!(
        (own.number(BALANCE).await?, own.number(ENTRIES).await?),
        (0, 2)
    );
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_not_stored_so_that_a_later_attempt_is_judged_anew() -> Checked {
    let own = Own::with(Inventory::SCHEMA).await?;
    let few = Inventory::new(own.database.clone(), 3);
    let ask = |quantity| few.reserve(key("forward", "reserve"), reserve(quantity));
    assert!(matches!(ask(4).await, Err(Answer::Refused(_))));
    assert!(matches!(ask(3).await, Ok(Answer::Done(_))));
    let stock = "select available from stock";
    assert_eq!(own.number(stock).await?, 0);
    assert!(
        few.release(key("compensating", "reserve"), about())
            .await
            .is_ok()
    );
    assert_eq!(own.number(stock).await?, 3);
    let released = few.confirm(key("forward", "confirm"), about()).await;
    assert!(matches!(released, Err(Answer::Refused(_))), "{released:?}");
    Ok(())
}

#[tokio::test]
async fn a_charge_that_is_held_back_is_booked_although_its_caller_has_left() -> Checked {
    let own = Own::with(Payment::SCHEMA).await?;
    let faults = Arc::new(Faults::default());
    let payment = Payment::new(own.database.clone(), Arc::clone(&faults));
    faults.hold(Hold {
        order_id: "A-1".to_owned(),
        ms: 300,
    });
    let ask = || payment.charge(key("forward", "charge"), charge("ann"));
    let impatient = tokio::time::timeout(Duration::from_millis(20), ask()).await;
    assert!(impatient.is_err());
    assert!(matches!(ask().await, Err(Answer::Refused(_))));
    assert_eq!(own.number(ENTRIES).await?, 0);
    let booked = async {
        while own.number(ENTRIES).await? == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Checked::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(10), booked).await?
}

#[tokio::test]
async fn a_key_that_goes_the_wrong_way_is_refused() -> Checked {
    let own = Own::with(Payment::SCHEMA).await?;
    let payment = Payment::new(own.database.clone(), Arc::default());
    let asked = payment
        .charge(key("compensating", "charge"), charge("ann"))
        .await;
    assert!(matches!(asked, Err(Answer::Malformed(_))), "{asked:?}");
    Ok(())
}
