//! Wake-ups: heard while running, kept while something else is asked, and what a cancel does at
//! each place.

use alloc::{vec, vec::Vec};

use super::bench::*;
use crate::{
    saga::{Attempt, Class, Hold, Input, Order, PlannedStep, Recovery, State, Stopped, Text},
    store::{To, Written},
};

/// Two steps, the first one done, the second one called.
fn calling() -> Bench {
    let (mut b, _) = Bench::started(steps(2));
    b.step_done("0");
    b
}

fn woken(b: &mut Bench) -> Vec<Order> {
    assert_eq!(b.check(Input::Woken { wake_seq: 1 }), [Order::Hear]);
    b.heard(1, vec![cancel()])
}

#[test]
fn a_wake_up_told_by_the_lease_is_read_at_once() {
    let mut b = calling();
    assert_eq!(b.check(Input::Woken { wake_seq: 2 }), [Order::Hear]);
    assert_eq!(b.heard(2, vec![]), []);
    assert_eq!(b.check(Input::Woken { wake_seq: 2 }), [], "it is known");
}

#[test]
fn an_answer_that_comes_while_the_wake_ups_are_read_is_recorded_afterwards() {
    let mut b = calling();
    b.check(Input::Woken { wake_seq: 1 });
    assert_eq!(b.returned(done("1")), []);
    assert_eq!(settled(&write(&b.heard(1, vec![]))), "Completed");
}

#[test]
fn wake_ups_during_a_write_are_read_after_it() {
    let mut b = calling();
    b.returned(failed(Class::Unknown));
    assert_eq!(b.check(Input::Woken { wake_seq: 1 }), []);
    assert_eq!(b.answered(Written::Woken { wake_seq: 1 }), [Order::Hear]);
    let again = write(&b.heard(1, vec![]));
    assert_eq!((again.wake_seq, parked(&again).1), (1, 1));
}

#[test]
fn more_wake_ups_during_the_reading_are_read_as_well() {
    let mut b = calling();
    b.check(Input::Woken { wake_seq: 1 });
    assert_eq!(b.check(Input::Woken { wake_seq: 2 }), []);
    assert_eq!(b.heard(1, vec![]), [Order::Hear]);
    assert_eq!(b.heard(2, vec![cancel()]), []);
    assert_eq!(b.heard(2, vec![]), [], "nobody asked");
    assert_eq!(write(&b.returned(done("1"))).to, To::Next(undo(1)));
}

#[test]
fn a_wake_up_does_not_cut_a_pause_short() {
    let mut b = calling();
    let first = write(&b.returned(failed(Class::Unknown)));
    b.answered(Written::Woken { wake_seq: 1 });
    let again = write(&b.heard(1, vec![signalled(1, "1")]));
    assert_eq!(again.to, first.to);
    assert_eq!(b.stored(), stopped(Stopped::Parked));
}

#[test]
fn a_cancel_before_the_first_call_compensates_nothing() {
    let (mut b, orders) = Bench::claimed(steps(2), |c| c.wakes = vec![cancel()]);
    let end = write(&orders);
    assert_eq!(record(&end).1, refused(Class::Business, false));
    assert_eq!(settled(&end), "Compensated");
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}

#[test]
fn a_cancel_while_a_step_is_called_waits_for_it_and_undoes_it() {
    let mut b = calling();
    assert_eq!(woken(&mut b), []);
    let back = write(&b.returned(done("1")));
    assert_eq!(record(&back).1, Attempt::Done(json("1")));
    assert_eq!(back.to, To::Next(undo(1)));
}

#[test]
fn a_cancelled_step_that_fails_is_not_retried() {
    for (class, to) in [(Class::Transient, undo(0)), (Class::Unknown, undo(1))] {
        let mut b = calling();
        woken(&mut b);
        let back = write(&b.returned(failed(class)));
        assert_eq!(record(&back).1, refused(class, class == Class::Unknown));
        assert_eq!(back.to, To::Next(to));
    }
}

#[test]
fn a_cancel_between_inline_retries_ends_them() {
    let mut steps = steps(2);
    steps[1].retry.inline = 2;
    let (mut b, _) = Bench::started(steps);
    b.step_done("0");
    assert_eq!(b.returned(failed(Class::Transient)), []);
    let back = write(&woken(&mut b));
    assert_eq!(record(&back).1, refused(Class::Business, false));
    assert_eq!(back.to, To::Next(undo(0)));
}

