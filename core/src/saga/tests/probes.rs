//! What may have been applied: asked about, repeated, or left to a person.

use alloc::{vec, vec::Vec};

use super::bench::*;
use crate::{
    saga::{Asked, Attempt, Class, Order, Outcome, PlannedStep, Recovery, Repeat},
    store::{Taken, To},
};

fn repeating(repeat: Repeat) -> Vec<PlannedStep> {
    vec![PlannedStep { repeat, ..step(0) }, step(1)]
}

/// Claimed with the action in doubt.
fn doubtful(steps: Vec<PlannedStep>) -> (Bench, Vec<Order>) {
    Bench::claimed(steps, |c| {
        c.taken = Taken::Orphaned;
        c.doubt = true;
    })
}

#[test]
fn an_action_in_doubt_is_probed_before_it_is_repeated() {
    let (mut b, orders) = doubtful(repeating(Repeat::Probe));
    assert_eq!(call(&orders).asked, Asked::Probe);
    let orders = b.returned(Outcome::NotApplied);
    assert_eq!(call(&orders).asked, Asked::Act);
    let refusal = write(&b.returned(failed(Class::Business)));
    assert_eq!(
        record(&refusal).1,
        refused(Class::Business, true),
        "the doubt stays"
    );
    assert_eq!(refusal.to, To::Next(undo(0)));
}

#[test]
fn without_a_doubt_nobody_is_asked() {
    let (_, orders) = Bench::started(repeating(Repeat::Probe));
    assert_eq!(call(&orders).asked, Asked::Act);
}

#[test]
fn an_action_found_applied_is_done_with_what_the_probe_gave() {
    let (mut b, _) = doubtful(repeating(Repeat::Probe));
    let write = write(&b.returned(done("7")));
    assert_eq!(record(&write).1, Attempt::Done(json("7")));
    assert_eq!(write.to, To::Next(forward(1)));
}

#[test]
fn a_probe_that_fails_counts_as_an_attempt_and_refuses_nothing() {
    for class in Class::ALL {
        let (mut b, _) = doubtful(repeating(Repeat::Probe));
        let pause = write(&b.returned(failed(class)));
        assert_eq!(record(&pause).1, paused(Class::Transient, true));
        let (_, attempts, doubt) = parked(&pause);
        assert_eq!((attempts, doubt), (1, true));
    }
}

#[test]
fn after_a_repeat_of_unknown_outcome_it_is_probed_again() {
    let (mut b, _) = doubtful(repeating(Repeat::Probe));
    b.returned(Outcome::NotApplied);
    let pause = write(&b.returned(failed(Class::Unknown)));
    assert_eq!(record(&pause).1, paused(Class::Unknown, true));
    let (_, orders) = Bench::claimed(repeating(Repeat::Probe), |c| {
        (c.doubt, c.attempts) = (true, 1);
        c.log = vec![pause.entry.unwrap()];
    });
    assert_eq!(call(&orders).asked, Asked::Probe);
}

#[test]
fn an_irreversible_action_in_doubt_is_called_again_only_when_it_was_not_applied() {
    let mut steps = repeating(Repeat::Probe);
    steps[0].recovery = Recovery::Irreversible;
    let (mut b, orders) = doubtful(steps.clone());
    assert_eq!(call(&orders).asked, Asked::Probe);
    assert_eq!(call(&b.returned(Outcome::NotApplied)).asked, Asked::Act);
    let (mut b, _) = doubtful(steps.clone());
    assert_eq!(write(&b.returned(done("7"))).to, To::Next(forward(1)));
    // A probe that hears nothing is asked again, up to the limit.
    let (mut b, _) = doubtful(steps.clone());
    parked(&write(&b.returned(failed(Class::Unknown))));
    let (mut b, _) = Bench::claimed(steps, |c| (c.doubt, c.attempts) = (true, 2));
    assert_eq!(
        settled(&write(&b.returned(failed(Class::Unknown)))),
        "Terminated"
    );
}

#[test]
fn what_must_not_be_repeated_goes_to_a_person_when_in_doubt() {
    let (_, orders) = doubtful(repeating(Repeat::Never));
    let end = write(&orders);
    assert_eq!(settled(&end), "Terminated");
    assert!(matches!(
        record(&end).1,
        Attempt::Refused { doubt: true, .. }
    ));
}

#[test]
fn what_must_not_be_repeated_is_retried_while_it_was_not_applied_for_certain() {
    let (mut b, orders) = Bench::started(repeating(Repeat::Never));
    assert_eq!(calls(&orders), [forward(0)]);
    parked(&write(&b.returned(failed(Class::Transient))));
    let (_, orders) = Bench::claimed(repeating(Repeat::Never), |c| c.attempts = 1);
    assert_eq!(calls(&orders), [forward(0)]);
}

#[test]
fn compensations_are_never_probed() {
    let (_, orders) = Bench::claimed(repeating(Repeat::Probe), |c| {
        c.position = undo(0);
        (c.taken, c.doubt) = (Taken::Orphaned, true);
        c.log = vec![
            entry(forward(0), Attempt::Done(json("1"))),
            entry(forward(1), refused(Class::Business, false)),
        ];
    });
    assert_eq!(call(&orders).asked, Asked::Act);
}

#[test]
fn in_a_group_each_member_has_its_own_probe() {
    let mut steps = group(0..2);
    steps[1].repeat = Repeat::Probe;
    let (mut b, orders) = doubtful(steps);
    assert_eq!(calls(&orders), [forward(0), forward(1)]);
    assert_eq!(
        (b.open[0].asked, b.open[1].asked),
        (Asked::Act, Asked::Probe)
    );
    assert_eq!(calls(&b.gave(1, Outcome::NotApplied)), [forward(1)]);
}

#[test]
fn what_must_not_be_repeated_stops_at_its_first_unknown_outcome() {
    let (mut b, _) = Bench::started(repeating(Repeat::Never));
    let end = write(&b.returned(failed(Class::Unknown)));
    assert_eq!(record(&end).1, refused(Class::Unknown, true));
    assert_eq!(settled(&end), "Terminated");
}

#[test]
fn a_group_that_stopped_for_a_doubt_is_not_sent_back_by_the_next_owner() {
    let mut steps = group(0..2);
    steps[0].repeat = Repeat::Never;
    let (mut b, orders) = Bench::claimed(steps, |c| {
        (c.taken, c.doubt) = (Taken::Orphaned, true);
        c.log = vec![entry(forward(0), refused(Class::Unknown, true))];
    });
    assert_eq!(record(&write(&orders)).0, forward(0));
    assert_eq!(settled(&write(&b.stored())), "Terminated");
}
