//! Parallel groups: called together, recorded one by one, given up together.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::bench::*;
use crate::{
    saga::{
        Attempt, Class, Hold, Input, Order, Outcome, PlannedStep, Recovery, Retry, State, Stopped,
        Text,
    },
    store::{Taken, To},
};

fn down() -> Hold {
    Hold::Target {
        target: "bank".into(),
        after: Duration::from_secs(5),
    }
}

fn asks_for(seconds: u64) -> Outcome {
    Outcome::Failed {
        class: Class::Unknown,
        error: Text::new("no"),
        retry_after: Some(Duration::from_secs(seconds)),
    }
}

#[test]
fn a_group_calls_all_its_members_at_once() {
    let (_, orders) = Bench::started(group(0..3));
    assert_eq!(calls(&orders), [forward(0), forward(1), forward(2)]);
}

#[test]
fn each_result_is_a_record_and_the_last_one_the_next_intent() {
    let mut steps = group(0..2);
    steps.push(step(2));
    let (mut b, _) = Bench::started(steps);
    let first = write(&b.gave(1, done("1")));
    assert_eq!((first.from, &first.to), (forward(0), &To::Stay));
    assert_eq!(record(&first), (forward(1), Attempt::Done(json("1"))));
    assert_eq!(b.stored(), []);
    let last = write(&b.gave(0, done("0")));
    assert_eq!(last.to, To::Next(forward(2)));
    let next = call(&b.stored());
    let results = vec![(name(0), json("0")), (name(1), json("1"))];
    assert_eq!((next.position, next.results), (forward(2), results));
}

#[test]
fn results_that_come_during_a_write_are_recorded_after_it() {
    let (mut b, _) = Bench::started(group(0..3));
    b.gave(2, done("2"));
    assert_eq!(b.gave(0, done("0")), []);
    assert_eq!(b.gave(1, done("1")), []);
    assert_eq!(record(&write(&b.stored())).0, forward(0));
    assert_eq!(settled(&write(&b.stored())), "Completed");
}

#[test]
fn after_a_failure_no_sibling_starts_and_what_is_in_flight_is_waited_for() {
    let mut steps = group(0..3);
    steps[1].retry.inline = 1;
    let (mut b, _) = Bench::started(steps);
    assert_eq!(b.gave(1, failed(Class::Transient)), []);
    let refusal = write(&b.gave(0, failed(Class::Business)));
    assert_eq!(
        record(&refusal),
        (forward(0), refused(Class::Business, false))
    );
    let given_up = write(&b.stored());
    let (of, attempt) = record(&given_up);
    assert_eq!((of, &given_up.to), (forward(1), &To::Stay));
    assert!(matches!(attempt, Attempt::Refused { doubt: false, .. }));
    assert_eq!(b.stored(), []);
    let last = write(&b.gave(2, done("2")));
    assert_eq!(last.to, To::Next(undo(2)));
    assert_eq!(calls(&b.stored()), [undo(2)]);
    b.returned(done("null"));
    assert_eq!(b.stored(), stopped(Stopped::Settled(State::Compensated)));
}

#[test]
fn a_sibling_that_fails_in_a_failed_group_is_not_retried() {
    let (mut b, _) = Bench::started(group(0..2));
    b.gave(0, failed(Class::Business));
    b.stored();
    let last = write(&b.gave(1, failed(Class::Unknown)));
    assert_eq!(record(&last).1, refused(Class::Unknown, true));
    assert_eq!(last.to, To::Next(undo(1)));
}

#[test]
fn a_member_never_called_is_skipped_and_one_in_doubt_is_refused_in_doubt() {
    let (mut b, _) = Bench::started(group(0..3));
    let call = b.took(0);
    assert_eq!(b.check(Input::Held { call, by: down() }), []);
    assert_eq!(b.gave(1, failed(Class::Unknown)), []);
    b.gave(2, failed(Class::Business));
    let first = write(&b.stored());
    assert_eq!(record(&first), (forward(0), Attempt::Skipped));
    let second = write(&b.stored());
    assert_eq!(record(&second), (forward(1), refused(Class::Unknown, true)));
    assert_eq!(second.to, To::Next(undo(1)));
}

