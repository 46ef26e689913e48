//! Finding a slave, moving to another, leaving.

use super::*;
use crate::{
    window::WindowNo,
    wire::{Author, Event, Fact, Role},
};

#[test]
fn it_listens_to_its_own_subject_and_asks_the_master_for_a_slave() {
    let mut bench = Bench::fresh();
    let ops = bench.ops(Input::Started);
    assert_eq!(ops[0], Op::Listen(Topic::OrchWindows(node("o-1"))));
    let (_, place, question) = only(&ops);
    assert_eq!(place, Place::Assign);
    let assign = Assign {
        who: me(),
        service: service("orders"),
        exclude: vec![],
    };
    assert_eq!(question, Question::Assign(assign));
}

#[test]
fn it_registers_in_two_phases_with_the_slave_that_was_named() {
    let (mut bench, register) = Bench::assigned();
    assert_eq!(bench.it.slave(), None);
    let grants = vec![dressed(of_s1(10, Range::RING))];
    bench.enter("s-1", register, grants);
    assert_eq!(bench.it.slave(), Some(node("s-1")));
    assert_eq!(bench.it.claimable(bench.now.wall), [Range::RING]);
    assert_eq!(bench.it.ready(bench.now), Vec::<&str>::new());
}

#[test]
fn registering_names_its_service() {
    let mut bench = Bench::fresh();
    let (ask, ..) = only(&bench.ops(Input::Started));
    let (_, place, question) = only(&bench.answer(ask, Ok(assigned("s-1"))));
    assert_eq!(place, Place::Slave(node("s-1"), Verb::Register));
    let build = "1".into();
    let register = Register {
        who: me(),
        service: Some(service("orders")),
        build,
    };
    assert_eq!(question, Question::Register(register));
}

#[test]
fn without_a_master_it_asks_for_ever_with_growing_pauses() {
    let mut bench = Bench::fresh();
    let (mut ask, ..) = only(&bench.ops(Input::Started));
    let mut whole = 500;
    for _ in 0..50 {
        assert_eq!(bench.answer(ask, Err(AskError::NoResponders)), vec![]);
        assert_eq!(bench.pass(whole / 2 - 1), vec![], "too early");
        (ask, ..) = only(&bench.pass(whole / 2 + 1));
        whole = (whole * 2).min(15_000);
    }
}

#[test]
fn two_unanswered_requests_make_it_reconnect() {
    let mut bench = Bench::fresh();
    let (ask, ..) = only(&bench.ops(Input::Started));
    assert_eq!(bench.answer(ask, Err(AskError::TimedOut)), vec![]);
    let (ask, ..) = bench.until(is_assign);
    assert_eq!(
        bench.answer(ask, Err(AskError::TimedOut)),
        vec![Op::Reconnect]
    );
}

#[test]
fn a_silent_master_is_no_fault_of_the_connection_while_a_slave_answers() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let (mut assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    for _ in 0..4 {
        assert_eq!(bench.answer(assign, Err(AskError::TimedOut)), vec![]);
        (assign, ..) = bench.until(is_assign);
    }
}

