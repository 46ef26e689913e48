//! Getting in, being there, leaving.

use super::*;
use crate::wire::{Event, Fact, Role as Kind};

#[test]
fn it_listens_to_its_own_subject_before_it_registers() {
    let mut it = Bench::fresh();
    let ops = it.ops(Input::Started);
    assert_eq!(ops.len(), 2);
    assert_eq!(ops[0], Op::Listen(Topic::SlaveWindows(node("s-1"))));
    let (_, place, question) = only(&ops);
    assert_eq!(place, Place::Master(Verb::Register));
    assert!(matches!(
        question,
        Question::Register(Register { service: None, .. })
    ));
}

#[test]
fn its_endpoints_come_only_after_the_confirmation() {
    let mut it = Bench::fresh();
    let (ask, ..) = only(&it.ops(Input::Started));
    assert_eq!(it.answer(ask, Ok(registered(5))), vec![]);
    let (ask, place, _) = only(&it.publish(Publication::Probe(probe(2))));
    assert_eq!(place, Place::Master(Verb::Confirm));
    let ops = it.answer(ask, Ok(confirmed(vec![])));
    assert_eq!(ops[0], Op::Serve(Endpoints::Slave(node("s-1"))));
    assert_eq!(it.slave.ready(it.now), Vec::<&str>::new());
}

#[test]
fn the_first_heartbeat_follows_at_once_and_tells_the_term() {
    let mut it = Bench::fresh();
    let (ask, ..) = only(&it.ops(Input::Started));
    it.answer(ask, Ok(registered(5)));
    let (ask, ..) = only(&it.publish(Publication::Probe(probe(2))));
    let (_, _, question) = only(&it.answer(ask, Ok(confirmed(vec![]))));
    let beat = SlaveBeat {
        who: who("s-1", 2),
        sent_at: Time(START.wall),
        term: Some(term(5)),
        loads: vec![],
        granted: vec![],
        clock_off: false,
    };
    assert_eq!(question, Question::SlaveBeat(beat));
}

#[test]
fn two_unanswered_heartbeats_make_it_reconnect() {
    let (mut it, ask) = Bench::joined();
    assert_eq!(it.answer(ask, Err(AskError::TimedOut)), vec![]);
    let (ask, _) = it.master_beat();
    assert_eq!(it.answer(ask, Err(AskError::TimedOut)), vec![Op::Reconnect]);
}

#[test]
fn it_goes_on_through_the_masters_death_until_its_window_ends() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    for _ in 0..18 {
        let (ask, _) = it.master_beat();
        it.answer(ask, Err(AskError::NoResponders));
        let answer = it.beat("a", 10);
        let ends = 720_000;
        let granted = grants_in(&answer);
        assert_eq!(granted.is_empty(), it.now.wall.0 >= ends, "{:?}", it.now);
    }
    assert!(it.now.wall.0 > 690_000, "{:?}", it.now);
}

#[test]
fn a_new_leader_that_does_not_know_it_takes_it_in_without_losing_its_grants() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    let (ask, _) = it.master_beat();
    let no = Answer::Refused {
        reason: Refusal::Unregistered,
        retry_after_ms: 5_000,
    };
    it.answer(ask, Ok(no));
    let (ask, place, _) = only(&it.pass(1_000));
    assert_eq!(place, Place::Master(Verb::Register));
    it.answer(ask, Ok(registered(6)));
    let (ask, ..) = only(&it.publish(Publication::Probe(probe(2))));
    let ops = it.answer(
        ask,
        Ok(Answer::Confirmed {
            by: leader(6),
            grants: vec![],
        }),
    );
    assert!(
        !ops.iter().any(|op| matches!(op, Op::Serve(_))),
        "it serves already"
    );
    assert_eq!(windows(it.slave.grants(it.now)), [11].into());
    assert_eq!(grants_in(&it.beat("a", 10)), [(11, Range::RING)]);
}

#[test]
fn a_former_leaders_answer_is_none() {
    let (mut it, ask) = Bench::joined();
    it.answer(ask, Ok(heard(6, it.now, vec![])));
    let (ask, _) = it.master_beat();
    let measured = it.slave.clock_offset_ms();
    let elsewhen = Now {
        wall: crate::time::Wall(0),
        ..it.now
    };
    it.answer(ask, Ok(heard(5, elsewhen, vec![])));
    assert_eq!(it.slave.clock_offset_ms(), measured);
    assert_eq!(it.slave.dropped().lower_term, 1);
    assert_eq!(it.slave.status(it.now).term, Some(term(6)));
}

