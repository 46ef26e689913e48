//! Decisions and guards: decided once, recorded before anything acts on it, passed in silence.

use alloc::{vec, vec::Vec};

use super::bench::*;
use crate::{
    saga::{Attempt, Class, Guard, Kind, PlannedStep, State, Stopped},
    store::{Taken, To},
};

/// 0 decides; 1 runs for "a", the group of 2 and 3 for "b"; 4 always.
fn branches() -> Vec<PlannedStep> {
    let guarded = |seq, case, group| PlannedStep {
        guards: vec![Guard {
            decision: 0,
            case: json(case),
        }],
        group,
        ..step(seq)
    };
    vec![
        kind(0, Kind::Decide),
        guarded(1, "\"a\"", None),
        guarded(2, "\"b\"", Some(1)),
        guarded(3, "\"b\"", Some(1)),
        step(4),
    ]
}

#[test]
fn what_is_decided_is_recorded_before_anything_acts_on_it() {
    let (mut b, orders) = Bench::started(branches());
    assert_eq!(calls(&orders), [forward(0)]);
    let write = write(&b.returned(done("\"b\"")));
    assert_eq!(record(&write), (forward(0), Attempt::Done(json("\"b\""))));
    assert_eq!(write.to, To::Next(forward(2)));
    assert_eq!(calls(&b.stored()), [forward(2), forward(3)]);
}

#[test]
fn a_recorded_decision_is_not_made_again() {
    for (case, open) in [("\"a\"", forward(1)), ("\"b\"", forward(2))] {
        let (_, orders) = Bench::claimed(branches(), |c| {
            c.position = open;
            c.log = vec![entry(forward(0), Attempt::Done(json(case)))];
        });
        assert_eq!(calls(&orders)[0], open);
    }
}

#[test]
fn a_case_that_guards_nothing_passes_all() {
    let (mut b, _) = Bench::started(branches());
    assert_eq!(write(&b.returned(done("\"c\""))).to, To::Next(forward(4)));
    assert_eq!(calls(&b.stored()), [forward(4)]);
    assert_eq!(settled(&write(&b.returned(done("4")))), "Completed");
}

#[test]
fn what_was_passed_is_passed_on_the_way_back() {
    let (mut b, _) = Bench::started(branches());
    b.step_done("\"a\"");
    b.step_done("1");
    let back = write(&b.returned(failed(Class::Business)));
    assert_eq!(back.to, To::Next(undo(1)), "2 and 3 were never reached");
    assert_eq!(calls(&b.stored()), [undo(1)]);
    b.returned(done("null"));
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}

#[test]
fn the_same_holds_after_a_claim() {
    let (mut b, orders) = Bench::claimed(branches(), |c| {
        c.position = undo(3);
        c.log = vec![
            entry(forward(0), Attempt::Done(json("\"b\""))),
            entry(forward(2), Attempt::Done(json("2"))),
            entry(forward(3), Attempt::Done(json("3"))),
            entry(forward(4), refused(Class::Business, false)),
        ];
    });
    assert_eq!(calls(&orders), [undo(3)]);
    assert_eq!(write(&b.returned(done("null"))).to, To::Next(undo(2)));
    assert_eq!(calls(&b.stored()), [undo(2)]);
    assert_eq!(settled(&write(&b.returned(done("null")))), "Compensated");
}

#[test]
fn a_group_of_which_one_member_passes_keeps_its_attempts() {
    let mut steps = branches();
    steps[3].guards[0].case = json("\"x\"");
    let (mut b, _) = Bench::started(steps.clone());
    b.step_done("\"b\"");
    let pause = write(&b.returned(failed(Class::Unknown)));
    let kept = pause.entry.unwrap();
    assert_eq!((kept.position, kept.attempts), (forward(2), 1));
    let (mut b, orders) = Bench::claimed(steps, |c| {
        c.position = forward(2);
        c.log = vec![entry(forward(0), Attempt::Done(json("\"b\""))), kept];
    });
    assert_eq!(call(&orders).attempt, 2);
    assert_eq!(
        write(&b.returned(failed(Class::Business))).to,
        To::Next(undo(2))
    );
}

#[test]
fn a_decision_in_doubt_is_only_made_again() {
    let (mut b, orders) = Bench::claimed(branches(), |c| {
        c.taken = Taken::Orphaned;
        c.doubt = true;
    });
    assert_eq!(calls(&orders), [forward(0)]);
    let end = write(&b.returned(failed(Class::Business)));
    assert_eq!(record(&end).1, refused(Class::Business, false));
    assert_eq!(settled(&end), "Compensated");
}

#[test]
fn a_decision_that_never_answers_leaves_no_doubt() {
    let mut steps = branches();
    steps[0].retry.attempts = Some(1);
    let mut first = vec![step(0)];
    steps[0].name = name(9);
    first.push(PlannedStep {
        guards: vec![],
        ..steps.remove(0)
    });
    first[1].name = name(1);
    let (mut b, _) = Bench::started(first);
    b.step_done("0");
    assert_eq!(
        write(&b.returned(failed(Class::Unknown))).to,
        To::Next(undo(0))
    );
    assert_eq!(calls(&b.stored()), [undo(0)]);
}