#[test]
fn a_former_leaders_assignment_is_not_followed() {
    let mut bench = Bench::joined();
    bench.now.wall = START.wall;
    let (beat, _) = bench.beat();
    let (assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    let lower = Answer::Assigned {
        slave: node("s-2"),
        term: term(4),
    };
    assert_eq!(bench.answer(assign, Ok(lower)), vec![]);
    assert_eq!(bench.it.slave(), Some(node("s-1")));
}

#[test]
fn a_lower_term_that_is_the_only_one_left_is_followed() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let (mut assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    let lower = || Answer::Assigned {
        slave: node("s-2"),
        term: term(4),
    };
    for _ in 0..2 {
        assert_eq!(bench.answer(assign, Ok(lower())), vec![]);
        (assign, ..) = bench.until(is_assign);
    }
    let orders = bench.answer(assign, Ok(lower()));
    let there = Place::Slave(node("s-2"), Verb::Register);
    let registers = |op: &Op| matches!(op, Op::Ask { place, .. } if *place == there);
    assert!(orders.iter().any(registers), "{orders:?}");
}

#[test]
fn a_slave_that_does_not_answer_is_excluded_at_the_second_attempt() {
    let (mut bench, register) = Bench::assigned();
    bench.answer(register, Err(AskError::TimedOut));
    let (again, place, _) = bench.until(is_register);
    assert_eq!(place, Place::Slave(node("s-1"), Verb::Register));
    bench.answer(again, Err(AskError::TimedOut));
    let (.., question) = bench.until(is_assign);
    assert_eq!(excluded(&question), [node("s-1")]);
}

#[test]
fn a_slave_that_nobody_serves_is_excluded_at_once() {
    let (mut bench, register) = Bench::assigned();
    bench.answer(register, Err(AskError::NoResponders));
    let (.., question) = bench.until(is_assign);
    assert_eq!(excluded(&question), [node("s-1")]);
}

#[test]
fn when_only_excluded_slaves_are_left_one_of_them_must_do() {
    let (mut bench, register) = Bench::assigned();
    bench.answer(register, Err(AskError::NoResponders));
    let (assign, ..) = bench.until(is_assign);
    bench.answer(assign, Ok(no(Refusal::NoSlave)));
    let (.., question) = bench.until(is_assign);
    assert_eq!(excluded(&question), []);
}

#[test]
fn a_slave_is_excluded_for_two_sessions_only() {
    let (mut bench, register) = Bench::assigned();
    bench.answer(register, Err(AskError::NoResponders));
    let (assign, ..) = bench.until(is_assign);
    bench.now.mono = bench.now.mono.plus(Duration::from_secs(30));
    bench.answer(assign, Err(AskError::NoResponders));
    let (.., question) = bench.until(is_assign);
    assert_eq!(excluded(&question), []);
}

#[test]
fn who_should_move_asks_for_another_and_leaves_the_old_one_after_the_next_window() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, range(0, 99)));
    bench.grant(of_s1(11, range(0, 99)));
    let (beat, _) = bench.beat();
    let (assign, place, question) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    assert_eq!(
        (place, excluded(&question)),
        (Place::Assign, vec![node("s-1")])
    );
    let ops = asked(&bench.answer(assign, Ok(assigned("s-2"))));
    let leave = Leave {
        who: me(),
        after: Some(WindowNo(11)),
    };
    assert_eq!(ops[0].1, Place::Slave(node("s-1"), Verb::Leave));
    assert_eq!(ops[0].2, Question::Leave(leave));
    assert_eq!(ops[1].1, Place::Slave(node("s-2"), Verb::Register));
    bench.enter("s-2", ops[1].0, vec![]);
    assert_eq!(bench.it.slave(), Some(node("s-2")));
    assert_eq!(bench.it.claimable(bench.now.wall), [range(0, 99)]);
    assert_eq!(windows(bench.it.grants()), [10, 11].into());
}

#[test]
fn who_should_move_stays_until_another_slave_is_found() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let (assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    bench.answer(assign, Ok(no(Refusal::NoSlave)));
    assert_eq!(bench.it.slave(), Some(node("s-1")));
    bench.beat();
}

#[test]
fn who_need_not_move_any_more_stays() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let (assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    let (beat, _) = bench.beat();
    bench.answer(beat, Ok(heard(vec![], false)));
    assert_eq!(bench.answer(assign, Ok(assigned("s-2"))), vec![]);
    assert_eq!(bench.it.slave(), Some(node("s-1")));
}

#[test]
fn a_silent_slave_is_replaced_and_its_grants_are_used_to_their_end() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, Range::RING));
    for _ in 0..2 {
        let (beat, _) = bench.beat();
        bench.answer(beat, Err(AskError::NoResponders));
    }
    let (_, place, question) = bench.until(is_assign);
    assert_eq!(
        (place, excluded(&question)),
        (Place::Assign, vec![node("s-1")])
    );
    assert_eq!(bench.it.slave(), None);
    assert_eq!(bench.it.claimable(bench.now.wall), [Range::RING]);
    assert_eq!(bench.it.claimable(Wall(659_000)), []);
}

