//! Any facts in any order: what the lookout never does.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::{id::TargetName, time::Wall};

#[derive(Clone, Debug)]
enum Fact {
    Ring(bool),
    Lease(bool),
    /// The oldest look is answered, with this part (of 4) of what it may claim.
    Looked(u32),
    Failed,
    /// So many transactions end.
    Ended(u32),
    Waiting(u32),
    Suspects(u32),
    /// The machine is woken when it wants to be.
    Woke,
}

fn any_fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        any::<bool>().prop_map(Fact::Ring),
        prop::bool::weighted(0.9).prop_map(Fact::Lease),
        (0..5_u32).prop_map(Fact::Looked),
        (0..5_u32).prop_map(Fact::Looked),
        Just(Fact::Failed),
        (0..20_u32).prop_map(Fact::Ended),
        (0..20_u32).prop_map(Fact::Waiting),
        (0..2_u32).prop_map(Fact::Suspects),
        Just(Fact::Woke),
        Just(Fact::Woke),
    ]
}

/// A node that tells only what changed, as the shell does.
struct Node {
    machine: Lookout,
    now: u64,
    running: u32,
    total: u32,
    told: Option<u32>,
    looks: BTreeMap<u32, u32>,
}

impl Node {
    fn handle(&mut self, input: Input) {
        let mut orders = self.told_to(input);
        let free = self.total - self.running;
        if self.told != Some(free) {
            self.told = Some(free);
            let total = self.total;
            orders.extend(self.told_to(Input::Slots { free, total }));
        }
        for order in orders {
            assert!(order.limit > 0 && order.limit <= PAGE);
            assert!(!order.suspects || order.limit == 1);
            self.looks.insert(order.look, order.limit);
        }
        let spoken: u32 = self.looks.values().sum();
        assert!(spoken <= free, "{spoken} rows asked for, {free} can start");
        assert!(self.looks.len() <= 5);
    }

    fn told_to(&mut self, input: Input) -> Vec<Order> {
        let now = Now {
            wall: Wall(0),
            mono: Mono(self.now),
        };
        let mut out = Vec::new();
        self.machine.handle(now, input, &mut out);
        assert!(out.is_empty() || self.machine.startable);
        out
    }

    fn woke(&mut self) {
        let Some((at, _)) = self.machine.wake_at().mono else {
            self.now += 100;
            return self.handle(Input::Woke);
        };
        self.now = self.now.max(at.0);
        let before = self.looks.len();
        self.handle(Input::Woke);
        let next = self.machine.wake_at().mono;
        let later = next.is_none_or(|(at, _)| at.0 > self.now);
        assert!(later || self.looks.len() > before, "it spins");
    }

    fn take(&mut self, fact: Fact) {
        self.now += 1;
        match fact {
            Fact::Ring(on) => {
                let ranges = if on { vec![Range::RING] } else { vec![] };
                self.handle(Input::RangesChanged(ranges));
            }
            Fact::Lease(startable) => self.handle(Input::Lease { startable }),
            Fact::Looked(part) => {
                if let Some((look, limit)) = self.looks.pop_first() {
                    let claimed = limit * part.min(4) / 4;
                    self.running += claimed;
                    let backlog = None;
                    self.handle(Input::Looked {
                        look,
                        claimed,
                        backlog,
                    });
                }
            }
            Fact::Failed => {
                if let Some((look, _)) = self.looks.pop_first() {
                    self.handle(Input::Unreachable { look });
                }
            }
            Fact::Ended(n) => {
                self.running = self.running.saturating_sub(n);
                self.handle(Input::Woke);
            }
            Fact::Waiting(room) => {
                let bank = TargetName::new("bank").unwrap();
                let rooms = BTreeMap::from([(bank, room)]);
                let rooms = rooms.into_iter().filter(|(_, room)| *room > 0);
                self.handle(Input::Waiting(rooms.collect()));
            }
            Fact::Suspects(n) => self.handle(Input::Suspects(n)),
            Fact::Woke => self.woke(),
        }
    }
}

fn node(total: u32, seed: u64) -> Node {
    Node {
        machine: Lookout::new(Timing::default(), true, seed),
        now: 0,
        running: 0,
        total,
        told: None,
        looks: BTreeMap::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn it_never_asks_for_more_than_can_start_and_never_spins(
        total in 1..200_u32, seed: u64, facts in prop::collection::vec(any_fact(), 0..120),
    ) {
        let mut node = node(total, seed);
        for fact in facts {
            node.take(fact);
        }
    }

    #[test]
    fn whatever_came_before_a_free_node_with_a_lease_looks_everywhere_within_seconds(
        total in 1..200_u32, seed: u64, facts in prop::collection::vec(any_fact(), 0..120),
    ) {
        let mut node = node(total, seed);
        for fact in facts {
            node.take(fact);
        }
        for _ in 0..10 {
            node.take(Fact::Looked(0));
        }
        node.running = 0;
        node.take(Fact::Suspects(1));
        node.take(Fact::Lease(true));
        node.take(Fact::Ring(true));
        // A rest after failures may come first.
        let until = node.now + 8_000;
        let mut seen = [false; 3];
        while node.now < until {
            node.woke();
            for open in node.machine.open.values() {
                match open.kind {
                    Kind::Due => seen[0] = true,
                    Kind::Orphans => seen[1] = true,
                    Kind::Overdue => seen[2] = true,
                    Kind::Waiting | Kind::Suspect => {}
                }
            }
            while !node.looks.is_empty() {
                node.take(Fact::Looked(0));
            }
        }
        prop_assert_eq!(seen, [true; 3]);
    }
}
