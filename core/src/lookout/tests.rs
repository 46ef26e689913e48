//! The lookout, sentence by sentence.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::*;
use crate::time::Wall;

mod more;
mod waiting;

struct Bench(Lookout);

impl Bench {
    fn standard() -> Self {
        Self(Lookout::new(Timing::default(), false, 3))
    }

    fn new() -> Self {
        Self(Lookout::new(Timing::default(), true, 3))
    }

    /// With a lease and slots and, at 0, the first sweep answered.
    fn ready(free: u32) -> Self {
        let mut b = Self::new();
        b.check(0, Input::Slots { free, total: free });
        let orders = b.check(0, Input::Lease { startable: true });
        b.settle(0, orders, |_| 0);
        b
    }

    fn check(&mut self, at: u64, input: Input) -> Vec<Order> {
        let now = Now {
            wall: Wall(0),
            mono: Mono(at),
        };
        let mut out = Vec::new();
        self.0.handle(now, input, &mut out);
        let spoken: u32 = self.0.open.values().map(|o| o.limit).sum();
        assert!(
            spoken <= self.0.free.max(spoken),
            "claims beyond free slots"
        );
        out
    }

    fn looked(&mut self, at: u64, order: &Order, claimed: u32) -> Vec<Order> {
        let input = Input::Looked {
            look: order.look,
            claimed,
            backlog: None,
        };
        self.check(at, input)
    }

    /// Wakes it and answers every order, those that answers bring, too.
    fn settled(&mut self, at: u64, rows: impl Fn(&Order) -> u32) -> Vec<Order> {
        let orders = self.check(at, Input::Woke);
        self.settle(at, orders, rows)
    }

    fn settle(
        &mut self,
        at: u64,
        mut orders: Vec<Order>,
        rows: impl Fn(&Order) -> u32,
    ) -> Vec<Order> {
        let mut i = 0;
        while let Some(order) = orders.get(i).cloned() {
            let more = self.looked(at, &order, rows(&order));
            orders.extend(more);
            i += 1;
            assert!(i < 100, "it spins");
        }
        orders
    }

    fn ranges(&mut self, at: u64) -> Vec<Order> {
        self.check(at, Input::RangesChanged(vec![Range::RING]))
    }

    fn next(&self) -> u64 {
        self.0.wake_at().mono.unwrap().0.0
    }
}

fn polls(orders: &[Order]) -> Vec<&Order> {
    let due = |o: &&Order| matches!(o.rows, Look::Due { .. }) && !o.suspects;
    orders.iter().filter(due).collect()
}

#[test]
fn own_ranges_are_polled_at_once_when_a_window_begins() {
    let mut b = Bench::ready(10);
    let got = b.ranges(100);
    let due = Look::Due {
        ranges: vec![Range::RING],
    };
    assert_eq!(got.len(), 1);
    assert_eq!(
        (&got[0].rows, got[0].limit, got[0].suspects),
        (&due, 10, false)
    );
}

#[test]
fn a_poll_follows_the_last_by_a_second_with_jitter() {
    let mut b = Bench::ready(10);
    let first = b.ranges(100);
    b.looked(110, &first[0], 0);
    let Due { poll_at, .. } = b.0.due;
    assert!((850..=1_350).contains(&poll_at.0), "{poll_at:?}");
    assert_eq!(polls(&b.check(poll_at.0 - 1, Input::Woke)).len(), 0);
    assert_eq!(polls(&b.check(poll_at.0, Input::Woke)).len(), 1);
}

#[test]
fn a_full_page_is_followed_at_once() {
    let mut b = Bench::ready(100);
    let first = b.ranges(100);
    assert_eq!(first[0].limit, PAGE);
    let second = b.looked(110, &first[0], PAGE);
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].limit, 100 - PAGE);
}

#[test]
fn no_more_is_claimed_than_can_start() {
    let mut b = Bench::ready(4);
    let first = b.ranges(100);
    assert_eq!(first[0].limit, 4);
    assert_eq!(b.check(1_500, Input::Woke), [], "all slots are spoken for");
    assert_eq!(b.looked(1_600, &first[0], 4), []);
    assert_eq!(b.check(1_600, Input::Slots { free: 0, total: 4 }), []);
    assert_eq!(b.0.wake_at(), Wake::NEVER);
    let got = b.check(1_700, Input::Slots { free: 1, total: 4 });
    assert_eq!(got.iter().map(|o| o.limit).sum::<u32>(), 1);
}

