//! Sound sagas pass, planted mistakes are found, and a story reads as it is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::*;
use crate::{Context, Ended, Group, Retry, Step};

async fn away(cx: Context, _: u32) -> Result<u32, StepError> {
    let working = cx.shared::<u32>()?;
    if cx.attempt() < *working {
        return Err(StepError::transient("away"));
    }
    Ok(cx.attempt())
}

#[tokio::test]
async fn pauses_pass_at_once_and_are_told() {
    let hour = Retry::exponential(Duration::from_secs(3600)).cap(Duration::from_secs(7200));
    let saga = Saga::<u32>::new("s", 1)
        .step(Step::new("a", away).retry(hour))
        .build()
        .unwrap();
    let told = Trial::of(&saga).provide(6_u32).run(1).await.unwrap();
    assert_eq!(told.calls.len(), 6);
    assert!(told.paused > Duration::from_secs(3600), "{told}");
    told.expect_completed().expect_result(&6_u32);
}

#[tokio::test]
async fn what_is_never_done_outlives_its_lifetime() {
    let saga = Saga::<u32>::new("s", 1)
        .step(Step::new("a", away).retry(Retry::default().until_the_lifetime_ends()))
        .build()
        .unwrap();
    let told = Trial::of(&saga).provide(u32::MAX).run(1).await.unwrap();
    assert!(matches!(told.ended, Some(Ended::Disabled { .. })), "{told}");
}

/// Participants that know keys: what was booked under which, and which are blocked.
#[derive(Default)]
struct Bank(Mutex<Books>);

#[derive(Default)]
struct Books {
    booked: BTreeMap<String, i64>,
    blocked: BTreeSet<String>,
    counter: i64,
}

impl Bank {
    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn balance(&self) -> i64 {
        let books = self.books();
        books.booked.values().sum::<i64>() + books.counter
    }
}

async fn debit(cx: Context, cents: i64) -> Result<(), StepError> {
    let bank = cx.shared::<Bank>()?;
    let mut books = bank.books();
    if !books.blocked.contains(cx.key()) {
        books.booked.insert(cx.key().to_owned(), -cents);
    }
    Ok(())
}

async fn refund(cx: Context, _: i64, _: Option<()>) -> Result<(), StepError> {
    let bank = cx.shared::<Bank>()?;
    let mut books = bank.books();
    books.blocked.insert(cx.action_key());
    books.booked.remove(&cx.action_key());
    Ok(())
}

/// Forgets its key: every call books.
async fn careless(cx: Context, cents: i64) -> Result<(), StepError> {
    cx.shared::<Bank>()?.books().counter -= cents;
    Ok(())
}

/// Not idempotent: every call gives the money back.
async fn generous(cx: Context, cents: i64, _: Option<()>) -> Result<(), StepError> {
    cx.shared::<Bank>()?.books().counter += cents;
    Ok(())
}

async fn nothing(_: Context, _: i64) -> Result<String, StepError> {
    Ok("shipped".into())
}

fn check(saga: &Saga<i64>) -> Check {
    Check::of(saga, 100).world(Bank::default, Bank::balance)
}

