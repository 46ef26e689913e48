//! Timers, signals with a deadline, and transactions started by a step.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::bench::*;
use crate::{
    machine::Machine,
    saga::{
        Attempt, Class, Input, Kind, Order, Outcome, PlannedStep, Recovery, State, Stopped, Text,
    },
    store::{Taken, To, Written},
    time::Wall,
};

const MINUTE: Duration = Duration::from_secs(60);

fn sub() -> Vec<PlannedStep> {
    vec![step(0), kind(1, Kind::Saga), step(2)]
}

/// Claimed at the sub-saga with these wake-ups.
fn at_sub(wakes: Vec<crate::saga::Wake>) -> (Bench, Vec<Order>) {
    Bench::claimed(sub(), |c| {
        c.position = forward(1);
        (c.wake_seq, c.wakes) = (1, wakes);
        c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
    })
}

/// Claimed at the sub-saga's compensation, its action done.
fn back_at_sub(wakes: Vec<crate::saga::Wake>) -> (Bench, Vec<Order>) {
    Bench::claimed(sub(), |c| {
        c.position = undo(1);
        c.wakes = wakes;
        c.log = vec![
            entry(forward(0), Attempt::Done(json("0"))),
            entry(forward(1), Attempt::Done(json("1"))),
            entry(forward(2), refused(Class::Business, false)),
        ];
    })
}

#[test]
fn a_timer_parks_until_its_end_and_is_done() {
    let (_, orders) = Bench::started(vec![timer(0, 60), step(1)]);
    let park = write(&orders);
    assert_eq!((parked(&park), park.entry), ((MINUTE, 0, false), None));
    let (_, orders) = Bench::claimed(vec![timer(0, 60), step(1)], |c| {
        c.claimed_at = Wall(61_000);
    });
    let end = write(&orders);
    assert_eq!(record(&end).1, Attempt::Done(json("null")));
    assert_eq!(end.to, To::Next(forward(1)));
}

#[test]
fn a_timer_counts_from_when_it_was_reached_whoever_claims_it() {
    let (_, orders) = Bench::claimed(vec![timer(0, 60)], |c| c.claimed_at = Wall(41_000));
    assert_eq!(parked(&write(&orders)).0, Duration::from_secs(20));
}

#[test]
fn a_timer_reached_here_counts_from_the_answer_to_its_intent() {
    let (mut b, _) = Bench::started(vec![step(0), timer(1, 60)]);
    b.pass(MINUTE);
    assert_eq!(parked(&write(&b.step_done("0"))).0, MINUTE);
}

#[test]
fn the_last_second_of_a_wait_is_waited_for_here() {
    let (mut b, orders) = Bench::claimed(vec![timer(0, 60)], |c| c.claimed_at = Wall(60_500));
    assert_eq!(orders, []);
    assert_eq!(settled(&write(&b.woke())), "Completed");
    assert_eq!(b.now.mono.0, 1_500);
}