#[test]
fn a_leader_that_forgot_the_terms_lets_it_in_and_hears_the_higher_one() {
    let mut it = Bench::fresh();
    let (ask, ..) = only(&it.ops(Input::Started));
    it.answer(ask, Ok(registered(9)));
    let (ask, ..) = only(&it.publish(Publication::Probe(probe(2))));
    it.answer(ask, Err(AskError::TimedOut));
    let (ask, ..) = only(&it.pass(500));
    it.answer(ask, Ok(registered(1)));
    let (ask, ..) = only(&it.publish(Publication::Probe(probe(2))));
    let by = leader(1);
    let confirmed = Answer::Confirmed { by, grants: vec![] };
    let (_, _, question) = only(&it.answer(ask, Ok(confirmed)));
    let Question::SlaveBeat(beat) = question else {
        panic!("{question:?}")
    };
    assert_eq!(beat.term, Some(term(9)));
}

#[test]
fn a_newcomer_waits_for_a_live_twin_and_says_so() {
    let mut it = Bench::fresh();
    let (ask, ..) = only(&it.ops(Input::Started));
    let no = Answer::Refused {
        reason: Refusal::TwinAlive,
        retry_after_ms: 9_000,
    };
    assert_eq!(it.answer(ask, Ok(no)), vec![]);
    assert!(it.slave.waits_for_twin());
    assert_eq!(
        it.slave.ready(it.now),
        ["another live process has this id: it waits"]
    );
}

#[test]
fn who_finds_a_twin_when_it_comes_back_serves_nothing_meanwhile() {
    let (mut it, ask) = Bench::joined();
    let no = |reason| Answer::Refused {
        reason,
        retry_after_ms: 0,
    };
    it.answer(ask, Ok(no(Refusal::Unregistered)));
    let (ask, ..) = only(&it.pass(1_000));
    let ops = it.answer(ask, Ok(no(Refusal::TwinAlive)));
    assert_eq!(ops, vec![Op::Withdraw(Endpoints::Slave(node("s-1")))]);
}

#[test]
fn who_is_superseded_says_so_and_stops() {
    let (mut it, ask) = Bench::joined();
    let no = Answer::Refused {
        reason: Refusal::Superseded,
        retry_after_ms: 0,
    };
    let orders = it.handle(Input::Bus(Told::Answered {
        ask,
        answer: Ok(no),
    }));
    let said = Event::new(it.now.wall, it.slave.author(), Fact::Superseded);
    let expected = vec![
        Order::Bus(Op::Tell(said)),
        Order::Bus(Op::Withdraw(Endpoints::Slave(node("s-1")))),
        Order::Bus(Op::Ignore(Topic::SlaveWindows(node("s-1")))),
        Order::Stop(End::Superseded),
    ];
    assert_eq!(orders, expected);
    assert_eq!(it.handle(Input::Woke), vec![]);
    assert_eq!(it.slave.wake_at(), Wake::NEVER);
}

#[test]
fn a_drained_slave_leaves_at_once_and_stops_when_all_know() {
    let mut it = Bench::with(&["a"]);
    let (leave, place, question) = only(&it.ops(Input::Drained));
    assert_eq!(place, Place::Master(Verb::Leave));
    let gone = Leave {
        who: who("s-1", 2),
        after: None,
    };
    assert_eq!(question, Question::Leave(gone));
    assert_eq!(it.answer(leave, Ok(Answer::Left)), vec![]);
    assert_eq!(
        refused(&it.enter("b", 11, "orders")),
        Some(Refusal::Draining)
    );
    assert_eq!(refused(&it.beat("a", 10)), Some(Refusal::Draining));
    assert_eq!(
        it.handle(Input::Woke),
        vec![],
        "it has stopped with that beat"
    );
}

#[test]
fn a_leave_that_timed_out_is_said_again_but_not_for_ever() {
    let mut it = Bench::with(&[]);
    let (leave, ..) = only(&it.ops(Input::Drained));
    let (_, place, _) = only(&it.answer(leave, Err(AskError::TimedOut)));
    assert_eq!(place, Place::Master(Verb::Leave));
    it.now.mono = it.now.mono.plus(Duration::from_secs(15));
    let orders = it.handle(Input::Woke);
    assert_eq!(orders.last(), Some(&Order::Stop(End::Drained)));
}

#[test]
fn a_slave_that_was_never_in_stops_at_once() {
    let mut it = Bench::fresh();
    let topic = Topic::SlaveWindows(node("s-1"));
    let expected = vec![Order::Bus(Op::Ignore(topic)), Order::Stop(End::Drained)];
    assert_eq!(it.handle(Input::Drained), expected);
}

