//! What may be claimed, and when.

use super::*;

#[test]
fn it_claims_only_between_the_guards_of_the_current_window() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, range(0, 49)));
    bench.grant(of_s1(11, range(50, 99)));
    for (at, expected) in [
        (600_999, vec![]),
        (601_000, vec![range(0, 49)]),
        (658_999, vec![range(0, 49)]),
        (659_000, vec![]),
        (660_999, vec![]),
        (661_000, vec![range(50, 99)]),
        (719_000, vec![]),
        (721_000, vec![]),
    ] {
        assert_eq!(bench.it.claimable(Wall(at)), expected, "{at}");
    }
    assert_eq!(bench.it.window_ends(Wall(610_000)), Some(Wall(659_000)));
    assert_eq!(bench.it.window_ends(Wall(670_000)), Some(Wall(719_000)));
    assert_eq!(bench.it.window_ends(Wall(730_000)), None);
}

#[test]
fn grants_of_two_slaves_are_polled_as_one_union() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let (assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    bench.answer(assign, Ok(assigned("s-2")));
    let of_s2 = |part| sub(&who("s-2", 9), &me(), 11, part);
    bench.grant(of_s2(range(50, 99)));
    bench.grant(of_s1(11, range(0, 49)));
    assert_eq!(bench.it.claimable(Wall(670_000)), [range(0, 99)]);
}

#[test]
fn parts_that_do_not_touch_stay_apart() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let (assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
    bench.answer(assign, Ok(assigned("s-2")));
    bench.grant(of_s1(11, range(90, i64::MAX)));
    bench.grant(sub(&who("s-2", 9), &me(), 11, range(i64::MIN, 40)));
    let expected = [range(i64::MIN, 40), range(90, i64::MAX)];
    assert_eq!(bench.it.claimable(Wall(670_000)), expected);
}

#[test]
fn the_first_grant_of_a_slave_for_a_window_stays() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(11, range(0, 49)));
    bench.grant(of_s1(11, range(0, 99)));
    assert_eq!(bench.it.claimable(Wall(670_000)), [range(0, 49)]);
    assert_eq!(bench.it.dropped().conflicting, 1);
}

#[test]
fn a_repeated_grant_is_no_conflict() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(11, range(0, 49)));
    bench.grant(of_s1(11, range(0, 49)));
    assert_eq!(bench.it.dropped(), Dropped::default());
}

#[test]
fn stale_and_foreign_grants_are_counted_and_dropped() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(9, Range::RING));
    bench.grant(of_s1(12, Range::RING));
    bench.grant(sub(&who("s-9", 2), &me(), 10, Range::RING));
    bench.grant(sub(&who("s-1", 2), &who("o-2", 3), 10, Range::RING));
    bench.grant(Grant {
        parent: None,
        ..of_s1(10, Range::RING)
    });
    bench.grant(Grant {
        service: service("payments"),
        ..of_s1(10, Range::RING)
    });
    bench.grant(sub(&who("s-1", 2), &who("o-1", 2), 10, Range::RING));
    let expected = Dropped {
        stale: 2,
        foreign: 4,
        other_boot: 1,
        conflicting: 0,
    };
    assert_eq!(bench.it.dropped(), expected);
    assert_eq!(bench.it.grants().count(), 0);
}

#[test]
fn a_grant_on_somebody_elses_subject_is_not_read() {
    let mut bench = Bench::joined();
    let place = Place::OrchWindows(node("o-2"));
    let body = Publication::Grant(dressed(of_s1(10, Range::RING)));
    bench.tell(Told::Published { place, body });
    assert_eq!(bench.it.grants().count(), 0);
}

#[test]
fn lost_windows_are_healed_by_the_answer_to_a_heartbeat() {
    let mut bench = Bench::joined();
    let (beat, _) = bench.beat();
    let grants = vec![
        dressed(of_s1(10, Range::RING)),
        dressed(of_s1(11, Range::RING)),
    ];
    bench.answer(beat, Ok(heard(grants, false)));
    assert_eq!(windows(bench.it.grants()), [10, 11].into());
}

