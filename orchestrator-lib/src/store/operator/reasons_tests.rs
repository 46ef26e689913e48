//! The reasons, one fact changed at a time.

use super::*;

const NOW: Wall = Wall(1_000_000_000);

fn at(seconds: i64) -> Wall {
    Wall(NOW.0 + seconds * 1_000)
}

/// Parked after a failure, due in a minute, with somebody who can run it.
fn parked_row() -> Facts {
    Facts {
        state: State::Paused,
        direction: Direction::Forward,
        seq: 1,
        doubt: false,
        attempts: 2,
        deaths: 0,
        saga: "buy".to_owned(),
        version: 3,
        waiting_on: None,
        due_at: Some(at(60)),
        expires_at: at(3_600),
        settled_at: None,
        progressed_at: at(-60),
        now: NOW,
        owner: None,
        living: 2,
        retry_nodes: 1,
        able: 1,
        able_elsewhere: 0,
        busy: 0,
        step: Some("pay".to_owned()),
        paused: true,
        said: Some("503".to_owned()),
        retry: None,
        cancelled: false,
        last_deed: None,
    }
}

fn running_at(owner: Owner) -> Facts {
    Facts {
        state: State::Running,
        due_at: None,
        owner: Some(owner),
        ..parked_row()
    }
}

fn settled_as(state: State) -> Facts {
    Facts {
        state,
        due_at: None,
        settled_at: Some(at(-5)),
        ..parked_row()
    }
}

fn owner() -> Owner {
    Owner {
        instance: "o-1".to_owned(),
        since: at(-900),
        dead_at: None,
        lease_until: at(4),
    }
}

#[track_caller]
fn check(facts: &Facts, codes: &[&str]) {
    let found = reasons(facts);
    let said: Vec<&str> = found.iter().map(|r| r.code).collect();
    assert_eq!(said, codes, "{found:#?}");
    assert!(found.iter().all(|r| !r.todo.is_empty()));
}

#[test]
fn what_is_parked_says_when_and_for_what_it_waits() {
    check(&parked_row(), &["not-due"]);
    let fresh = Facts {
        attempts: 0,
        paused: false,
        ..parked_row()
    };
    check(&fresh, &["waits"]);
    let due = |seconds: i64| Facts {
        due_at: Some(at(-seconds)),
        ..parked_row()
    };
    check(&due(0), &["due-now"]);
    check(&due(5), &["due"]);
    check(&due(60), &["overdue"]);
    let mut target = due(5);
    target.waiting_on = Some("bank".to_owned());
    check(&target, &["target-down"]);
    let mut over = due(5);
    over.expires_at = at(-1);
    check(&over, &["lifetime-over", "due"]);
}

#[test]
fn nobody_who_could_run_it_is_a_reason_of_its_own() {
    let lonely = |living, retry_nodes, able_elsewhere| Facts {
        living,
        retry_nodes,
        able: 0,
        able_elsewhere,
        ..parked_row()
    };
    check(&lonely(0, 0, 0), &["not-due", "no-process"]);
    check(&lonely(2, 0, 2), &["not-due", "no-retry-node"]);
    check(&lonely(2, 1, 0), &["not-due", "executor-missing"]);
    let elsewhere = lonely(2, 1, 1);
    check(&elsewhere, &["not-due", "executor-missing"]);
    assert!(
        reasons(&elsewhere)[1]
            .says
            .contains("no retry nodes can run buy v3")
    );
}

#[test]
fn what_runs_names_its_owner_alive_lapsed_or_dead() {
    check(&running_at(owner()), &["running"]);
    let lapsed = Owner {
        lease_until: at(-3),
        ..owner()
    };
    check(&running_at(lapsed), &["owner-lapsed"]);
    let dead = Owner {
        dead_at: Some(at(-1)),
        ..owner()
    };
    check(&running_at(dead), &["owner-dead"]);
}

#[test]
fn a_suspect_runs_alone_and_after_other_suspects() {
    let mut suspect = parked_row();
    suspect.deaths = 2;
    check(&suspect, &["not-due", "suspect"]);
    suspect.busy = 1;
    check(&suspect, &["not-due", "suspect", "suspects-first"]);
}

#[test]
fn what_is_settled_says_how_and_what_a_person_can_do() {
    for state in State::ALL.into_iter().filter(|s| s.is_settled()) {
        check(&settled_as(state), &[state.as_str()]);
    }
}

#[test]
fn doubt_cancels_and_operators_are_told_besides() {
    let facts = Facts {
        doubt: true,
        cancelled: true,
        retry: Some("{}".to_owned()),
        last_deed: Some("eva: retry".to_owned()),
        ..parked_row()
    };
    let codes = [
        "not-due",
        "cancelled",
        "in-doubt",
        "own-policy",
        "last-order",
    ];
    check(&facts, &codes);
}