#[test]
fn a_timer_that_ends_while_a_sibling_is_called_is_recorded_at_once() {
    let mut steps = vec![timer(0, 60), step(1)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    let (mut b, orders) = Bench::started(steps);
    assert_eq!(calls(&orders), [forward(1)]);
    let end = write(&b.woke());
    assert_eq!((record(&end).0, &end.to), (forward(0), &To::Stay));
}

#[test]
fn a_signal_that_came_before_is_not_waited_for() {
    let (mut b, _) = Bench::started(vec![step(0), signal(1, 60, None)]);
    b.returned(done("0"));
    assert_eq!(b.stored_with(1), [Order::Hear]);
    let end = write(&b.heard(1, vec![signalled(1, "true")]));
    assert_eq!(record(&end), (forward(1), Attempt::Done(json("true"))));
    let result = json("true");
    let ending = crate::saga::Ending::Completed(result);
    assert_eq!(end.to, To::Settle { ending, why: None });
}

#[test]
fn a_signal_is_waited_for_and_the_first_one_counts() {
    let (mut b, orders) = Bench::started(vec![signal(0, 60, None)]);
    assert_eq!(parked(&write(&orders)), (MINUTE, 0, false));
    assert_eq!(b.stored(), stopped(Stopped::Parked));
    let (_, orders) = Bench::claimed(vec![signal(0, 60, None)], |c| {
        c.wake_seq = 3;
        c.wakes = vec![signalled(5, "0"), signalled(0, "1"), signalled(0, "2")];
    });
    assert_eq!(record(&write(&orders)).1, Attempt::Done(json("1")));
}

#[test]
fn a_signal_between_the_decision_to_park_and_the_parking_is_not_lost() {
    let (mut b, _) = Bench::started(vec![signal(0, 60, None)]);
    assert_eq!(b.answered(Written::Woken { wake_seq: 1 }), [Order::Hear]);
    let end = write(&b.heard(1, vec![signalled(0, "1")]));
    assert_eq!(
        (record(&end).1, end.wake_seq),
        (Attempt::Done(json("1")), 1)
    );
}

#[test]
fn without_a_signal_the_default_is_the_result() {
    let (_, orders) = Bench::claimed(vec![signal(0, 60, Some("false")), step(1)], |c| {
        c.claimed_at = Wall(61_000);
    });
    let end = write(&orders);
    assert_eq!(record(&end).1, Attempt::Done(json("false")));
    assert_eq!(end.to, To::Next(forward(1)));
}

#[test]
fn without_signal_and_default_it_is_refused_and_compensated() {
    let (_, orders) = Bench::claimed(vec![step(0), signal(1, 60, None)], |c| {
        c.position = forward(1);
        c.claimed_at = Wall(61_000);
        c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
    });
    let end = write(&orders);
    let error = Text::new("no signal s1 within 60s");
    let class = Class::Business;
    assert_eq!(
        record(&end).1,
        Attempt::Refused {
            class,
            error,
            doubt: false
        }
    );
    assert_eq!(end.to, To::Next(undo(0)));
}

#[test]
fn a_deadline_at_a_step_that_never_goes_back_goes_to_a_person() {
    let mut late = signal(0, 60, None);
    late.recovery = Recovery::ForwardOnly;
    let (_, orders) = Bench::claimed(vec![late], |c| c.claimed_at = Wall(61_000));
    assert_eq!(settled(&write(&orders)), "Terminated");
}

#[test]
fn a_signal_in_time_counts_although_it_is_read_after_the_deadline() {
    let (_, orders) = Bench::claimed(vec![signal(0, 60, None)], |c| {
        c.claimed_at = Wall(99_000);
        c.wakes = vec![signalled(0, "1")];
    });
    assert_eq!(record(&write(&orders)).1, Attempt::Done(json("1")));
}

#[test]
fn a_signal_without_a_deadline_is_waited_for_until_the_lifetime_ends() {
    let within = None;
    let otherwise = None;
    let (_, orders) = Bench::started(vec![kind(0, Kind::Signal { within, otherwise })]);
    assert_eq!(parked(&write(&orders)).0, HOUR);
}

#[test]
fn the_end_of_the_nearest_wait_ends_the_pause_of_a_group_that_waits() {
    let mut steps = vec![timer(0, 60), signal(1, 30, None)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    let (_, orders) = Bench::started(steps);
    assert_eq!(parked(&write(&orders)).0, Duration::from_secs(30));
}

#[test]
fn a_sub_saga_is_started_and_waited_for() {
    let (mut b, orders) = at_sub(vec![]);
    assert_eq!(calls(&orders), [forward(1)]);
    let park = write(&b.returned(Outcome::Waits));
    let (after, attempts, doubt) = parked(&park);
    assert_eq!((after, attempts, doubt), (HOUR, 0, false));
    assert_eq!(b.stored(), stopped(Stopped::Parked));
}

#[test]
fn a_sub_sagas_result_is_the_steps() {
    let (_, orders) = at_sub(vec![child(1, Ok("7"))]);
    let end = write(&orders);
    assert_eq!(record(&end), (forward(1), Attempt::Done(json("7"))));
    assert_eq!(end.to, To::Next(forward(2)));
}

#[test]
fn a_sub_saga_undone_is_a_refusal_without_a_doubt() {
    let (_, orders) = at_sub(vec![child(1, Err("no"))]);
    let end = write(&orders);
    assert_eq!(record(&end).1, refused(Class::Business, false));
    assert_eq!(
        end.to,
        To::Next(undo(0)),
        "what is undone already is not undone again"
    );
}

#[test]
fn a_sub_saga_that_ended_before_the_pause_is_not_waited_for() {
    let (mut b, _) = at_sub(vec![]);
    b.returned(Outcome::Waits);
    assert_eq!(b.answered(Written::Woken { wake_seq: 2 }), [Order::Hear]);
    let end = write(&b.heard(2, vec![child(1, Ok("7"))]));
    assert_eq!(record(&end).1, Attempt::Done(json("7")));
}

#[test]
fn an_end_heard_of_while_the_start_is_called_is_not_lost() {
    let (mut b, _) = at_sub(vec![]);
    b.check(Input::Woken { wake_seq: 2 });
    assert_eq!(b.heard(2, vec![child(1, Ok("7"))]), []);
    let end = write(&b.returned(Outcome::Waits));
    assert_eq!(record(&end).1, Attempt::Done(json("7")));
    // Being undone, its first end is not the one that is waited for.
    let (mut b, _) = back_at_sub(vec![child(1, Ok("1"))]);
    b.check(Input::Woken { wake_seq: 2 });
    b.heard(2, vec![child(1, Ok("1")), child(1, Err("undone"))]);
    let end = write(&b.returned(Outcome::Waits));
    assert_eq!(record(&end), (undo(1), Attempt::Done(json("null"))));
}

#[test]
fn a_parent_cancelled_while_its_sub_saga_runs_undoes_it() {
    let (mut b, orders) = at_sub(vec![cancel()]);
    let end = write(&orders);
    assert_eq!(
        record(&end).1,
        refused(Class::Business, true),
        "an earlier claim may have started it"
    );
    assert_eq!(end.to, To::Next(undo(1)));
    assert_eq!(calls(&b.stored_with(1)), [undo(1)]);
    parked(&write(&b.returned(Outcome::Waits)));
    b.answered(Written::Woken { wake_seq: 2 });
    let end = write(&b.heard(2, vec![cancel(), child(1, Err("cancelled"))]));
    assert_eq!(record(&end), (undo(1), Attempt::Done(json("null"))));
    assert_eq!(end.to, To::Next(undo(0)));
}

#[test]
fn a_completed_sub_saga_is_undone_by_its_own_compensation() {
    let (mut b, orders) = back_at_sub(vec![child(1, Ok("1"))]);
    let undoing = call(&orders);
    assert_eq!(
        (undoing.position, undoing.result_of_action),
        (undo(1), Some(json("1")))
    );
    parked(&write(&b.returned(Outcome::Waits)));
    let (_, orders) = back_at_sub(vec![child(1, Ok("1")), child(1, Err("undone"))]);
    assert_eq!(write(&orders).to, To::Next(undo(0)));
}

#[test]
fn the_failures_before_a_wait_are_no_reason_to_hold_back_its_end() {
    let (mut b, _) = Bench::claimed(sub(), |c| {
        c.position = forward(1);
        c.attempts = 2;
        c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
    });
    let (_, attempts, _) = parked(&write(&b.returned(Outcome::Waits)));
    assert_eq!(attempts, 0);
}

#[test]
fn what_has_no_effect_is_never_in_doubt() {
    let (mut b, orders) = Bench::claimed(vec![step(0), signal(1, 60, None)], |c| {
        c.position = forward(1);
        (c.taken, c.doubt) = (Taken::Orphaned, true);
        c.wakes = vec![cancel()];
        c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
    });
    assert_eq!(record(&write(&orders)).1, refused(Class::Business, false));
    assert_eq!(calls(&b.stored()), [undo(0)]);
    b.returned(done("null"));
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}

#[test]
fn a_failed_group_gives_up_its_timers_and_signals_as_never_called() {
    let mut steps = vec![step(0), timer(1, 60), signal(2, 60, None)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    let (mut b, _) = Bench::claimed(steps, |c| (c.taken, c.doubt) = (Taken::Orphaned, true));
    b.gave(0, failed(Class::Business));
    assert_eq!(record(&write(&b.stored())), (forward(1), Attempt::Skipped));
    let last = write(&b.stored());
    assert_eq!(record(&last), (forward(2), Attempt::Skipped));
    assert_eq!(last.to, To::Next(undo(0)));
}

#[test]
fn a_group_given_up_undoes_the_sub_saga_that_it_started() {
    let mut steps = vec![step(0), kind(1, Kind::Saga)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    let (mut b, _) = Bench::started(steps);
    assert_eq!(b.gave(1, Outcome::Waits), []);
    b.gave(0, failed(Class::Business));
    let last = write(&b.stored());
    assert!(matches!(
        record(&last).1,
        Attempt::Refused { doubt: true, .. }
    ));
    assert_eq!(last.to, To::Next(undo(1)));
}

#[test]
fn while_it_waits_beside_a_call_a_drain_waits_for_the_call() {
    let mut steps = vec![step(0), signal(1, 60, None)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    let (mut b, _) = Bench::started(steps);
    assert_eq!(b.check(Input::Drained), []);
    assert_eq!(record(&write(&b.gave(0, done("0")))).0, forward(0));
    assert_eq!(parked(&write(&b.stored())), (MINUTE, 0, false));
    assert_eq!(b.stored(), stopped(Stopped::Parked));
    assert!(b.tx.wake_at().mono.is_none());
}

#[test]
fn a_stopped_group_tells_that_its_sub_saga_may_have_been_started() {
    let mut steps = vec![step(0), kind(1, Kind::Saga)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    steps[0].recovery = Recovery::Irreversible;
    let (mut b, _) = Bench::started(steps);
    b.gave(1, Outcome::Waits);
    b.gave(0, failed(Class::Business));
    let note = write(&b.stored());
    assert!(matches!(record(&note), (of, Attempt::Paused { doubt: true, .. }) if of == forward(1)));
    assert_eq!(settled(&write(&b.stored())), "Terminated");
}