#[test]
fn a_window_missing_close_to_its_start_is_fetched_once() {
    let mut bench = Bench::joined();
    bench.now.wall = Wall(649_999);
    let fetches = |ops: &[Op]| {
        let all = asked(ops).into_iter();
        all.filter(|(.., q)| matches!(q, Question::Window(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(fetches(&bench.pass(0)), vec![]);
    let fetched = fetches(&bench.pass(1));
    assert_eq!(fetched.len(), 1);
    assert_eq!(fetched[0].1, Place::Slave(node("s-1"), Verb::Window));
    let grants = vec![dressed(of_s1(11, Range::RING))];
    bench.answer(fetched[0].0, Ok(Answer::Grants { grants }));
    assert_eq!(windows(bench.it.grants()), [11].into());
    assert_eq!(fetches(&bench.pass(1_000)), vec![]);
}

#[test]
fn a_window_that_is_there_is_not_fetched() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(11, Range::RING));
    bench.now.wall = Wall(650_000);
    let ops = bench.pass(0);
    assert!(
        !asked(&ops)
            .iter()
            .any(|(.., q)| matches!(q, Question::Window(_)))
    );
}

#[test]
fn a_node_whose_clock_is_off_sits_the_ring_out_until_it_is_right() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, Range::RING));
    bench.ops(Input::ClockMeasured { offset_ms: -501 });
    assert_eq!(bench.it.claimable(bench.now.wall), []);
    assert!(bench.beat().1.health.sick);
    let why = "its clock is off against Postgres: it sits the ring out";
    assert!(bench.it.ready(bench.now).contains(&why));
    bench.ops(Input::ClockMeasured { offset_ms: 500 });
    assert_eq!(bench.it.claimable(bench.now.wall), [Range::RING]);
    assert_eq!(bench.it.clock_offset_ms(), Some(500));
}

#[test]
fn a_heartbeat_tells_the_health_as_it_is_by_now() {
    let mut bench = Bench::joined();
    let health = Health {
        polled_ms: Some(100),
        backlog: 7,
        oldest_due_ms: 30,
        sick: false,
    };
    bench.ops(Input::Measured(health));
    let measured = bench.now.mono;
    let (_, beat) = bench.beat();
    let age = millis_u64(bench.now.mono.since(measured));
    let expected = OrchestratorBeat {
        who: me(),
        service: service("orders"),
        sent_at: Time(bench.now.wall),
        health: Health {
            polled_ms: Some(100 + age),
            ..health
        },
    };
    assert_eq!(beat, expected);
}

#[test]
fn a_clock_that_steps_back_leads_to_no_earlier_window() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, range(0, 49)));
    bench.grant(of_s1(11, range(50, 99)));
    bench.now.wall = Wall(670_000);
    bench.ops(Input::Woke);
    bench.now.wall = Wall(650_000);
    bench.grant(of_s1(10, range(0, 49)));
    assert_eq!(bench.it.claimable(bench.now.wall), []);
    assert_eq!(bench.it.dropped().stale, 1);
    assert_eq!(bench.it.claimable(Wall(670_000)), [range(50, 99)]);
}

#[test]
fn grants_go_when_their_window_is_over() {
    let mut bench = Bench::joined();
    bench.grant(of_s1(10, Range::RING));
    bench.now.wall = Wall(660_000);
    bench.ops(Input::Woke);
    assert_eq!(bench.it.grants().count(), 0);
}

#[test]
fn grants_of_at_most_eight_slaves_are_kept() {
    let mut bench = Bench::joined();
    for n in 2..12 {
        let (beat, _) = bench.beat();
        let (assign, ..) = only(&bench.answer(beat, Ok(heard(vec![], true))));
        let slave = alloc::format!("s-{n}");
        let ops = asked(&bench.answer(assign, Ok(assigned(&slave))));
        bench.enter(&slave, ops[1].0, vec![]);
        bench.now.wall = START.wall;
        bench.grant(sub(&who(&slave, 2), &me(), 10, range(n * 10, n * 10)));
    }
    assert_eq!(bench.it.claimable(bench.now.wall).len(), 8);
}

#[test]
fn a_ring_with_other_windows_is_said_until_a_usable_grant_comes() {
    let mut bench = Bench::joined();
    let other = Timing::for_window(Duration::from_secs(30));
    let strange = GrantWire::new(&scope(), &other, of_s1(10, range(0, 49)));
    bench.publish(Publication::Grant(strange));
    let why = "the window's times are not ours: compare the configured window lengths";
    assert!(bench.it.ready(bench.now).contains(&why));
    bench.grant(of_s1(10, range(0, 49)));
    assert!(!bench.it.ready(bench.now).contains(&why));
}
