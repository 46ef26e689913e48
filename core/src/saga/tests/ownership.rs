//! Claims, leases, drains, wake-ups, and a store that does not answer.

use alloc::{string::ToString, vec};
use core::time::Duration;

use super::bench::*;
use crate::{
    machine::Machine,
    saga::{Class, Hold, Input, Order, Recovery, Repeat, State, Stopped, Text, Unrunnable, Wake},
    store::{Taken, To, Written},
    time::{self, Wall},
};

#[test]
fn an_orphans_open_intent_is_in_doubt() {
    let (mut b, orders) = Bench::claimed(steps(1), |c| c.taken = Taken::Orphaned);
    assert_eq!(call(&orders).position, forward(0));
    assert_eq!(
        write(&b.returned(failed(Class::Business))).to,
        To::Next(undo(0))
    );
}

#[test]
fn past_its_lifetime_a_transaction_is_disabled_without_a_call() {
    for position in [forward(0), undo(0)] {
        let (mut b, orders) = Bench::claimed(steps(1), |c| {
            c.position = position;
            c.doubt = true;
            c.claimed_at = c.expires_at;
            c.log = match position.direction {
                crate::saga::Direction::Forward => vec![],
                crate::saga::Direction::Compensating => {
                    vec![entry(forward(0), refused(Class::Unknown, true))]
                }
            };
        });
        let write = write(&orders);
        assert_eq!((settled(&write).as_str(), write.entry), ("Disabled", None));
        assert_eq!(b.stored(), stopped(Stopped::Settled(State::Disabled)));
    }
}

#[test]
fn disabling_needs_no_executor() {
    let (_, orders) = Bench::claimed_by(None, |c| c.claimed_at = c.expires_at);
    assert_eq!(settled(&write(&orders)), "Disabled");
}

#[test]
fn a_doubt_that_the_row_does_not_know_is_stored_before_disabling() {
    let (mut b, orders) = Bench::claimed(steps(1), |c| {
        c.taken = Taken::Orphaned;
        c.claimed_at = c.expires_at;
    });
    assert_eq!(parked(&write(&orders)), (Duration::ZERO, 0, true));
    assert_eq!(b.stored(), stopped(Stopped::Parked));
}

#[test]
fn a_lifetime_that_ends_while_running_starts_no_further_call() {
    let (mut b, _) = Bench::started(steps(2));
    b.pass(HOUR);
    assert_eq!(settled(&write(&b.step_done("1"))), "Disabled");
}

#[test]
fn a_pause_is_left_to_the_store_to_cap() {
    let (mut b, _) = Bench::claimed(steps(1), |c| c.expires_at = Wall(1_001));
    let (after, ..) = parked(&write(&b.returned(failed(Class::Unknown))));
    assert!(after >= Duration::from_millis(500));
}

#[test]
fn losing_the_row_drops_everything() {
    let (mut b, _) = Bench::started(steps(2));
    b.returned(done("1"));
    assert_eq!(b.answered(Written::Lost), stopped(Stopped::Lost));
    assert_eq!(b.check(Input::Drained), []);
    assert_eq!(b.tx.wake_at(), time::Wake::NEVER);
}

#[test]
fn a_process_found_dead_abandons_its_call() {
    let (mut b, _) = Bench::started(steps(2));
    let expected = [Order::Abandon { call: 1 }, Order::Stop(Stopped::Lost)];
    assert_eq!(b.check(Input::Died), expected);
    assert_eq!(b.check(Input::Died), []);
}

#[test]
fn a_write_without_an_answer_is_sent_again_as_it_was() {
    let (mut b, _) = Bench::started(steps(2));
    let first = write(&b.returned(done("1")));
    assert_eq!(b.unreachable(), []);
    assert_eq!(b.check(Input::Woke), []);
    assert_eq!(write(&b.woke()), first);
    let orders = b.answered(Written::Already { wake_seq: 0 });
    assert_eq!(call(&orders).position, forward(1));
}

#[test]
fn resends_slow_down_to_two_seconds() {
    let (mut b, _) = Bench::started(steps(2));
    b.returned(done("1"));
    let mut last = Duration::ZERO;
    for _ in 0..40 {
        b.unreachable();
        let before = b.now.mono;
        b.woke();
        last = b.now.mono.since(before);
        assert!(last <= Duration::from_secs(2));
    }
    assert!(last >= Duration::from_secs(1));
}

