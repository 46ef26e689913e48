//! Fail-static: the leader goes on without the registry, and what it did is made good afterwards.

use core::slice;

use super::*;

fn unreachable(order: &Order) -> Option<Input> {
    match order {
        Order::Registry(op) => Some(told(registry::Told::Unreachable { op: op.clone() })),
        Order::Bus(_) | Order::Stop(_) => None,
    }
}

impl Bench {
    /// Lets seconds pass while these slaves beat and the registry is away.
    fn static_for(&mut self, seconds: u64, slaves: &[(&str, u128, u32)]) -> Vec<Order> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.advance(Duration::from_secs(1));
            let mut orders = Vec::new();
            for (name, boot, live) in slaves {
                if self.master.leading().is_some() {
                    orders.extend(self.beat(name, *boot, vec![load("orders", *live, 0)]));
                }
            }
            orders.extend(self.does(Input::Woke));
            all.extend(self.settle(orders, |_, orders| {
                orders.iter().filter_map(unreachable).collect()
            }));
        }
        all
    }
}

const THREE: [(&str, u128, u32); 3] = [("s-1", 1, 1), ("s-2", 2, 1), ("s-3", 3, 1)];

/// 22 s into the window: the current one is cut and stored, the next not yet.
fn three() -> Bench {
    let mut bench = Bench::leader();
    for (name, boot, _) in THREE {
        bench.join(name, boot);
    }
    bench.live(12, &THREE);
    bench
}

#[test]
fn without_registry_the_leader_goes_on_while_a_majority_beats_and_says_so_once() {
    let mut bench = three();
    let orders = bench.static_for(300, &THREE[..2]);
    assert_eq!(bench.master.leading(), Some(term(1)));
    let degraded = |fact: &&Fact| matches!(fact, Fact::Degraded { .. });
    assert_eq!(facts(&orders).iter().filter(degraded).count(), 1);
    assert_eq!(
        bench.master.degraded(),
        Some(super::super::status::NO_REGISTRY)
    );
    let windows: Vec<u64> = cuts(&orders).iter().map(|cut| cut.window.0).collect();
    assert_eq!(windows, (1001..=1005).collect::<Vec<u64>>());
}

#[test]
fn without_registry_and_majority_it_steps_down_when_its_lease_is_over() {
    let mut bench = three();
    let orders = bench.static_for(60, &THREE[..1]);
    assert_eq!(bench.master.leading(), None);
    let why = "its lease is not confirmed and no majority of slaves beats";
    let fact = Fact::SteppedDown {
        term: term(1),
        reason: why.to_string(),
    };
    assert!(facts(&orders).contains(&fact));
}

#[test]
fn the_registry_gets_a_quarter_of_the_lead_before_a_cut_is_published_from_memory() {
    let mut bench = three();
    while bench.now.wall < Timing::default().cut_at(FIRST.next()) {
        assert_eq!(cuts(&bench.static_for(1, &THREE)), []);
    }
    assert_eq!(cuts(&bench.static_for(7, &THREE)), []);
    let made = cut(FIRST.next(), term(1), &THREE);
    assert_eq!(cuts(&bench.static_for(1, &THREE)), [made]);
}

#[test]
fn what_was_published_from_memory_is_stored_before_the_lease_is_confirmed_again() {
    let mut bench = three();
    bench.static_for(60, &THREE);
    assert!(bench.master.board.has_memory());
    let mut orders = Vec::new();
    while !orders.iter().any(|o| matches!(o, Order::Registry(_))) {
        orders = bench.pass(1);
    }
    let made = cut(FIRST.next(), term(1), &THREE);
    let asks = |o: &&Order| matches!(o, Order::Registry(_));
    let asked: Vec<&Order> = orders.iter().filter(asks).collect();
    assert_eq!(asked, [&store(slice::from_ref(&made))]);
    let stored = told(registry::Told::Stored { cuts: vec![made] });
    bench.check(stored, &[renew(1)]);
    let recovered = bench.event(Fact::Recovered {
        reason: "the registry answers again".to_string(),
    });
    bench.check(bench.mine(1), &[recovered]);
    assert_eq!(bench.master.degraded(), None);
}

#[test]
fn a_cut_stored_by_somebody_else_meanwhile_is_counted_as_an_overlap() {
    let mut bench = three();
    bench.static_for(60, &THREE);
    let others = cut(FIRST.next(), foreign_term(0), &[("s-9", 9, 1)]);
    let key = (FIRST.next(), service("orders"));
    let mine = bench.master.board.known[&key].cut.clone();
    let stored = told(registry::Told::Stored { cuts: vec![others] });
    let orders = bench.does(stored);
    let overlaps = |fact: &Fact| matches!(fact, Fact::Overlap { .. });
    assert!(facts(&orders).iter().any(overlaps), "{orders:?}");
    assert_eq!(
        bench.master.board.known[&key].cut, mine,
        "slaves hold this one"
    );
}

#[test]
fn who_left_in_order_is_no_longer_asked_for_its_vote() {
    let mut bench = three();
    for (name, boot) in [("s-1", 1), ("s-2", 2)] {
        let leave = Leave {
            who: who(name, boot),
            after: None,
        };
        bench.asked(Place::Master(Verb::Leave), Question::Leave(leave));
    }
    bench.static_for(60, &THREE[2..]);
    assert_eq!(bench.master.leading(), Some(term(1)));
}

#[test]
fn a_standby_without_registry_waits_and_keeps_asking() {
    let mut bench = Bench::standby();
    let orders = bench.static_for(60, &[]);
    let asks = orders.iter().filter(|o| **o == acquire(0)).count();
    assert!((10..=30).contains(&asks), "{asks}");
    assert_eq!(facts(&orders), []);
}
