//! Round robin.

use super::*;

fn count(name: &str) -> Order {
    Order::Registry(registry::Op::Count {
        service: service(name),
    })
}

fn counted(name: &str, count: u64) -> Input {
    told(registry::Told::Counted {
        service: service(name),
        count,
    })
}

fn question(exclude: &[&str]) -> Question {
    Question::Assign(Assign {
        who: who("o-1", 1),
        service: service("orders"),
        exclude: exclude.iter().map(|name| id(name)).collect(),
    })
}

fn assigned(to: ReplyTo, slave: &str) -> Order {
    let answer = Answer::Assigned {
        slave: id(slave),
        term: term(1),
    };
    Order::Bus(bus::Op::Answer { to, answer })
}

fn refused(to: ReplyTo, reason: Refusal) -> Order {
    let answer = Answer::Refused {
        reason,
        retry_after_ms: 5_000,
    };
    Order::Bus(bus::Op::Answer { to, answer })
}

fn three() -> Bench {
    let mut bench = Bench::leader();
    for (name, boot) in [("s-1", 1), ("s-2", 2), ("s-3", 3)] {
        bench.join(name, boot);
    }
    bench
}

#[test]
fn the_registry_counts_and_the_answer_goes_to_who_asked_first() {
    let mut bench = three();
    let (first, orders) = bench.ask(Place::Assign, question(&[]));
    assert_eq!(orders, [count("orders")]);
    let (second, _) = bench.ask(Place::Assign, question(&[]));
    bench.check(counted("orders", 4), &[assigned(first, "s-2")]);
    bench.check(counted("orders", 5), &[assigned(second, "s-3")]);
    bench.check(counted("orders", 6), &[]);
}

#[test]
fn excluded_slaves_are_passed_over_unless_nobody_else_is_left() {
    let mut bench = three();
    let (to, _) = bench.ask(Place::Assign, question(&["s-1"]));
    bench.check(counted("orders", 2), &[assigned(to, "s-2")]);
    let (to, _) = bench.ask(Place::Assign, question(&["s-1", "s-2", "s-3"]));
    bench.check(counted("orders", 2), &[assigned(to, "s-3")]);
}

#[test]
fn who_moves_goes_to_a_slave_with_fewer_than_its_share() {
    let mut bench = three();
    for (name, boot, live) in [("s-1", 1, 4), ("s-2", 2, 3), ("s-3", 3, 0)] {
        bench.beat(name, boot, vec![load("orders", live, 0)]);
    }
    for n in 0..3 {
        let (to, _) = bench.ask(Place::Assign, question(&["s-1"]));
        bench.check(counted("orders", n), &[assigned(to, "s-3")]);
    }
}

#[test]
fn without_slaves_nobody_is_assigned() {
    let mut bench = Bench::leader();
    let (to, orders) = bench.ask(Place::Assign, question(&[]));
    assert_eq!(orders, [refused(to, Refusal::NoSlave)]);
}

#[test]
fn a_slave_that_leaves_or_whose_clock_is_off_gets_nobody() {
    let mut bench = three();
    let mut beat = bench.question("s-1", 1, vec![]);
    beat.clock_off = true;
    bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
    let leave = Leave {
        who: who("s-2", 2),
        after: Some(FIRST.next()),
    };
    bench.asked(Place::Master(Verb::Leave), Question::Leave(leave));
    for n in 0..3 {
        let (to, _) = bench.ask(Place::Assign, question(&[]));
        bench.check(counted("orders", n), &[assigned(to, "s-3")]);
    }
}

#[test]
fn without_registry_the_round_goes_on_in_memory_from_where_it_was() {
    let mut bench = three();
    let (to, _) = bench.ask(Place::Assign, question(&[]));
    bench.check(counted("orders", 3), &[assigned(to, "s-1")]);
    let (to, _) = bench.ask(Place::Assign, question(&[]));
    let op = registry::Op::Count {
        service: service("orders"),
    };
    let orders = bench.does(told(registry::Told::Unreachable { op }));
    assert!(orders.contains(&assigned(to, "s-2")), "{orders:?}");
    let (to, orders) = bench.ask(Place::Assign, question(&[]));
    assert_eq!(orders, [assigned(to, "s-3")], "it is known to be gone");
}

#[test]
fn open_questions_are_bounded_and_refused_when_leadership_ends() {
    let mut bench = three();
    let mut open = Vec::new();
    for _ in 0..256 {
        open.push(bench.ask(Place::Assign, question(&[])).0);
    }
    let (to, orders) = bench.ask(Place::Assign, question(&[]));
    assert_eq!(orders, [refused(to, Refusal::Busy)]);
    let leader = Fact::Leader {
        term: foreign_term(2),
    };
    let orders = bench.does(bench.foreign_event(leader));
    let expected: Vec<Order> = open
        .iter()
        .map(|to| refused(*to, Refusal::NotLeader))
        .collect();
    assert_eq!(orders[..256], expected);
}

#[test]
fn right_after_a_cut_the_fullest_slave_is_asked_to_give_a_few_up() {
    let mut bench = three();
    let all = [("s-1", 1, 20), ("s-2", 2, 4), ("s-3", 3, 0)];
    bench.live(12, &all);
    let hints = |bench: &mut Bench, name: &str, boot, live| {
        let beat = bench.question(name, boot, vec![load("orders", live, 0)]);
        let (answer, _) = bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
        let Answer::Heard { hints, .. } = answer else {
            panic!("{answer:?}")
        };
        hints
    };
    let few = Hint {
        service: service("orders"),
        count: 2,
    };
    assert_eq!(hints(&mut bench, "s-1", 1, 20), [few]);
    assert_eq!(hints(&mut bench, "s-2", 2, 4), []);
    let even = [("s-1", 1, 8), ("s-2", 2, 8), ("s-3", 3, 7)];
    bench.live(30, &even);
    assert_eq!(hints(&mut bench, "s-1", 1, 8), []);
}
