//! Limits, operators' evidence, and an operator's policy of retries.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::bench::*;
use crate::{
    saga::{Attempt, Class, Direction, Ending, Order, PlannedStep, Retry, Text},
    store::{Claimed, Taken, To},
    time::Wall,
};

const MINUTE: Duration = Duration::from_secs(60);

/// A claim of a saga that may be a minute without progress; the last was at 1 s.
fn idle(steps: Vec<PlannedStep>, change: impl FnOnce(&mut Claimed)) -> (Bench, Vec<Order>) {
    Bench::claimed_by(Some(plan(steps).idle(Some(MINUTE))), change)
}

#[test]
fn without_progress_for_too_long_it_is_disabled() {
    let (_, orders) = idle(steps(1), |c| c.claimed_at = Wall(61_000));
    let ending = Ending::Disabled;
    let why = Some(Text::new("no progress for 60s"));
    assert_eq!(write(&orders).to, To::Settle { ending, why });
}

#[test]
fn progress_is_what_counts_and_not_age() {
    let (_, orders) = idle(steps(1), |c| {
        c.claimed_at = Wall(61_000);
        c.progressed_at = Wall(2_000);
    });
    assert_eq!(calls(&orders), [forward(0)]);
}

#[test]
fn a_pause_ends_with_the_idle_limit() {
    let (mut b, _) = idle(steps(1), |c| c.claimed_at = Wall(60_800));
    assert_eq!(
        parked(&write(&b.returned(failed(Class::Unknown)))).0,
        Duration::from_millis(200)
    );
}

#[test]
fn waiting_for_people_timers_and_others_is_not_idle() {
    let sub = kind(0, crate::saga::Kind::Saga);
    for waits in [timer(0, 600), signal(0, 600, None)] {
        let (_, orders) = idle(vec![waits], |c| c.claimed_at = Wall(121_000));
        assert_eq!(parked(&write(&orders)).0, Duration::from_secs(480));
    }
    let (_, orders) = idle(vec![sub], |c| c.claimed_at = Wall(121_000));
    assert_eq!(calls(&orders), [forward(0)]);
}

#[test]
fn a_wait_that_is_over_counts_no_more() {
    let mut steps = vec![timer(0, 600), step(1)];
    steps.iter_mut().for_each(|s| s.group = Some(1));
    let (_, orders) = idle(steps, |c| {
        c.claimed_at = Wall(99_000);
        c.log = vec![entry(forward(0), Attempt::Done(json("null")))];
    });
    assert_eq!(settled(&write(&orders)), "Disabled");
}

#[test]
fn a_member_recorded_is_progress() {
    let (mut b, _) = Bench::claimed_by(Some(plan(group(0..2)).idle(Some(MINUTE))), |_| {});
    b.pass(Duration::from_secs(50));
    b.gave(0, done("0"));
    b.stored();
    b.pass(Duration::from_secs(50));
    let (after, ..) = parked(&write(&b.gave(1, failed(Class::Unknown))));
    assert!(after <= Duration::from_secs(10), "{after:?}");
}

#[test]
fn a_group_in_doubt_is_noted_and_disabled_once() {
    let (mut b, orders) = idle(group(0..2), |c| {
        c.claimed_at = Wall(61_000);
        c.log = vec![entry(forward(0), paused(Class::Unknown, true))];
    });
    let end = write(&orders);
    assert_eq!((settled(&end).as_str(), end.entry), ("Disabled", None));
    b.stored();
    // What only this claim knows is noted before.
    let (mut b, orders) = idle(group(0..2), |c| {
        c.claimed_at = Wall(61_000);
        c.taken = Taken::Orphaned;
    });
    assert_eq!(record(&write(&orders)).0, forward(0));
    assert_eq!(record(&write(&b.stored())).0, forward(1));
    assert_eq!(settled(&write(&b.stored())), "Disabled");
}

#[test]
fn evidence_for_the_open_action_goes_on_after_it() {
    let (_, orders) = Bench::claimed(steps(2), |c| {
        (c.doubt, c.attempts) = (true, 3);
        c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
    });
    let write = write(&orders);
    assert_eq!((&write.to, &write.entry), (&To::Next(forward(1)), &None));
}

#[test]
fn evidence_for_the_last_action_completes() {
    let (_, orders) = Bench::claimed(steps(1), |c| {
        c.log = vec![entry(forward(0), Attempt::Done(json("7")))];
    });
    let ending = Ending::Completed(json("7"));
    assert_eq!(write(&orders).to, To::Settle { ending, why: None });
}

#[test]
fn evidence_for_the_open_compensation_goes_on_below_it() {
    let back = |at: u32| {
        move |c: &mut Claimed| {
            c.position = undo(at);
            c.log = vec![
                entry(forward(0), Attempt::Done(json("0"))),
                entry(forward(1), refused(Class::Unknown, true)),
                entry(undo(at), Attempt::Done(json("null"))),
            ];
            if at == 0 {
                c.log.push(entry(undo(1), Attempt::Done(json("null"))));
            }
        }
    };
    let (mut b, orders) = Bench::claimed(steps(2), back(1));
    assert_eq!(write(&orders).to, To::Next(undo(0)));
    assert_eq!(calls(&b.stored()), [undo(0)]);
    let (_, orders) = Bench::claimed(steps(2), back(0));
    assert_eq!(settled(&write(&orders)), "Compensated");
}

#[test]
fn the_operators_policy_holds_for_actions() {
    let policy = Retry {
        attempts: Some(1),
        ..Retry::ACTION
    };
    let (mut b, _) = Bench::claimed(steps(1), |c| c.retry = Some(policy));
    assert_eq!(
        write(&b.returned(failed(Class::Unknown))).to,
        To::Next(undo(0))
    );
}

#[test]
fn the_operators_policy_holds_for_compensations_where_there_are_any() {
    let policy = Retry {
        attempts: Some(2),
        base: MINUTE,
        cap: MINUTE,
        ..Retry::ACTION
    };
    let back = |steps: Vec<PlannedStep>, attempts| {
        Bench::claimed(steps, move |c| {
            c.position = undo(0);
            (c.retry, c.attempts) = (Some(policy), attempts);
            c.log = vec![entry(forward(0), Attempt::Done(json("0")))];
        })
    };
    let (mut b, orders) = back(steps(1), 0);
    assert_eq!(call(&orders).position.direction, Direction::Compensating);
    let (after, ..) = parked(&write(&b.returned(failed(Class::Unknown))));
    assert!(after >= MINUTE / 2, "{after:?}");
    let (mut b, _) = back(steps(1), 1);
    assert_eq!(
        settled(&write(&b.returned(failed(Class::Unknown)))),
        "Terminated"
    );
    let mut bare = steps(1);
    bare[0].compensate = None;
    let (_, orders) = back(bare, 0);
    assert_eq!(record(&write(&orders)).1, Attempt::Skipped);
}
