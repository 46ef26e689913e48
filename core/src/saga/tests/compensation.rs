//! Compensations: where they start, their order, how they end.

use alloc::{vec, vec::Vec};

use super::bench::*;
use crate::{
    saga::{Attempt, Class, PlannedStep, Recovery, State, Stopped, Text},
    store::{To, Written},
};

/// Steps 0 … n−1 are done, the next one was refused: the first compensation is open.
fn compensating(mut all: Vec<PlannedStep>) -> (Bench, Vec<crate::saga::Order>) {
    let n = u32::try_from(all.len()).unwrap();
    all.push(step(n));
    Bench::claimed(all, |c| {
        c.position = undo(n - 1);
        c.log = (0..n)
            .map(|k| entry(forward(k), Attempt::Done(json("10"))))
            .chain([entry(forward(n), refused(Class::Business, false))])
            .collect();
    })
}

#[test]
fn compensations_walk_down_one_by_one_with_the_actions_results() {
    let (mut b, orders) = compensating(steps(3));
    let first = call(&orders);
    assert_eq!(
        (first.position, first.result_of_action),
        (undo(2), Some(json("10")))
    );
    assert_eq!(
        first.key.as_str(),
        "01900000-0000-8000-8000-000000000001/compensating/s2"
    );
    let second = call(&b.step_done("null"));
    assert_eq!((second.position, second.results.len()), (undo(1), 1));
    assert_eq!(call(&b.step_done("null")).position, undo(0));
    let last = write(&b.returned(done("null")));
    assert_eq!(settled(&last), "Compensated");
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}

#[test]
fn a_step_without_compensation_is_recorded_and_passed() {
    let mut all = steps(3);
    all[1].compensate = None;
    let (mut b, _) = compensating(all);
    let passing = write(&b.step_done("null"));
    assert_eq!((passing.from, &passing.to), (undo(1), &To::Next(undo(0))));
    assert_eq!(attempt(&passing), Attempt::Skipped);
    assert_eq!(call(&b.stored()).position, undo(0));
}

#[test]
fn a_retryable_failure_pauses_the_compensation_in_place() {
    for class in [Class::Transient, Class::Unknown] {
        let (mut b, _) = compensating(steps(2));
        let write = write(&b.returned(failed(class)));
        assert_eq!((write.from, parked(&write).1), (undo(1), 1));
        assert_eq!(b.stored(), stopped(Stopped::Parked));
    }
}

#[test]
fn a_compensation_has_no_limit_of_attempts_unless_it_is_given_one() {
    let late = |all| {
        Bench::claimed(all, |c| {
            c.position = undo(0);
            c.attempts = 500;
            c.log = vec![entry(forward(0), refused(Class::Unknown, true))];
        })
    };
    let (mut b, _) = late(steps(1));
    assert_eq!(parked(&write(&b.returned(failed(Class::Transient)))).1, 501);
    let mut all = steps(1);
    all[0].compensate.as_mut().unwrap().attempts = Some(501);
    let (mut b, _) = late(all);
    assert_eq!(
        settled(&write(&b.returned(failed(Class::Transient)))),
        "Terminated"
    );
}

#[test]
fn a_refused_compensation_terminates_and_touches_nothing_below() {
    for class in [Class::Business, Class::Persistent] {
        let (mut b, _) = compensating(steps(3));
        let write = write(&b.returned(failed(class)));
        assert_eq!(
            (write.from, settled(&write).as_str()),
            (undo(2), "Terminated")
        );
        assert_eq!(attempt(&write), refused(class, false));
        assert_eq!(b.stored(), stopped(Stopped::Settled(State::Terminated)));
    }
}

#[test]
fn a_restored_compensation_goes_on_where_it_stopped() {
    let (_, orders) = Bench::claimed(steps(2), |c| {
        c.position = undo(0);
        c.log = vec![
            entry(forward(0), Attempt::Done(json("10"))),
            entry(forward(1), refused(Class::Business, false)),
            entry(undo(0), refused(Class::Persistent, false)),
        ];
    });
    let call = call(&orders);
    assert_eq!(
        (call.position, call.result_of_action),
        (undo(0), Some(json("10")))
    );
}

#[test]
fn a_done_compensation_is_never_called_again() {
    let (_, orders) = Bench::claimed(steps(3), |c| {
        c.position = undo(0);
        c.log = vec![
            entry(forward(0), Attempt::Done(json("10"))),
            entry(forward(1), Attempt::Done(json("11"))),
            entry(forward(2), refused(Class::Business, false)),
            entry(undo(1), Attempt::Done(json("null"))),
        ];
    });
    assert_eq!(call(&orders).position, undo(0));
}

#[test]
fn an_irreversible_step_that_is_done_halts_the_way_back() {
    let mut all = steps(2);
    all[1].recovery = Recovery::Irreversible;
    all[1].compensate = None;
    let (_, orders) = compensating(all);
    assert_eq!(settled(&write(&orders)), "Terminated");
}

#[test]
fn a_compensations_result_that_cannot_be_stored_is_left_out() {
    let (mut b, _) = compensating(steps(1));
    write(&b.returned(done("1")));
    let again = write(&b.answered(Written::Invalid(Text::new("no"))));
    assert_eq!(attempt(&again), Attempt::Done(json("null")));
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}
