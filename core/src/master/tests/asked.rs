//! The leader's endpoints.

use super::*;
use crate::wire::Probe;

fn refused(answer: &Answer) -> Option<Refusal> {
    if let Answer::Refused { reason, .. } = answer {
        Some(*reason)
    } else {
        None
    }
}

#[test]
fn a_slave_is_in_after_it_proved_that_it_hears_its_own_subject() {
    let mut bench = Bench::leader();
    let register = Register {
        who: who("s-1", 1),
        service: None,
        build: "1".into(),
    };
    let (to, orders) = bench.ask(Place::Master(Verb::Register), Question::Register(register));
    let nonce = Nonce(Uuid::from_u128(u128::from(to.0)));
    let by = who("m-1", ME);
    let boot = boot(1);
    let expected = [
        Order::Bus(bus::Op::Publish {
            place: Place::SlaveWindows(id("s-1")),
            body: Publication::Probe(Probe { boot, nonce }),
        }),
        Order::Bus(bus::Op::Answer {
            to,
            answer: Answer::Registered {
                by: by.clone(),
                term: Some(term(1)),
            },
        }),
    ];
    assert_eq!(orders, expected);
    assert_eq!(bench.master.roster.len(), 0);
    let confirm = Confirm {
        who: who("s-1", 1),
        nonce,
    };
    let joined = bench.event(Fact::Joined {
        role: Role::Slave,
        id: id("s-1"),
        boot,
        service: None,
    });
    let question = Question::Confirm(confirm);
    let (answer, orders) = bench.asked(Place::Master(Verb::Confirm), question.clone());
    let confirmed = Answer::Confirmed { by, grants: vec![] };
    assert_eq!((answer, orders), (confirmed.clone(), vec![joined]));
    let again = bench.asked(Place::Master(Verb::Confirm), question);
    assert_eq!(again, (confirmed, vec![]), "a repeat tells nothing");
}

#[test]
fn a_heartbeat_of_an_unknown_boot_is_told_to_register() {
    let mut bench = Bench::leader();
    let beat = bench.question("s-1", 1, vec![]);
    let (answer, _) = bench.asked(
        Place::Master(Verb::Heartbeat),
        Question::SlaveBeat(beat.clone()),
    );
    assert_eq!(refused(&answer), Some(Refusal::Unregistered));
    bench.overhear(beat);
    assert_eq!(bench.master.roster.len(), 0, "a leader presumes nobody");
}

#[test]
fn a_reply_tells_term_and_clock() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    let beat = bench.question("s-1", 1, vec![]);
    let (answer, orders) = bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
    let heard = Answer::Heard {
        by: who("m-1", ME),
        term: Some(term(1)),
        now: Time(bench.now.wall),
        grants: vec![],
        hints: vec![],
        moves: false,
    };
    assert_eq!((answer, orders), (heard, vec![]));
}

#[test]
fn a_twin_waits_while_the_holder_lives_and_has_the_id_afterwards() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    assert_eq!(refused(&bench.register("s-1", 2)), Some(Refusal::TwinAlive));
    bench.live(15, &[]);
    bench.join("s-1", 2);
    let beat = bench.question("s-1", 1, vec![]);
    let (answer, _) = bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
    assert_eq!(refused(&answer), Some(Refusal::Superseded));
}

#[test]
fn who_does_not_lead_says_so() {
    let mut bench = Bench::standby();
    let (answer, orders) = bench.asked(Place::Master(Verb::Status), Question::Status);
    let no = Answer::Refused {
        reason: Refusal::NotLeader,
        retry_after_ms: 5_000,
    };
    assert_eq!((answer, orders), (no, vec![]));
    let mut bench = Bench::leader();
    bench.does(Input::Drained);
    let (answer, _) = bench.asked(Place::Master(Verb::Status), Question::Status);
    assert_eq!(refused(&answer), Some(Refusal::Draining));
}

#[test]
fn a_heartbeat_that_tells_of_a_higher_term_is_not_answered_as_leader() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    let mut beat = bench.question("s-1", 1, vec![]);
    beat.term = Some(foreign_term(2));
    let (answer, _) = bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
    assert_eq!(refused(&answer), Some(Refusal::NotLeader));
    assert_eq!(bench.master.leading(), None);
}

#[test]
fn questions_that_make_no_sense_here_are_refused() {
    let mut bench = Bench::leader();
    let (answer, _) = bench.asked(Place::Master(Verb::Leave), Question::Status);
    assert_eq!(refused(&answer), Some(Refusal::BadRequest));
    let orchestrator = Register {
        who: who("o-1", 1),
        service: Some(service("orders")),
        build: "1".into(),
    };
    let (answer, _) = bench.asked(
        Place::Master(Verb::Register),
        Question::Register(orchestrator),
    );
    assert_eq!(refused(&answer), Some(Refusal::BadRequest));
}

#[test]
fn a_storm_of_registrations_is_let_in_by_portions() {
    let mut bench = Bench::leader();
    let registered = |bench: &mut Bench, n: usize| {
        let name = alloc::format!("s-{n}");
        refused(&bench.register(&name, 1))
    };
    for n in 0..MAX_NEWCOMERS {
        assert_eq!(registered(&mut bench, n), None);
    }
    assert_eq!(registered(&mut bench, MAX_NEWCOMERS), Some(Refusal::Busy));
}

#[test]
fn a_leave_after_a_window_keeps_the_seat_until_then() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.join("s-2", 2);
    bench.live(12, &[("s-1", 1, 1), ("s-2", 2, 1)]);
    let leave = Leave {
        who: who("s-1", 1),
        after: Some(FIRST.next()),
    };
    let (answer, orders) = bench.asked(Place::Master(Verb::Leave), Question::Leave(leave));
    assert_eq!((answer, orders), (Answer::Left, vec![]));
    let orders = bench.live(90, &[("s-1", 1, 1), ("s-2", 2, 1)]);
    let holders: Vec<usize> = cuts(&orders).iter().map(|cut| cut.seats.len()).collect();
    assert_eq!(holders, [2, 1]);
}
