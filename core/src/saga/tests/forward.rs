//! Actions: order, retries, strategies.

use alloc::vec;
use core::time::Duration;

use super::bench::*;
use crate::{
    saga::{
        Attempt, Class, Input, Order, Outcome, PlannedStep, Recovery, Retry, State, Stopped, Text,
    },
    store::{To, Written},
};

#[test]
fn a_started_transaction_calls_its_first_action() {
    let (b, orders) = Bench::started(steps(2));
    let call = call(&orders);
    assert_eq!((call.call, call.attempt, call.position), (1, 1, forward(0)));
    assert_eq!(
        (call.result_of_action, call.time_limit.as_secs()),
        (None, 30)
    );
    assert_eq!(
        call.key.as_str(),
        "01900000-0000-8000-8000-000000000001/forward/s0"
    );
    assert!(b.tx.is_calling());
}

#[test]
fn the_record_of_a_step_is_the_intent_of_the_next() {
    let (mut b, _) = Bench::started(steps(2));
    let write = write(&b.returned(done("1")));
    assert_eq!((write.number, write.from), (1, forward(0)));
    assert_eq!(write.to, To::Next(forward(1)));
    assert_eq!(
        write.entry,
        Some(entry(forward(0), Attempt::Done(json("1"))))
    );
}

#[test]
fn a_call_waits_until_its_intent_is_durable() {
    let (mut b, _) = Bench::started(steps(2));
    write(&b.returned(done("1")));
    assert_eq!(b.check(Input::Woke), []);
    assert_eq!(call(&b.stored()).position, forward(1));
}

#[test]
fn a_later_step_gets_the_results_of_those_before() {
    let (mut b, _) = Bench::started(steps(3));
    b.step_done("1");
    let third = call(&b.step_done("2"));
    assert_eq!(third.results, [(name(0), json("1")), (name(1), json("2"))]);
}

#[test]
fn the_last_record_settles_with_its_result() {
    let (mut b, _) = Bench::started(steps(1));
    let write = write(&b.returned(done("7")));
    assert!(matches!(&write.to, To::Settle { ending, why: None }
        if *ending == crate::saga::Ending::Completed(json("7"))));
    assert_eq!(attempt(&write), Attempt::Done(json("7")));
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Completed)));
}

#[test]
fn a_saga_without_steps_is_completed_at_once() {
    let (mut b, orders) = Bench::started(vec![]);
    let write = write(&orders);
    assert_eq!((settled(&write).as_str(), write.entry), ("Completed", None));
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Completed)));
}

#[test]
fn a_transient_failure_is_retried_inline_then_parked() {
    let mut s = step(0);
    s.retry.inline = 2;
    s.retry.attempts = Some(9);
    let (mut b, _) = Bench::started(vec![s]);
    for expected in [2, 3] {
        assert_eq!(b.returned(failed(Class::Transient)), []);
        assert_eq!(b.check(Input::Woke), [], "not before its pause");
        assert_eq!(call(&b.woke()).attempt, expected);
    }
    let write = write(&b.returned(failed(Class::Transient)));
    let (after, attempts, doubt) = parked(&write);
    assert_eq!((attempts, doubt), (3, false));
    assert!(after >= Duration::from_secs(2), "{after:?}");
    assert!(matches!(
        attempt(&write),
        Attempt::Paused {
            class: Class::Transient,
            ..
        }
    ));
    assert_eq!(b.stored(), stopped(Stopped::Parked));
}

#[test]
fn an_unknown_outcome_is_retried_first_and_leaves_a_doubt() {
    let mut s = step(0);
    s.retry.inline = 2;
    let (mut b, _) = Bench::started(vec![s]);
    let write = write(&b.returned(failed(Class::Unknown)));
    assert_eq!((parked(&write).1, parked(&write).2), (1, true));
}

#[test]
fn a_success_ends_the_doubt() {
    let (mut b, orders) = Bench::claimed(steps(2), |c| (c.doubt, c.attempts) = (true, 2));
    assert_eq!(call(&orders).attempt, 3);
    let orders = b.step_done("1");
    assert_eq!(call(&orders).position, forward(1));
    assert!(!b.tx.is_in_doubt());
}

#[test]
fn retry_after_is_honoured_within_an_hour() {
    for (asked, least) in [(40, 40), (100_000, 3_600)] {
        let (mut b, _) = Bench::started(steps(1));
        let got = b.returned(Outcome::Failed {
            class: Class::Transient,
            error: Text::new("busy"),
            retry_after: Some(Duration::from_secs(asked)),
        });
        assert_eq!(parked(&write(&got)).0, Duration::from_secs(least));
    }
}

#[test]
fn a_long_retry_after_is_no_inline_retry() {
    let mut s = step(0);
    s.retry.inline = 2;
    let (mut b, _) = Bench::started(vec![s]);
    let got = b.returned(Outcome::Failed {
        class: Class::Transient,
        error: Text::new("busy"),
        retry_after: Some(Duration::from_secs(2)),
    });
    assert!(parked(&write(&got)).0 >= Duration::from_secs(2));
}

