//! What it tells about itself.

use super::*;
use crate::wire::encode;

#[test]
fn a_standby_is_ready_when_it_could_take_over() {
    let mut bench = Bench::standby();
    let reasons = |bench: &Bench| bench.master.ready(bench.now);
    assert_eq!(reasons(&bench), ["it listens before it competes"]);
    bench.pass(10);
    bench.does(bench.theirs(1));
    assert!(reasons(&bench).is_empty());
    bench.does(Input::Bus(Told::Disconnected));
    assert_eq!(reasons(&bench), ["it does not hear the bus (NATS)"]);
}

#[test]
fn a_status_lists_slaves_and_cuts() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.live(12, &[("s-1", 1, 2)]);
    let status = bench.master.status(bench.now);
    assert_eq!((status.term, status.window_ms), (term(1), 60_000));
    assert_eq!(status.slaves.len(), 1);
    assert_eq!(status.slaves[0].loads, [load("orders", 2, 0)]);
    let cut = cut(FIRST, term(1), &[("s-1", 1, 2)]);
    assert_eq!(status.cuts[0].cut, CutWire::new(&Timing::default(), &cut));
    assert_eq!(status.cuts[0].frozen_ppm, 0);
}

#[test]
fn messages_of_the_largest_cluster_fit_their_limit() {
    let name = |n: usize| alloc::format!("{n:0>64}");
    let mut bench = Bench::leader();
    let slaves: Vec<String> = (0..MAX_SLAVES).map(name).collect();
    for slave in &slaves {
        bench.join(slave, u128::MAX);
    }
    let loads: Vec<Load> = (0..MAX_SERVICES)
        .map(|n| load(&name(n), 4_000_000, 0))
        .collect();
    for _ in 0..41 {
        bench.advance(Duration::from_secs(1));
        let mut orders = Vec::new();
        for slave in &slaves {
            orders.extend(bench.beat(slave, u128::MAX, loads.clone()));
        }
        orders.extend(bench.does(Input::Woke));
        for order in bench.settle(orders, Bench::obey) {
            if let Order::Bus(bus::Op::Tell(event)) = order {
                encode(&event).unwrap();
            }
        }
    }
    let beat = bench.question(&slaves[0], u128::MAX, loads);
    let (answer, _) = bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
    let Answer::Heard { grants, .. } = &answer else {
        panic!("{answer:?}")
    };
    assert_eq!(grants.len(), 2 * MAX_SERVICES);
    encode(&answer).unwrap();
    encode(&Answer::Master(bench.master.status(bench.now))).unwrap();
}