fn sound() -> Saga<i64> {
    Saga::<i64>::new("sound", 1)
        .step(Step::new("debit", debit).compensate(refund))
        .parallel(
            Group::new()
                .step(Step::new("fee", debit).compensate(refund))
                .step(Step::new("tax", debit).compensate(refund)),
        )
        .step(Step::new("ship", nothing))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_sound_saga_has_no_findings() {
    check(&sound()).all().await.unwrap().assert_none();
}

#[tokio::test]
async fn a_step_that_forgets_its_key_is_found() {
    let saga = Saga::<i64>::new("careless", 1)
        .step(Step::new("debit", careless))
        .step(Step::new("ship", nothing))
        .build()
        .unwrap();
    let found = check(&saga).run_twice().await.unwrap();
    assert!(found.to_string().contains("the world is -200"), "{found}");
    assert!(!check(&saga).lose_every_answer().await.unwrap().is_empty());
    assert!(!check(&saga).kill_at_every_write().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_compensation_that_is_not_idempotent_is_found() {
    let saga = Saga::<i64>::new("generous", 1)
        .step(Step::new("debit", debit).compensate(generous))
        .step(Step::new("ship", nothing))
        .build()
        .unwrap();
    let found = check(&saga).run_twice().await.unwrap();
    assert!(
        found.0.iter().any(|f| f.case.contains("refused")),
        "{found}"
    );
}

#[tokio::test]
async fn a_compensation_that_blocks_no_late_action_is_found() {
    async fn forgets(cx: Context, _: i64, _: Option<()>) -> Result<(), StepError> {
        let bank = cx.shared::<Bank>()?;
        bank.books().booked.remove(&cx.action_key());
        Ok(())
    }
    let saga = Saga::<i64>::new("late", 1)
        .step(Step::new("debit", debit).compensate(forgets))
        .step(Step::new("ship", nothing))
        .build()
        .unwrap();
    let found = check(&saga).deliver_late().await.unwrap();
    assert!(
        found.to_string().contains("arrives after its undo"),
        "{found}"
    );
    assert!(check(&saga).run_twice().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_step_without_compensation_is_found() {
    let saga = Saga::<i64>::new("forgotten", 1)
        .step(Step::new("debit", debit))
        .step(Step::new("ship", nothing))
        .build()
        .unwrap();
    let found = check(&saga).fail_every_step().await.unwrap();
    assert!(
        found.to_string().contains("undone, but the world is"),
        "{found}"
    );
}

#[tokio::test]
async fn an_answer_for_a_step_that_is_not_there_is_an_error() {
    let trial = || Trial::of(&sound()).provide(Bank::default());
    let typo = trial().given("debti", StepError::business("no"));
    assert!(matches!(typo.run(1).await, Err(Error::StepName(_))));
    let typo = trial().signal(Key::new("ship"), &1).unwrap();
    assert!(matches!(typo.run(1).await, Err(Error::StepName(_))));
}

#[tokio::test]
async fn what_is_never_repeated_is_not_called_twice_and_children_are_not_late() {
    let wire = Saga::<i64>::new("wire", 1)
        .step(Step::new("wire", careless).not_idempotent())
        .build()
        .unwrap();
    check(&wire).run_twice().await.unwrap().assert_none();
    let parent = Saga::<i64>::new("parent", 1)
        .step(Step::<i64, String>::saga("inner", &sound(), |_, cents| {
            Ok(*cents)
        }))
        .step(Step::new("ship", nothing))
        .build()
        .unwrap();
    check(&parent).all().await.unwrap().assert_none();
}

#[tokio::test]
async fn an_irreversible_step_with_a_probe_is_asked_about() {
    async fn probe(_: Context, _: i64) -> Result<crate::Probe<String>, StepError> {
        Ok(crate::Probe::Applied("found".into()))
    }
    let saga = Saga::<i64>::new("wire", 1)
        .step(
            Step::new("wire", nothing)
                .recovery(crate::Recovery::Irreversible)
                .probe(probe),
        )
        .build()
        .unwrap();
    let trial = Trial::of(&saga).given("wire", StepError::unknown("reset"));
    let told = trial.run(1).await.unwrap();
    told.expect_completed().expect_result(&"found".to_owned());
}

#[tokio::test]
async fn signals_answers_and_sub_sagas_are_part_of_a_story() {
    const APPROVAL: Key<bool> = Key::new("approval");
    async fn pay(cx: Context, cents: i64) -> Result<(), StepError> {
        if cx.result(APPROVAL)? {
            return debit(cx, cents).await;
        }
        Err(StepError::business("not approved"))
    }
    let saga = Saga::<i64>::new("story", 1)
        .step(Step::<i64, String>::saga("inner", &sound(), |_, cents| {
            Ok(*cents)
        }))
        .step(Step::signal(APPROVAL).within(Duration::from_secs(60)))
        .step(Step::new("pay", pay))
        .build()
        .unwrap();
    let trial = || Trial::of(&saga).provide(Bank::default());
    let approved = trial().signal(APPROVAL, &true).unwrap();
    approved.run(5).await.unwrap().expect_completed();
    let refused = trial().signal(APPROVAL, &false).unwrap();
    let told = refused.run(5).await.unwrap();
    told.expect_undone().expect_reason("not approved");
    told.expect_calls(["inner", "pay", "undo inner"]);
    let silent = trial().run(5).await.unwrap();
    silent.expect_undone().expect_reason("no signal approval");
    let given = trial().given_result("inner", &"x").cancelled("typo");
    given.run(5).await.unwrap().expect_not_called("pay");
}