#[test]
fn at_the_limit_of_attempts_compensation_starts() {
    for (class, first) in [(Class::Transient, undo(0)), (Class::Unknown, undo(1))] {
        let (mut b, _) = Bench::claimed(steps(2), |c| {
            c.position = forward(1);
            c.attempts = 2;
            c.log = vec![entry(forward(0), Attempt::Done(json("1")))];
        });
        let write = write(&b.returned(failed(class)));
        assert_eq!(write.to, To::Next(first), "{class:?}");
        assert_eq!(attempt(&write), refused(class, class == Class::Unknown));
    }
}

#[test]
fn a_refusal_starts_compensation_at_the_step_before() {
    for class in [Class::Business, Class::Persistent] {
        let (mut b, _) = Bench::started(steps(2));
        b.step_done("1");
        let write = write(&b.returned(failed(class)));
        assert_eq!((write.from, &write.to), (forward(1), &To::Next(undo(0))));
        assert_eq!(attempt(&write), refused(class, false));
    }
}

#[test]
fn a_refusal_of_the_first_step_leaves_nothing_to_undo() {
    let (mut b, _) = Bench::started(steps(2));
    assert_eq!(
        settled(&write(&b.returned(failed(Class::Business)))),
        "Compensated"
    );
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}

#[test]
fn a_step_once_unknown_is_in_doubt_whatever_it_answers_later() {
    let (mut b, _) = Bench::claimed(steps(1), |c| (c.doubt, c.attempts) = (true, 1));
    let write = write(&b.returned(failed(Class::Business)));
    assert_eq!(write.to, To::Next(undo(0)));
    assert_eq!(attempt(&write), refused(Class::Business, true));
    let call = call(&b.stored());
    assert_eq!((call.position, call.result_of_action), (undo(0), None));
}

fn with(recovery: Recovery) -> PlannedStep {
    PlannedStep {
        recovery,
        ..step(0)
    }
}

#[test]
fn a_forward_only_step_is_retried_whatever_the_failure() {
    for class in [
        Class::Transient,
        Class::Business,
        Class::Persistent,
        Class::Unknown,
    ] {
        let (mut b, _) = Bench::claimed(vec![with(Recovery::ForwardOnly)], |c| c.attempts = 70);
        assert_eq!(parked(&write(&b.returned(failed(class)))).1, 71);
    }
}

#[test]
fn a_backward_first_step_is_not_retried() {
    let mut s = with(Recovery::BackwardFirst);
    s.retry = Retry::ACTION;
    let (mut b, _) = Bench::started(vec![s.clone()]);
    assert_eq!(
        settled(&write(&b.returned(failed(Class::Transient)))),
        "Compensated"
    );
    let (mut b, _) = Bench::started(vec![s]);
    assert_eq!(
        write(&b.returned(failed(Class::Unknown))).to,
        To::Next(undo(0))
    );
}

#[test]
fn an_irreversible_step_stops_with_an_alert() {
    for class in [Class::Business, Class::Persistent, Class::Unknown] {
        let (mut b, _) = Bench::started(vec![with(Recovery::Irreversible)]);
        let write = write(&b.returned(failed(class)));
        assert_eq!(settled(&write), "Terminated");
        assert_eq!(attempt(&write), refused(class, class == Class::Unknown));
        assert_eq!(b.stored(), stopped(Stopped::Settled(State::Terminated)));
    }
    let (mut b, _) = Bench::started(vec![with(Recovery::Irreversible)]);
    parked(&write(&b.returned(failed(Class::Transient))));
}

#[test]
fn an_irreversible_step_in_doubt_is_not_called_again() {
    let (_, orders) = Bench::claimed(vec![with(Recovery::Irreversible)], |c| c.doubt = true);
    assert_eq!(settled(&write(&orders)), "Terminated");
}

#[test]
fn a_result_that_cannot_be_stored_is_undone() {
    let (mut b, _) = Bench::started(steps(1));
    write(&b.returned(done("1")));
    let write = write(&b.answered(Written::Invalid(Text::new("no"))));
    assert_eq!((write.number, &write.to), (2, &To::Next(undo(0))));
    assert_eq!(attempt(&write), refused(Class::Persistent, true));
}

#[test]
fn a_record_that_is_refused_bare_stops_the_machine() {
    let (mut b, _) = Bench::started(steps(1));
    b.returned(failed(Class::Business));
    let why = Text::new("no");
    let got = b.answered(Written::Invalid(why.clone()));
    assert_eq!(got, stopped(Stopped::Refused(why)));
}

#[test]
fn a_transactional_steps_record_is_known_before_its_commit() {
    let (mut b, orders) = Bench::started(steps(2));
    let open = call(&orders);
    let mut foresight = Bench {
        tx: b.tx.clone(),
        now: b.now,
        open: vec![open],
        sent: None,
    };
    let foreseen = write(&foresight.returned(done("1")));
    assert_eq!(b.returned(done("1")), [Order::Write(foreseen)]);
    assert_eq!(call(&b.stored()).position, forward(1));
}