#[test]
fn answers_that_come_twice_or_late_change_nothing() {
    let (mut b, _) = Bench::started(steps(3));
    b.step_done("1");
    let stale = Input::Returned {
        call: 1,
        outcome: done("1"),
    };
    assert_eq!(b.check(stale), []);
    let again = Input::Written {
        number: 1,
        answer: Written::Lost,
    };
    assert_eq!(b.check(again.clone()), []);
    b.returned(done("2"));
    assert_eq!(b.check(again), []);
    assert_eq!(b.check(Input::Claimed), []);
}

#[test]
fn a_pause_refused_for_a_wake_up_is_decided_with_it() {
    let (mut b, _) = Bench::started(steps(1));
    let first = write(&b.returned(failed(Class::Unknown)));
    assert_eq!(first.wake_seq, 0);
    assert_eq!(b.answered(Written::Woken { wake_seq: 4 }), [Order::Hear]);
    let second = write(&b.heard(4, vec![]));
    assert_eq!((second.number, second.wake_seq), (2, 4));
    assert_eq!((&second.to, &second.entry), (&first.to, &first.entry));
    assert_eq!(b.stored_with(4), stopped(Stopped::Parked));
}

#[test]
fn an_end_refused_for_a_wake_up_is_decided_with_it() {
    let (mut b, _) = Bench::started(steps(1));
    b.returned(done("1"));
    assert_eq!(b.answered(Written::Woken { wake_seq: 4 }), [Order::Hear]);
    let second = write(&b.heard(4, vec![]));
    assert_eq!(
        (settled(&second).as_str(), second.wake_seq),
        ("Completed", 4)
    );
}

fn handed_back(attempts: u32, doubt: bool) -> To {
    To::HandBack { attempts, doubt }
}

#[test]
fn a_drain_before_the_call_hands_back_without_a_doubt() {
    let (mut b, _) = Bench::started(steps(2));
    b.returned(done("1"));
    assert_eq!(b.check(Input::Drained), []);
    let write = write(&b.stored());
    assert_eq!(write.to, handed_back(0, false));
    assert_eq!(b.stored(), stopped(Stopped::HandedBack));
}

#[test]
fn a_drain_during_a_call_waits_and_records_what_it_gave() {
    let (mut b, _) = Bench::started(steps(2));
    assert_eq!(b.check(Input::Drained), []);
    assert_eq!(write(&b.returned(done("1"))).to, To::Next(forward(1)));
    assert_eq!(write(&b.stored()).to, handed_back(0, false));
}

#[test]
fn a_call_that_outlasts_the_grace_period_is_handed_back_in_doubt() {
    let (mut b, _) = Bench::started(steps(2));
    b.check(Input::Drained);
    let orders = b.check(Input::CallsEnded);
    assert_eq!(orders[0], Order::Abandon { call: 1 });
    assert_eq!(write(&orders[1..]).to, handed_back(0, true));
}

#[test]
fn a_drain_between_inline_retries_hands_back_with_the_attempts_made() {
    let mut s = step(0);
    s.retry.inline = 1;
    let (mut b, _) = Bench::started(vec![s]);
    b.returned(failed(Class::Transient));
    assert_eq!(write(&b.check(Input::Drained)).to, handed_back(1, false));
}

#[test]
fn at_the_local_deadline_the_open_call_is_unknown() {
    let (mut b, _) = Bench::started(steps(2));
    let orders = b.check(Input::CallsEnded);
    assert_eq!(orders[0], Order::Abandon { call: 1 });
    let (_, attempts, doubt) = parked(&write(&orders[1..]));
    assert_eq!((attempts, doubt), (1, true));
    let late = Input::Returned {
        call: 1,
        outcome: done("1"),
    };
    assert_eq!(b.check(late), []);
}

#[test]
fn a_call_held_for_the_lease_is_handed_back() {
    let (mut b, _) = Bench::started(steps(1));
    assert_eq!(write(&b.held(Hold::Lease)).to, handed_back(0, false));
}