#[test]
fn compensation_walks_a_group_down_one_at_a_time_over_what_may_be_applied() {
    let mut steps = vec![step(0)];
    steps.extend(group(1..5));
    let (mut b, orders) = Bench::claimed(steps, |c| {
        c.position = undo(4);
        c.log = vec![
            entry(forward(0), Attempt::Done(json("0"))),
            entry(forward(1), refused(Class::Unknown, true)),
            entry(forward(2), refused(Class::Business, false)),
            entry(forward(3), Attempt::Skipped),
            entry(forward(4), Attempt::Done(json("4"))),
        ];
    });
    assert_eq!(calls(&orders), [undo(4)]);
    assert_eq!(write(&b.returned(done("null"))).to, To::Next(undo(1)));
    assert_eq!(call(&b.stored()).result_of_action, None);
    assert_eq!(write(&b.returned(done("null"))).to, To::Next(undo(0)));
}

#[test]
fn a_long_retry_after_is_honoured_beside_a_short_pause() {
    let (mut b, _) = Bench::started(group(0..2));
    b.gave(0, asks_for(600));
    b.gave(1, failed(Class::Unknown));
    b.stored();
    let (after, ..) = parked(b.sent.as_ref().unwrap());
    assert_eq!(after, Duration::from_secs(600));
}

#[test]
fn the_pauses_of_several_members_are_all_recorded() {
    let (mut b, _) = Bench::started(group(0..3));
    b.gave(0, failed(Class::Unknown));
    b.gave(1, failed(Class::Transient));
    let first = write(&b.gave(2, failed(Class::Unknown)));
    assert_eq!(
        (&first.to, record(&first)),
        (&To::Stay, (forward(0), paused(Class::Unknown, true)))
    );
    let second = write(&b.stored());
    assert_eq!(
        (&second.to, record(&second)),
        (&To::Stay, (forward(1), paused(Class::Transient, false)))
    );
    let last = write(&b.stored());
    assert_eq!(record(&last), (forward(2), paused(Class::Unknown, true)));
    let (_, _, everybody) = parked(&last);
    assert!(!everybody, "each doubt stands in the log");
    assert_eq!(b.stored(), stopped(Stopped::Parked));
}

#[test]
fn attempts_and_doubt_of_each_member_survive_the_claim() {
    let (mut b, orders) = Bench::claimed(group(0..2), |c| {
        let two = |position, doubt| {
            let mut entry = entry(position, paused(Class::Unknown, doubt));
            entry.attempts = 2;
            entry
        };
        c.log = vec![two(forward(0), true)];
    });
    assert_eq!(calls(&orders), [forward(0), forward(1)]);
    assert_eq!((b.open[0].attempt, b.open[1].attempt), (3, 1));
    let first = write(&b.gave(0, failed(Class::Transient)));
    assert_eq!(
        record(&first),
        (forward(0), refused(Class::Transient, true))
    );
    b.stored();
    let last = write(&b.gave(1, failed(Class::Business)));
    assert_eq!(record(&last), (forward(1), refused(Class::Business, false)));
    assert_eq!(last.to, To::Next(undo(0)));
}

#[test]
fn a_drain_waits_for_the_member_that_is_being_called() {
    let (mut b, _) = Bench::started(group(0..2));
    b.gave(0, failed(Class::Unknown));
    assert_eq!(b.check(Input::Drained), []);
    let note = write(&b.gave(1, failed(Class::Transient)));
    assert_eq!(record(&note).0, forward(0));
    assert_eq!(record(&write(&b.stored())).0, forward(1));
    assert!(matches!(write(&b.stored()).to, To::Park { .. }));
}