#[test]
fn an_orchestrators_coming_and_going_is_told() {
    let mut it = Bench::with(&[]);
    it.enter("a", 10, "orders");
    let leave = Leave {
        who: who("a", 10),
        after: None,
    };
    let (ops, answer) = it.ask(Verb::Leave, Question::Leave(leave));
    assert_eq!(answer, Answer::Left);
    let left = Fact::Left {
        role: Kind::Orchestrator,
        id: node("a"),
        boot: boot(10),
        graceful: true,
        service: Some(service("orders")),
    };
    let event = Event::new(it.now.wall, it.slave.author(), left);
    assert_eq!(ops, vec![Op::Tell(event)]);
}

#[test]
fn who_could_hear_nobody_expires_nobody() {
    let mut it = Bench::with(&["a"]);
    it.tell(Told::Disconnected);
    it.pass(60_000);
    it.tell(Told::Connected);
    it.pass(1_000);
    assert_eq!(refused(&it.beat("a", 10)), None);
}

#[test]
fn who_was_suspended_expires_nobody() {
    let mut it = Bench::with(&["a"]);
    it.pass(600_000);
    assert_eq!(refused(&it.beat("a", 10)), None);
}

#[test]
fn a_silent_orchestrator_is_out_after_a_session() {
    let mut it = Bench::with(&["a"]);
    for _ in 0..16 {
        it.pass(1_000);
    }
    assert_eq!(refused(&it.beat("a", 10)), Some(Refusal::Unregistered));
}

#[test]
fn its_status_lists_members_and_grants() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    let (_, answer) = it.ask(Verb::Status, Question::Status);
    let Answer::Slave(status) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(status.who, who("s-1", 2));
    assert_eq!(status.term, Some(term(5)));
    assert_eq!(status.orchestrators.len(), 1);
    assert_eq!((status.grants.len(), status.granted.len()), (1, 1));
}

#[test]
fn a_question_at_the_wrong_endpoint_makes_no_sense() {
    let mut it = Bench::with(&[]);
    let (_, answer) = it.ask(Verb::Leave, Question::Status);
    assert_eq!(refused(&answer), Some(Refusal::BadRequest));
    let nobody = Register {
        who: who("a", 10),
        service: None,
        build: "1".into(),
    };
    let (_, answer) = it.ask(Verb::Register, Question::Register(nobody));
    assert_eq!(refused(&answer), Some(Refusal::BadRequest));
}

#[test]
fn a_wake_without_reason_changes_nothing() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    assert_eq!(it.ops(Input::Woke), vec![]);
    let before = alloc::format!("{:?}", it.slave);
    assert_eq!(it.ops(Input::Woke), vec![]);
    assert_eq!(alloc::format!("{:?}", it.slave), before);
}

#[test]
fn its_next_deadline_always_lies_ahead() {
    let mut it = Bench::with(&["a", "b"]);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    for _ in 0..200 {
        let (wait, why) = it.slave.wake_at().after(it.now).unwrap();
        assert!(wait > Duration::ZERO, "{why} at {:?}", it.now);
        it.pass(u64::try_from(wait.as_millis()).unwrap());
    }
}

#[test]
fn a_connection_known_to_be_down_is_not_left_once_more() {
    let (mut it, ask) = Bench::joined();
    it.answer(ask, Err(AskError::TimedOut));
    it.tell(Told::Disconnected);
    let (ask, _) = it.master_beat();
    assert_eq!(it.answer(ask, Err(AskError::TimedOut)), vec![]);
    assert_eq!(it.slave.ready(it.now), ["the bus is disconnected"]);
}

#[test]
fn a_master_with_other_windows_is_a_reason_and_the_members_count_as_sick() {
    let mut it = Bench::with(&["a"]);
    let other = Timing::for_window(Duration::from_secs(30));
    let mine = || grant(&who("s-1", 2), 11, Range::RING);
    it.publish(Publication::Grant(GrantWire::new(&scope(), &other, mine())));
    let why = "the window's times are not ours: compare the configured window lengths";
    assert_eq!(it.slave.ready(it.now), [why]);
    let (ask, beat) = it.master_beat();
    assert_eq!((beat.loads[0].live, beat.loads[0].sick), (1, 1));
    it.answer(ask, Ok(heard(5, it.now, vec![])));
    it.grant(mine());
    assert!(it.slave.ready(it.now).is_empty());
}