#[test]
fn without_a_lease_or_slots_nothing_is_looked_for() {
    let mut b = Bench::new();
    assert_eq!(b.ranges(0), []);
    assert_eq!(b.check(0, Input::Lease { startable: true }), []);
    assert_ne!(b.check(0, Input::Slots { free: 4, total: 4 }), []);
    let mut b = Bench::ready(4);
    b.check(10, Input::Lease { startable: false });
    assert_eq!(b.ranges(20), []);
    assert_eq!(b.0.wake_at(), Wake::NEVER);
}

#[test]
fn a_standard_node_never_looks() {
    let mut b = Bench::standard();
    b.check(0, Input::Slots { free: 4, total: 4 });
    b.check(0, Input::Lease { startable: true });
    assert_eq!(b.ranges(0), []);
    assert_eq!(b.check(60_000, Input::Woke), []);
}

#[test]
fn a_draining_node_looks_no_more() {
    let mut b = Bench::ready(4);
    b.check(10, Input::Drained);
    assert_eq!(b.ranges(20), []);
    assert_eq!(b.check(60_000, Input::Woke), []);
}

#[test]
fn the_safety_net_gets_every_slot_without_a_ring_and_few_with_one() {
    let mut b = Bench::ready(32);
    let alone = b.check(2_000, Input::Woke);
    let sum = |orders: &[Order]| orders.iter().map(|o| o.limit).sum::<u32>();
    assert_eq!(sum(&alone), 32, "{alone:?}");
    b.settle(2_010, alone, |_| 0);
    let first = b.ranges(2_020);
    b.settle(2_030, first, |_| 0);
    let both = b.check(9_000, Input::Woke);
    let polled = polls(&both)[0].limit;
    let swept = sum(&both) - polled;
    assert_eq!(
        (swept, polled),
        (32 / SWEEP_SHARE + 1, 32 - 32 / SWEEP_SHARE - 1),
        "{both:?}"
    );
}

#[test]
fn both_kinds_of_sweeps_come_to_their_turn_even_in_one_slot() {
    for slots in [1, 16] {
        let mut b = Bench::ready(slots);
        b.check(0, Input::Suspects(1));
        let (mut orphans, mut overdue) = (0, 0);
        for at in (1_000..40_000).step_by(500) {
            for order in b.settled(at, |_| 0) {
                match order.rows {
                    Look::Orphans => orphans += 1,
                    Look::Overdue { by } => {
                        assert_eq!(by, Duration::from_secs(10));
                        overdue += 1;
                    }
                    Look::Due { .. } | Look::Waiting { .. } => panic!("{order:?}"),
                }
            }
        }
        assert!(orphans >= 8 && overdue >= 8, "{orphans} {overdue}");
    }
}

#[test]
fn a_busy_ring_does_not_starve_the_safety_net() {
    let mut b = Bench::ready(8);
    let first = b.ranges(100);
    b.looked(110, &first[0], 8);
    let mut swept = 0;
    for at in (1_000..20_000).step_by(100) {
        let orders = b.check(at, Input::Slots { free: 1, total: 8 });
        let due = |o: &Order| u32::from(matches!(o.rows, Look::Due { .. }));
        let orders = b.settle(at, orders, due);
        swept += orders.iter().filter(|o| o.rows == Look::Orphans).count();
    }
    assert!(swept >= 4, "{swept}");
}

#[test]
fn suspects_are_taken_one_at_a_time() {
    let mut b = Bench::ready(16);
    let orders = b.ranges(0);
    b.settle(0, orders, |_| 0);
    let suspects = |orders: Vec<Order>| -> Vec<u32> {
        let only = orders.into_iter().filter(|o| o.suspects);
        only.map(|o| o.limit).collect()
    };
    let mut seen = Vec::new();
    for at in (1_000..30_000).step_by(500) {
        seen.extend(suspects(b.settled(at, |o| u32::from(o.suspects))));
        b.check(at, Input::Suspects(u32::from(!seen.is_empty())));
    }
    assert_eq!(seen, [1], "while it runs, no other");
    b.check(30_000, Input::Suspects(0));
    b.check(
        30_000,
        Input::Slots {
            free: 16,
            total: 16,
        },
    );
    let mut kinds = Vec::new();
    for at in (30_000..60_000).step_by(500) {
        kinds.extend(
            b.settled(at, |_| 0)
                .into_iter()
                .filter(|o| o.suspects)
                .map(|o| o.rows),
        );
    }
    assert!(kinds.contains(&Look::Orphans));
    assert!(kinds.iter().any(|r| matches!(r, Look::Due { .. })));
    assert!(kinds.iter().any(|r| matches!(r, Look::Overdue { .. })));
}