#[test]
fn a_doubt_is_noted_before_the_group_is_handed_back() {
    let mut steps = group(0..2);
    steps[1].retry.inline = 1;
    let (mut b, _) = Bench::started(steps);
    b.gave(0, failed(Class::Unknown));
    b.gave(1, failed(Class::Transient));
    let note = write(&b.check(Input::Drained));
    assert_eq!(record(&note), (forward(0), paused(Class::Unknown, true)));
    assert_eq!(record(&write(&b.stored())).0, forward(1));
    let doubt = false;
    let attempts = 1;
    assert_eq!(write(&b.stored()).to, To::HandBack { attempts, doubt });
}

#[test]
fn a_group_given_up_is_handed_back_whatever_pauses_in_it() {
    let (mut b, _) = Bench::started(group(0..2));
    b.gave(0, asks_for(600));
    b.gave(1, failed(Class::Business));
    b.check(Input::Drained);
    assert_eq!(record(&write(&b.stored())).0, forward(0));
    assert!(matches!(write(&b.stored()).to, To::HandBack { .. }));
}

#[test]
fn an_orphaned_groups_open_members_are_in_doubt_and_the_recorded_are_not_called() {
    let (mut b, orders) = Bench::claimed(group(0..3), |c| {
        c.taken = Taken::Orphaned;
        c.doubt = true;
        c.log = vec![entry(forward(1), Attempt::Done(json("1")))];
    });
    assert_eq!(calls(&orders), [forward(0), forward(2)]);
    b.gave(0, failed(Class::Transient));
    let first = write(&b.gave(2, failed(Class::Business)));
    assert_eq!(record(&first), (forward(2), refused(Class::Business, true)));
    let last = write(&b.stored());
    assert_eq!(record(&last), (forward(0), refused(Class::Transient, true)));
    assert_eq!(last.to, To::Next(undo(2)));
}

#[test]
fn the_rows_doubt_stays_until_everybody_has_an_outcome() {
    let (mut b, _) = Bench::claimed(group(0..2), |c| {
        c.taken = Taken::Orphaned;
        c.doubt = true;
    });
    b.gave(0, failed(Class::Transient));
    b.gave(1, failed(Class::Transient));
    b.stored();
    let (.., doubt) = parked(b.sent.as_ref().unwrap());
    assert!(doubt);
}

fn with_irreversible() -> Vec<PlannedStep> {
    let mut steps = group(0..3);
    steps[0].recovery = Recovery::Irreversible;
    steps[0].compensate = None;
    steps
}

#[test]
fn an_irreversible_member_stops_the_group_when_its_siblings_are_back() {
    let (mut b, _) = Bench::started(with_irreversible());
    b.gave(2, failed(Class::Unknown));
    let stop = write(&b.gave(0, failed(Class::Unknown)));
    assert_eq!(
        (&stop.to, record(&stop)),
        (&To::Stay, (forward(0), refused(Class::Unknown, true)))
    );
    assert_eq!(b.stored(), [], "one is in flight");
    let done = write(&b.gave(1, done("1")));
    assert_eq!(record(&done).0, forward(1));
    let note = write(&b.stored());
    assert_eq!(record(&note), (forward(2), paused(Class::Unknown, true)));
    let end = write(&b.stored());
    assert_eq!((settled(&end).as_str(), &end.entry), ("Terminated", &None));
    assert!(matches!(end.to, To::Settle { why: Some(_), .. }));
}

#[test]
fn a_drain_does_not_keep_a_stopped_group_from_its_end() {
    let (mut b, _) = Bench::started(with_irreversible());
    b.gave(2, failed(Class::Transient));
    b.gave(0, failed(Class::Business));
    b.stored();
    b.check(Input::Drained);
    b.gave(1, done("1"));
    assert_eq!(record(&write(&b.stored())).0, forward(2));
    assert_eq!(settled(&write(&b.stored())), "Terminated");
}

