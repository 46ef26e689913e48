//! Standing by, competing, leading, stepping down, leaving.

use super::*;
use crate::subject::Topic;

fn listens() -> Vec<Order> {
    [Topic::MasterRequests, Topic::AllSlaveWindows, Topic::Events]
        .map(|topic| Order::Bus(bus::Op::Listen(topic)))
        .to_vec()
}

#[test]
fn a_standby_only_listens_and_competes_after_two_heartbeat_intervals() {
    let mut bench = Bench::new(config());
    bench.check(Input::Started, &listens());
    assert_eq!(bench.pass(9), []);
    assert_eq!(bench.pass(1), [acquire(0)]);
    assert_eq!(bench.pass(3), [], "one question at a time");
}

#[test]
fn the_floor_is_the_highest_term_heard_from_anybody() {
    let mut bench = Bench::standby();
    let mut beat = bench.question("s-1", 1, vec![]);
    beat.term = Some(foreign_term(4));
    bench.overhear(beat);
    let leader = Fact::Leader {
        term: foreign_term(6),
    };
    bench.does(bench.foreign_event(leader));
    let mut other = cut(FIRST, foreign_term(3), &[("s-1", 1, 1)]);
    other.term = foreign_term(9);
    let wire = CutWire::new(&Timing::default(), &other);
    bench.does(bench.foreign_event(Fact::Cut { cut: wire }));
    assert_eq!(bench.listen(), [acquire(9)]);
}

#[test]
fn who_gets_the_lease_serves_and_reads_the_stored_cuts_first() {
    let mut bench = Bench::standby();
    bench.listen();
    let leader = bench.event(Fact::Leader { term: term(1) });
    let windows = vec![FIRST, FIRST.next()];
    bench.check(
        bench.mine(1),
        &[
            Order::Bus(bus::Op::Ignore(Topic::MasterRequests)),
            Order::Bus(bus::Op::Serve(Endpoints::Master)),
            leader,
            Order::Registry(registry::Op::LoadCuts { windows }),
        ],
    );
    assert_eq!(bench.master.leading(), Some(term(1)));
}

#[test]
fn who_does_not_get_the_lease_serves_nothing_and_asks_again() {
    let mut bench = Bench::standby();
    bench.listen();
    bench.check(bench.theirs(5), &[]);
    assert_eq!(bench.pass(3), []);
    assert_eq!(bench.pass(2), [acquire(5)]);
}

#[test]
fn the_lease_is_renewed_at_a_third() {
    let mut bench = Bench::leader();
    assert_eq!(bench.pass(3), []);
    assert_eq!(bench.pass(1), [renew(1)]);
    bench.check(bench.mine(1), &[]);
    assert_eq!(bench.pass(3), []);
    assert_eq!(bench.pass(1), [renew(1)]);
}

#[track_caller]
fn steps_down(bench: &mut Bench, input: Input, reason: &str) {
    let fact = Fact::SteppedDown {
        term: term(1),
        reason: reason.to_string(),
    };
    let told = bench.event(fact);
    bench.check(
        input,
        &[
            Order::Bus(bus::Op::Withdraw(Endpoints::Master)),
            Order::Bus(bus::Op::Listen(Topic::MasterRequests)),
            release(1),
            told,
        ],
    );
    assert_eq!(bench.master.leading(), None);
}

#[test]
fn a_leader_that_hears_a_higher_term_steps_down() {
    let mut bench = Bench::leader();
    let leader = Fact::Leader {
        term: foreign_term(2),
    };
    let input = bench.foreign_event(leader);
    steps_down(&mut bench, input, "a higher term was heard");
    let again = bench.pass(10);
    assert_eq!(again, [acquire(2)]);
}

#[test]
fn a_term_without_room_for_successors_is_not_believed() {
    let mut bench = Bench::leader();
    let forged = foreign_term(crate::joining::LARGEST_TERM - 1);
    let input = bench.foreign_event(Fact::Leader { term: forged });
    bench.check(input, &[]);
    assert_eq!(bench.master.leading(), Some(term(1)));
}

#[test]
fn of_two_equal_terms_the_greater_boot_leads() {
    let mut bench = Bench::leader();
    let leader = Fact::Leader {
        term: foreign_term(1),
    };
    let input = bench.foreign_event(leader);
    steps_down(&mut bench, input, "a higher term was heard");
}

#[test]
fn a_lower_and_a_nonsensical_term_change_nothing() {
    let mut bench = Bench::leader();
    for number in [0, u64::MAX] {
        let leader = Fact::Leader {
            term: foreign_term(number),
        };
        bench.check(bench.foreign_event(leader), &[]);
    }
    assert_eq!(bench.master.leading(), Some(term(1)));
    assert_eq!(bench.master.floor, 1);
}

#[test]
fn a_leader_whose_lease_is_anothers_steps_down() {
    let mut bench = Bench::leader();
    bench.pass(4);
    let theirs = bench.theirs(2);
    steps_down(&mut bench, theirs, "another master has the lease");
}

#[test]
fn an_answer_that_comes_after_the_leadership_gives_the_lease_back() {
    let mut bench = Bench::leader();
    assert_eq!(bench.pass(4), [renew(1)]);
    let leader = Fact::Leader {
        term: foreign_term(2),
    };
    bench.does(bench.foreign_event(leader));
    bench.check(bench.mine(1), &[release(1)]);
}