#[test]
fn a_draining_slave_is_left_at_once_for_another() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, Range::RING));
    let (beat, _) = bench.beat();
    let (_, place, question) = only(&bench.answer(beat, Ok(no(Refusal::Draining))));
    assert_eq!(
        (place, excluded(&question)),
        (Place::Assign, vec![node("s-1")])
    );
    assert_eq!(bench.it.claimable(bench.now.wall), [Range::RING]);
}

#[test]
fn a_slave_that_forgot_it_takes_it_in_again() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    bench.answer(beat, Ok(no(Refusal::Unregistered)));
    let (_, place, _) = bench.until(is_register);
    assert_eq!(place, Place::Slave(node("s-1"), Verb::Register));
}

#[test]
fn it_waits_for_a_live_twin_and_says_so() {
    let (mut bench, register) = Bench::assigned();
    bench.answer(register, Ok(no(Refusal::TwinAlive)));
    assert!(bench.it.waits_for_twin());
    assert!(
        bench
            .it
            .ready(bench.now)
            .contains(&"another live process has this id: it waits")
    );
    let (_, place, _) = bench.until(is_register);
    assert_eq!(place, Place::Slave(node("s-1"), Verb::Register));
}

#[test]
fn who_is_superseded_says_so_claims_nothing_and_stops() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, Range::RING));
    let (ask, _) = bench.beat();
    let answer = Ok(no(Refusal::Superseded));
    let orders = bench.handle(Input::Bus(Told::Answered { ask, answer }));
    let by = Author {
        role: Role::Orchestrator,
        id: node("o-1"),
        boot: boot(3),
    };
    let expected = vec![
        Order::Bus(Op::Tell(Event::new(bench.now.wall, by, Fact::Superseded))),
        Order::Bus(Op::Ignore(Topic::OrchWindows(node("o-1")))),
        Order::Stop(End::Superseded),
    ];
    assert_eq!(orders, expected);
    assert_eq!(bench.it.claimable(bench.now.wall), []);
    assert_eq!(bench.handle(Input::Woke), vec![]);
}

#[test]
fn a_drained_orchestrator_leaves_at_once_and_claims_nothing() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, Range::RING));
    let (ask, place, question) = only(&bench.ops(Input::Drained));
    assert_eq!(place, Place::Slave(node("s-1"), Verb::Leave));
    assert_eq!(
        question,
        Question::Leave(Leave {
            who: me(),
            after: None
        })
    );
    assert_eq!(bench.it.claimable(bench.now.wall), []);
    assert_eq!(bench.it.window_ends(bench.now.wall), None);
    let told = Told::Answered {
        ask,
        answer: Ok(Answer::Left),
    };
    let orders = bench.handle(Input::Bus(told));
    assert_eq!(orders.last(), Some(&Order::Stop(End::Drained)));
}

#[test]
fn a_leave_that_nobody_answers_ends_in_time() {
    let mut bench = Bench::joined();
    let (ask, ..) = only(&bench.ops(Input::Drained));
    only(&bench.answer(ask, Err(AskError::TimedOut)));
    bench.now.mono = bench.now.mono.plus(Duration::from_secs(4));
    let orders = bench.handle(Input::Woke);
    assert_eq!(orders.last(), Some(&Order::Stop(End::Drained)));
}

#[test]
fn who_was_never_in_stops_at_once() {
    let mut bench = Bench::fresh();
    bench.ops(Input::Started);
    let orders = bench.handle(Input::Drained);
    assert_eq!(orders.last(), Some(&Order::Stop(End::Drained)));
}

#[test]
fn its_next_deadline_always_lies_ahead() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(11, Range::RING));
    for _ in 0..200 {
        let (wait, why) = bench.it.wake_at().after(bench.now).unwrap();
        assert!(wait > Duration::ZERO, "{why} at {:?}", bench.now);
        bench.pass(u64::try_from(wait.as_millis()).unwrap());
    }
}