#[test]
fn a_restored_group_tries_the_stopped_member_again_and_no_recorded_one() {
    let (b, orders) = Bench::claimed(with_irreversible(), |c| {
        let mut stop = entry(forward(0), refused(Class::Business, false));
        stop.attempts = 3;
        let done = entry(forward(1), Attempt::Done(json("1")));
        c.log = vec![stop, done, entry(forward(2), paused(Class::Unknown, true))];
    });
    assert_eq!(calls(&orders), [forward(0), forward(2)]);
    assert_eq!(b.open[0].attempt, 1, "a restored one has its attempts anew");
}

#[test]
fn what_a_person_must_decide_starts_no_sibling() {
    let (mut b, orders) = Bench::claimed(with_irreversible(), |c| {
        c.taken = Taken::Orphaned;
        c.doubt = true;
    });
    let stop = write(&orders);
    assert_eq!(record(&stop).0, forward(0));
    assert_eq!(settled(&write(&b.stored())), "Terminated");
}

#[test]
fn a_lease_too_short_for_one_member_waits_for_its_siblings() {
    let (mut b, _) = Bench::started(group(0..2));
    let call = b.took(0);
    let by = Hold::Lease;
    assert_eq!(b.check(Input::Held { call, by }), []);
    assert_eq!(record(&write(&b.gave(1, done("1")))).0, forward(1));
    let (attempts, doubt) = (0, false);
    assert_eq!(write(&b.stored()).to, To::HandBack { attempts, doubt });
}

#[test]
fn calls_that_end_with_the_lease_are_unknown_each() {
    let (mut b, _) = Bench::started(group(0..2));
    let orders = b.check(Input::CallsEnded);
    assert_eq!(
        orders[..2],
        [Order::Abandon { call: 1 }, Order::Abandon { call: 2 }]
    );
    assert_eq!(
        record(&write(&orders[2..])),
        (forward(0), {
            let error = Text::new("the lease ended while the call was open");
            Attempt::Paused {
                class: Class::Unknown,
                error,
                doubt: true,
            }
        })
    );
    assert!(parked(&write(&b.stored())).0 >= Retry::ACTION.floor);
}

#[test]
fn a_group_whose_members_wait_for_one_target_waits_on_it() {
    let (mut b, _) = Bench::started(group(0..2));
    for seq in 0..2 {
        let call = b.took(seq);
        b.check(Input::Held { call, by: down() });
    }
    let To::Park {
        waiting_on, after, ..
    } = b.sent.unwrap().to
    else {
        panic!("not parked");
    };
    assert_eq!(
        (waiting_on.as_deref(), after),
        (Some("bank"), Duration::from_secs(5))
    );
}

#[test]
fn beside_a_member_that_pauses_nobody_waits_on_a_target() {
    let (mut b, _) = Bench::started(group(0..2));
    b.gave(0, asks_for(600));
    let call = b.took(1);
    b.check(Input::Held { call, by: down() });
    let To::Park {
        waiting_on, after, ..
    } = b.sent.unwrap().to
    else {
        panic!("not parked");
    };
    assert_eq!((waiting_on, after), (None, Duration::from_secs(600)));
}

#[test]
fn the_last_member_done_by_evidence_opens_what_follows() {
    let mut steps = group(0..2);
    steps.push(step(2));
    let (_, orders) = Bench::claimed(steps, |c| {
        c.log = vec![
            entry(forward(0), Attempt::Done(json("0"))),
            entry(forward(1), Attempt::Done(json("1"))),
        ];
    });
    let write = write(&orders);
    assert_eq!((&write.to, &write.entry), (&To::Next(forward(2)), &None));
}

#[test]
fn evidence_for_the_last_member_of_a_failed_group_sends_it_back() {
    let (_, orders) = Bench::claimed(group(0..2), |c| {
        c.log = vec![
            entry(forward(0), refused(Class::Business, false)),
            entry(forward(1), Attempt::Done(json("1"))),
        ];
    });
    assert_eq!(write(&orders).to, To::Next(undo(1)));
}