#[test]
fn a_cancel_of_a_parked_step_in_doubt_undoes_it() {
    let (_, orders) = Bench::claimed(steps(1), |c| {
        (c.doubt, c.attempts) = (true, 2);
        (c.wake_seq, c.wakes) = (1, vec![cancel()]);
        c.log = vec![entry(forward(0), paused(Class::Unknown, true))];
    });
    let back = write(&orders);
    assert_eq!(record(&back).1, refused(Class::Business, true));
    assert_eq!(back.to, To::Next(undo(0)));
}

#[test]
fn a_cancel_of_what_waits_for_a_target_or_a_signal_goes_back_at_once() {
    let mut b = calling();
    let target = "bank".into();
    let after = HOUR;
    b.held(Hold::Target { target, after });
    b.answered(Written::Woken { wake_seq: 1 });
    assert_eq!(write(&b.heard(1, vec![cancel()])).to, To::Next(undo(0)));
    let (mut b, _) = Bench::started(vec![step(0), signal(1, 60, None)]);
    b.step_done("0");
    b.answered(Written::Woken { wake_seq: 1 });
    assert_eq!(write(&b.heard(1, vec![cancel()])).to, To::Next(undo(0)));
}

#[test]
fn a_cancel_during_the_last_record_goes_back_instead_of_completing() {
    let mut b = calling();
    assert_eq!(settled(&write(&b.returned(done("1")))), "Completed");
    assert_eq!(b.answered(Written::Woken { wake_seq: 1 }), [Order::Hear]);
    let back = write(&b.heard(1, vec![cancel()]));
    assert_eq!(record(&back), (forward(1), Attempt::Done(json("1"))));
    assert_eq!(back.to, To::Next(undo(1)));
}

#[test]
fn a_cancel_while_compensating_changes_nothing() {
    let (mut b, orders) = Bench::claimed(steps(2), |c| {
        c.position = undo(0);
        c.wakes = vec![cancel()];
        c.log = vec![
            entry(forward(0), Attempt::Done(json("0"))),
            entry(forward(1), refused(Class::Business, false)),
        ];
    });
    assert_eq!(calls(&orders), [undo(0)]);
    assert!(parked(&write(&b.returned(failed(Class::Transient)))).0 < HOUR);
}

#[test]
fn a_cancel_is_told_as_the_reason_of_the_end() {
    let (_, orders) = Bench::claimed(steps(1), |c| c.wakes = vec![cancel()]);
    let ending = crate::saga::Ending::Compensated;
    let why = Some(Text::new("no"));
    assert_eq!(write(&orders).to, To::Settle { ending, why });
}

#[test]
fn a_cancelled_group_gives_every_member_its_outcome() {
    let (mut b, _) = Bench::started(group(0..3));
    b.gave(0, done("0"));
    b.stored();
    b.check(Input::Woken { wake_seq: 1 });
    assert_eq!(b.heard(1, vec![cancel()]), []);
    let second = write(&b.gave(1, failed(Class::Transient)));
    assert_eq!(record(&second).1, refused(Class::Transient, false));
    b.stored();
    let last = write(&b.gave(2, done("2")));
    assert_eq!(last.to, To::Next(undo(2)));
}

#[test]
fn a_cancel_of_a_draining_process_is_left_to_the_next_one_at_once() {
    let mut b = calling();
    b.returned(failed(Class::Unknown));
    b.check(Input::Drained);
    b.answered(Written::Woken { wake_seq: 1 });
    let (attempts, doubt) = (1, true);
    let handed = write(&b.heard(1, vec![cancel()]));
    assert_eq!(handed.to, To::HandBack { attempts, doubt });
}

#[test]
fn a_cancel_arriving_at_a_step_that_cannot_be_undone_needs_a_person() {
    let mut all: Vec<PlannedStep> = steps(2);
    (all[0].recovery, all[0].compensate) = (Recovery::Irreversible, None);
    let (mut b, orders) = Bench::claimed(all, |c| {
        c.position = forward(1);
        c.wakes = vec![cancel()];
        c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
    });
    assert_eq!(write(&orders).to, To::Next(undo(0)));
    assert_eq!(settled(&write(&b.stored())), "Terminated");
}