#[test]
fn a_call_held_for_its_target_is_parked_without_an_attempt() {
    let (mut b, _) = Bench::claimed(steps(1), |c| c.attempts = 1);
    let write = write(&b.held(Hold::Target {
        target: "bank".to_string(),
        after: Duration::from_secs(9),
    }));
    assert_eq!(parked(&write), (Duration::from_secs(9), 1, false));
    assert!(matches!(&write.to, To::Park { waiting_on: Some(t), .. } if t == "bank"));
    assert_eq!(write.entry, None);
}

fn failing(class: Class) -> Hold {
    Hold::Failing {
        target: "bank".to_string(),
        after: Duration::from_secs(9),
        class,
        error: Text::new("503"),
    }
}

#[test]
fn a_failure_at_a_target_that_is_down_waits_for_it_in_doubt_without_an_attempt() {
    for compensating in [false, true] {
        let (mut b, _) = Bench::claimed(steps(1), |c| {
            c.attempts = 2;
            if compensating {
                c.position = undo(0);
                c.log = vec![entry(forward(0), refused(Class::Unknown, true))];
            }
        });
        let write = write(&b.held(failing(Class::Unknown)));
        assert_eq!(parked(&write), (Duration::from_secs(9), 2, true));
        assert!(matches!(&write.to, To::Park { waiting_on: Some(t), .. } if t == "bank"));
    }
}

#[test]
fn what_is_not_worth_a_retry_does_not_wait_for_its_target() {
    let mut first = step(0);
    first.recovery = Recovery::BackwardFirst;
    let (mut b, _) = Bench::started(vec![first]);
    assert_eq!(
        write(&b.held(failing(Class::Unknown))).to,
        To::Next(undo(0))
    );
    let mut never = step(0);
    never.repeat = Repeat::Never;
    let (mut b, _) = Bench::started(vec![never]);
    assert_eq!(
        settled(&write(&b.held(failing(Class::Unknown)))),
        "Terminated"
    );
}

#[test]
fn what_must_not_be_repeated_goes_to_a_person_even_when_cancelled() {
    let mut never = step(0);
    never.repeat = Repeat::Never;
    let (_, orders) = Bench::claimed(vec![never], |c| {
        c.doubt = true;
        c.wake_seq = 1;
        c.wakes = vec![Wake::Cancel {
            why: Text::new("cancelled by eva: no"),
        }];
    });
    assert_eq!(settled(&write(&orders)), "Terminated");
}

#[test]
fn what_cannot_be_run_here_keeps_its_place_and_its_attempts() {
    let (mut b, orders) = Bench::claimed_by(None, |c| c.attempts = 2);
    assert_eq!(parked(&write(&orders)), (Duration::from_secs(60), 2, false));
    let got = b.stored();
    assert!(
        matches!(&got[..], [Order::Stop(Stopped::Unrunnable(Unrunnable::Missing(c)))] if c.version == 1),
        "{got:?}"
    );
}

#[test]
fn another_definition_runs_nothing() {
    let (mut b, orders) = Bench::claimed(steps(1), |c| c.digest = "d2".into());
    parked(&write(&orders));
    let got = b.stored();
    assert!(
        matches!(
            &got[..],
            [Order::Stop(Stopped::Unrunnable(Unrunnable::Mismatch(_)))]
        ),
        "{got:?}"
    );
}

/// What is one commit with its record was not applied without one.
#[test]
fn an_atomic_action_is_never_in_doubt() {
    let atomic = || {
        let mut steps = steps(1);
        steps[0].atomic = true;
        steps
    };
    let (mut b, orders) = Bench::claimed(atomic(), |c| {
        c.taken = Taken::Orphaned;
        c.doubt = true;
    });
    assert_eq!(call(&orders).position, forward(0));
    let refused = write(&b.returned(failed(Class::Business)));
    assert_eq!(settled(&refused), "Compensated");
    let (mut b, _) = Bench::started(atomic());
    let orders = b.check(Input::CallsEnded);
    let (_, attempts, doubt) = parked(&write(&orders[1..]));
    assert_eq!((attempts, doubt), (1, false));
    let (mut b, _) = Bench::started(atomic());
    let (_, attempts, doubt) = parked(&write(&b.returned(failed(Class::Unknown))));
    assert_eq!((attempts, doubt), (1, false));
}