#[test]
fn an_unreachable_store_is_left_alone_for_longer_and_longer() {
    let mut b = Bench::ready(16);
    let mut order = b.ranges(100).remove(0);
    let mut at = 100;
    let mut rests = Vec::new();
    for _ in 0..8 {
        assert_eq!(b.check(at, Input::Unreachable { look: order.look }), []);
        let next = b.next();
        rests.push(next - at);
        at = next;
        let got = b.check(at, Input::Woke);
        let others = got.iter().skip(1).map(|o| o.look).collect::<Vec<_>>();
        for look in others {
            b.check(at, Input::Unreachable { look });
        }
        order = got[0].clone();
        at += 1;
    }
    assert!(b.0.health(Mono(at)).sick);
    assert!(rests.iter().all(|r| *r <= 5_000), "{rests:?}");
    assert!(rests[7] > rests[0], "{rests:?}");
    b.looked(at, &order, 0);
    assert!(!b.0.health(Mono(at)).sick);
}

#[test]
fn health_tells_of_the_last_poll() {
    let mut b = Bench::ready(4);
    let first = b.ranges(100);
    let backlog = Backlog {
        due: 12,
        oldest: Duration::from_millis(700),
    };
    let input = Input::Looked {
        look: first[0].look,
        claimed: 0,
        backlog: Some(backlog),
    };
    b.check(150, input);
    let Health {
        polled_ms, sick, ..
    } = b.0.health(Mono(1_150));
    assert_eq!((polled_ms, sick), (Some(1_000), false));
    assert_eq!(b.0.health(Mono(1_150)).backlog, 12);
    assert_eq!(b.0.health(Mono(1_150)).oldest_due_ms, 700);
}

#[test]
fn a_look_that_was_not_made_tells_nothing_of_the_store() {
    let mut b = Bench::ready(4);
    while !b.0.health(Mono(b.next())).sick {
        let at = b.next();
        for order in b.check(at, Input::Woke) {
            b.check(at, Input::Unreachable { look: order.look });
        }
    }
    let at = b.next();
    let before = b.0.health(Mono(at));
    for order in b.check(at, Input::Woke) {
        b.check(at, Input::NotAsked { look: order.look });
    }
    assert_eq!(b.0.health(Mono(at)), before);
    let again = b.next();
    assert!(!b.check(again, Input::Woke).is_empty(), "it is free again");
}

#[test]
fn a_node_without_a_lease_for_a_whole_lease_is_sick() {
    let mut b = Bench::ready(4);
    let sick = |b: &Bench, at| b.0.health(Mono(at)).sick;
    b.check(1_000, Input::Lease { startable: false });
    assert!(!sick(&b, 6_999));
    b.check(6_999, Input::Woke);
    assert!(sick(&b, 7_000));
    b.check(8_000, Input::Lease { startable: true });
    assert!(!sick(&b, 20_000));
}

#[test]
fn an_answer_that_comes_twice_counts_once() {
    let mut b = Bench::ready(4);
    let first = b.ranges(100);
    b.looked(110, &first[0], 2);
    let before = b.0.clone();
    b.looked(110, &first[0], 2);
    assert_eq!(b.0, before);
}

#[test]
fn slots_that_are_free_again_before_they_are_told_are_not_lost() {
    let mut b = Bench::ready(1);
    let first = b.ranges(100);
    assert_eq!(
        b.looked(110, &first[0], 1),
        [],
        "not before the slots are told"
    );
    // The row ended meanwhile: as many slots are free as were told last, so nothing is told.
    assert_eq!(polls(&b.check(111, Input::Woke)).len(), 1);
}

#[test]
fn a_look_for_suspects_that_found_others_is_no_suspect() {
    let mut b = Bench::ready(4);
    let mut looks = 0;
    for at in (1_000..20_000).step_by(500) {
        let orders = b.settled(at, |o| u32::from(o.suspects));
        looks += orders.iter().filter(|o| o.suspects).count();
    }
    assert!(looks > 4, "{looks}");
}
