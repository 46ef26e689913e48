//! Replay: which histories a run can have made.

use alloc::{vec, vec::Vec};

use super::bench::*;
use crate::saga::{
    Attempt, Class, Entry, Position,
    log::{Illegal, Log, Status},
};

fn replay(entries: &[Entry], open: Position) -> Result<Vec<Status>, Illegal> {
    Log::replay(&plan(steps(3)), entries, open).map(|log| log.statuses().to_vec())
}

fn acted(seq: u32) -> Entry {
    entry(forward(seq), Attempt::Done(json("1")))
}

#[test]
fn a_replay_goes_on_at_the_step_that_failed() {
    let paused = Attempt::Paused {
        class: Class::Transient,
        error: crate::saga::Text::new("no"),
        doubt: false,
    };
    let got = replay(&[acted(0), entry(forward(1), paused)], forward(1));
    assert_eq!(got, Ok(vec![Status::Completed(json("1")), Status::Running]));
}

#[test]
fn the_order_of_records_does_not_matter() {
    let all = [
        entry(undo(1), Attempt::Done(json("null"))),
        entry(forward(2), refused(Class::Business, false)),
        acted(1),
        acted(0),
    ];
    let expected = vec![
        Status::Compensating {
            result: Some(json("1")),
        },
        Status::Compensated,
        Status::Failed { doubt: false },
    ];
    assert_eq!(replay(&all, undo(0)), Ok(expected));
}

#[test]
fn no_step_is_skipped_upwards_or_downwards() {
    assert!(replay(&[acted(0)], forward(2)).is_err());
    assert!(replay(&[acted(1)], forward(2)).is_err());
    assert!(replay(&[], forward(1)).is_err());
    let back = [
        acted(0),
        acted(1),
        entry(forward(2), refused(Class::Business, false)),
    ];
    assert!(replay(&back, undo(1)).is_ok());
    assert!(replay(&back, undo(0)).is_err());
}

#[test]
fn what_was_never_applied_is_not_compensated_and_what_may_be_is() {
    let sure = [acted(0), entry(forward(1), refused(Class::Business, false))];
    assert!(replay(&sure, undo(1)).is_err());
    let doubt = [acted(0), entry(forward(1), refused(Class::Unknown, true))];
    assert!(replay(&doubt, undo(1)).is_ok());
    assert!(replay(&doubt, undo(0)).is_err());
}

#[test]
fn nothing_returns_to_actions() {
    let back = [
        acted(0),
        entry(forward(1), refused(Class::Business, false)),
        entry(undo(0), Attempt::Done(json("null"))),
    ];
    assert!(replay(&back, forward(1)).is_err());
    assert!(replay(&back[..2], forward(2)).is_err());
}

#[test]
fn a_log_of_other_names_is_no_history_of_this_plan() {
    let (mut b, orders) = Bench::claimed(steps(2), |c| {
        c.position = forward(1);
        let mut other = acted(0);
        other.step = name(7);
        c.log = vec![other];
    });
    parked(&write(&orders));
    assert!(alloc::format!("{:?}", b.stored()).contains("is not s7"));
}

#[test]
fn a_position_beyond_the_plan_is_not_run() {
    let (_, orders) = Bench::claimed(steps(1), |c| {
        c.position = forward(1);
        c.log = vec![acted(0)];
    });
    parked(&write(&orders));
}

#[test]
fn a_record_belongs_to_the_open_intent() {
    let mut log = Log::new();
    let got = log.record(&plan(steps(3)), forward(1), &Attempt::Skipped);
    assert_eq!(
        got,
        Err(Illegal::Record {
            record: forward(1),
            open: forward(0)
        })
    );
    assert_eq!(log, Log::new());
}
