//! What it tells the master of its orchestrators, and who moves.

use super::*;
use crate::wire::Load;

fn moving(it: &mut Bench, ids: &[(&'static str, u128)]) -> Vec<&'static str> {
    let told = |it: &mut Bench, (id, n)| {
        let Answer::Heard { moves, .. } = it.beat(id, n) else {
            panic!("{id} is refused")
        };
        moves
    };
    ids.iter()
        .filter(|who| told(it, **who))
        .map(|(id, _)| *id)
        .collect()
}

const THREE: [(&str, u128); 3] = [("a", 10), ("b", 11), ("c", 12)];

#[test]
fn loads_count_by_service_without_names() {
    let mut it = Bench::with(&["a", "b"]);
    it.enter("p", 20, "payments");
    let health = |backlog, oldest_due_ms, sick| Health {
        polled_ms: None,
        backlog,
        oldest_due_ms,
        sick,
    };
    it.beat_with("a", 10, health(3, 500, false), 0);
    it.beat_with("b", 11, health(4, 900, true), 0);
    let (_, beat) = it.master_beat();
    let load = |name, live, sick, backlog, oldest_due_ms| Load {
        service: service(name),
        live,
        sick,
        backlog,
        oldest_due_ms,
    };
    assert_eq!(
        beat.loads,
        [load("orders", 2, 1, 7, 900), load("payments", 1, 0, 0, 0)]
    );
}

#[test]
fn who_leaves_before_the_next_cut_is_not_counted_for_it() {
    let mut it = Bench::with(&["a", "b"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    let leave = Leave {
        who: who("b", 11),
        after: Some(WindowNo(11)),
    };
    it.ask(Verb::Leave, Question::Leave(leave));
    let (_, beat) = it.master_beat();
    assert_eq!(beat.loads[0].live, 1);
}

#[test]
fn the_first_orchestrator_of_a_service_is_told_at_once() {
    let mut it = Bench::with(&[]);
    it.pass(100);
    let (mut hurried, _) = {
        let register = Question::Register(Register {
            who: who("a", 10),
            service: Some(service("orders")),
            build: "1".into(),
        });
        it.ask(Verb::Register, register);
        let confirm = Confirm {
            who: who("a", 10),
            nonce: nonce(77),
        };
        it.ask(Verb::Confirm, Question::Confirm(confirm))
    };
    hurried.retain(|op| {
        matches!(
            op,
            Op::Ask {
                question: Question::SlaveBeat(_),
                ..
            }
        )
    });
    assert_eq!(hurried.len(), 1);
}

#[test]
fn a_hint_makes_that_many_move() {
    let mut it = Bench::with(&["a", "b", "c"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    assert_eq!(moving(&mut it, &THREE), Vec::<&str>::new());
    let (ask, _) = it.master_beat();
    it.answer(ask, Ok(hinting(it.now, 2)));
    assert_eq!(moving(&mut it, &THREE), ["a", "b"]);
}

#[test]
fn hints_are_followed_once_a_cut() {
    let mut it = Bench::with(&["a", "b", "c"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    for _ in 0..2 {
        let (ask, _) = it.master_beat();
        it.answer(ask, Ok(hinting(it.now, 1)));
    }
    assert_eq!(moving(&mut it, &THREE), ["a"]);
    it.now.wall = it.now.wall.plus(Duration::from_secs(60));
    it.grant(grant(&who("s-1", 2), 12, Range::RING));
    let (ask, _) = it.master_beat();
    it.answer(ask, Ok(hinting(it.now, 1)));
    assert_eq!(moving(&mut it, &THREE), ["a", "b"]);
}

#[test]
fn few_move_at_a_time_whatever_the_hint_says() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut it = Bench::with(&ids);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    let (ask, _) = it.master_beat();
    it.answer(ask, Ok(hinting(it.now, 1_000)));
    let all: Vec<_> = ids.into_iter().zip(10..).collect();
    assert_eq!(moving(&mut it, &all).len(), 8);
}

#[test]
fn a_slave_cut_off_from_the_master_tells_all_to_look_elsewhere() {
    let mut it = Bench::with(&["a"]);
    for _ in 0..25 {
        let (ask, _) = it.master_beat();
        it.answer(ask, Err(AskError::NoResponders));
        it.beat("a", 10);
    }
    assert!(it.now.mono.since(START.mono) >= Duration::from_secs(120));
    assert_eq!(moving(&mut it, &[("a", 10)]), ["a"]);
    assert_eq!(
        it.slave.ready(it.now),
        ["the master is silent and no window is granted"]
    );
}