#[test]
fn a_lease_won_under_a_term_that_is_no_longer_the_highest_is_given_back() {
    let mut bench = Bench::standby();
    bench.listen();
    let leader = Fact::Leader {
        term: foreign_term(3),
    };
    bench.does(bench.foreign_event(leader));
    bench.check(bench.mine(1), &[release(1), acquire(3)]);
    assert_eq!(bench.master.leading(), None);
}

#[test]
fn a_leader_that_can_t_hear_the_bus_for_a_lease_steps_down() {
    let mut bench = Bench::leader();
    bench.does(Input::Bus(Told::Disconnected));
    bench.live(9, &[]);
    assert_eq!(bench.master.leading(), Some(term(1)));
    bench.advance(Duration::from_secs(1));
    steps_down(&mut bench, Input::Woke, "it does not hear the bus");
    assert_eq!(bench.pass(30), [], "who hears nobody does not compete");
    bench.does(Input::Bus(Told::Connected));
    assert_eq!(bench.pass(9), [], "and listens first when it hears again");
    assert_eq!(bench.pass(1), [acquire(1)]);
}

#[test]
fn after_a_pause_of_the_process_a_standby_listens_anew() {
    let mut bench = Bench::standby();
    bench.pass(8);
    bench.advance(Duration::from_secs(40));
    assert_eq!(bench.does(Input::Woke), []);
    assert_eq!(bench.pass(9), []);
    assert_eq!(bench.pass(1), [acquire(0)]);
}

#[test]
fn a_leader_paused_beyond_its_lease_steps_down_before_anything_else() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.live(30, &[("s-1", 1, 1)]);
    bench.advance(Duration::from_secs(60));
    let why = "its lease is not confirmed and no majority of slaves beats";
    steps_down(&mut bench, Input::Woke, why);
}

#[test]
fn a_drained_leader_withdraws_releases_and_stops() {
    let mut bench = Bench::leader();
    steps_down(&mut bench, Input::Drained, "it was asked to leave");
    bench.check(Input::Drained, &[]);
    let stop = [Order::Stop(End::Drained)];
    bench.check(told(registry::Told::Released), &stop);
    bench.check(Input::Woke, &[]);
    assert_eq!(bench.master.wake_at(), Wake::NEVER);
}

#[test]
fn a_drained_leader_does_not_wait_for_a_silent_registry() {
    let mut bench = Bench::leader();
    bench.does(Input::Drained);
    assert_eq!(bench.pass(3), []);
    assert_eq!(bench.pass(1), [Order::Stop(End::Drained)]);
}

#[test]
fn a_drained_standby_stops_at_once_and_gives_back_what_it_was_about_to_win() {
    let mut bench = Bench::standby();
    bench.check(Input::Drained, &[Order::Stop(End::Drained)]);
    let mut bench = Bench::standby();
    bench.listen();
    bench.check(Input::Drained, &[]);
    bench.check(bench.mine(1), &[release(1)]);
    let stop = [Order::Stop(End::Drained)];
    bench.check(told(registry::Told::Released), &stop);
}

#[test]
fn a_master_alone_leads_without_a_registry_and_never_asks_one() {
    let alone = Config {
        alone: true,
        ..config()
    };
    let mut bench = Bench::new(alone);
    bench.does(Input::Started);
    assert_eq!(bench.pass(9), []);
    bench.advance(Duration::from_secs(1));
    let leader = bench.event(Fact::Leader { term: term(1) });
    let serve = Order::Bus(bus::Op::Serve(Endpoints::Master));
    let ignore = Order::Bus(bus::Op::Ignore(Topic::MasterRequests));
    bench.check(Input::Woke, &[ignore, serve, leader]);
    bench.join("s-1", 1);
    let orders = bench.live(60, &[("s-1", 1, 1)]);
    assert_eq!(cuts(&orders).len(), 2);
    let asks = |order: &Order| matches!(order, Order::Registry(_));
    assert!(!orders.iter().any(asks));
    let withdraw = Order::Bus(bus::Op::Withdraw(Endpoints::Master));
    let orders = bench.does(Input::Drained);
    assert_eq!(orders[0], withdraw);
    assert_eq!(orders.last(), Some(&Order::Stop(End::Drained)));
}

#[test]
fn it_wakes_for_its_own_deadlines_and_not_for_those_that_passed() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    for _ in 0..130 {
        let wake = bench.master.wake_at();
        assert!(wake.mono.is_none_or(|(at, _)| at > bench.now.mono));
        assert!(wake.wall.is_some_and(|(at, _)| at > bench.now.wall));
        bench.live(1, &[("s-1", 1, 1)]);
    }
}

#[test]
fn messages_one_after_another_do_not_keep_it_from_its_work() {
    let mut bench = Bench::standby();
    let mut orders = Vec::new();
    for _ in 0..40 {
        bench.advance(Duration::from_millis(300));
        let beat = bench.question("s-1", 1, vec![]);
        orders.extend(bench.overhear(beat));
    }
    assert_eq!(orders, [acquire(0)]);
}
