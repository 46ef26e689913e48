//! Any calls in any order: what the breaker never does. And a drain in virtual time.

use alloc::{collections::BTreeSet, vec};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Fact {
    Asked {
        caller: u64,
        retry: bool,
    },
    /// One of the calls under way ends so.
    Ended(usize, u8),
    Waits(bool),
    Passed(u64),
}

fn any_fact() -> impl Strategy<Value = Fact> {
    let asked =
        || (0..20_u64, any::<bool>()).prop_map(|(caller, retry)| Fact::Asked { caller, retry });
    prop_oneof![
        asked(),
        asked(),
        (any::<usize>(), 0..3_u8).prop_map(|(which, how)| Fact::Ended(which, how)),
        (any::<usize>(), Just(1)).prop_map(|(which, how)| Fact::Ended(which, how)),
        any::<bool>().prop_map(Fact::Waits),
        (0..3_000_u64).prop_map(Fact::Passed),
    ]
}

struct World {
    breaker: Breaker,
    limits: Limits,
    target: TargetName,
    at: u64,
    under_way: Vec<Pass>,
    changes: Vec<Change>,
}

impl World {
    fn new(seed: u64) -> Self {
        let limits = Limits::for_capacity(64);
        Self {
            breaker: Breaker::new(limits, seed),
            limits,
            target: TargetName::new("bank").unwrap(),
            at: 0,
            under_way: vec![],
            changes: vec![],
        }
    }

    fn now(&self) -> Now {
        Now {
            wall: Wall(0),
            mono: Mono(self.at),
        }
    }

    fn ask(&mut self, caller: u64, retry: bool) -> bool {
        let ask = Ask { caller, retry };
        let verdict = self.breaker.ask(self.now().mono, &self.target, ask);
        if let Verdict::Go(pass) = verdict {
            self.under_way.push(pass);
        }
        let probes = self.under_way.iter().filter(|p| p.probe).count();
        assert!(probes <= usize::try_from(self.limits.probes).unwrap());
        assert!(self.under_way.len() <= usize::try_from(self.limits.concurrency).unwrap());
        matches!(verdict, Verdict::Go(_))
    }

    fn end(&mut self, which: usize, gave: Gave) {
        let pass = self.under_way.swap_remove(which);
        let now = self.now();
        self.breaker
            .ended(now, &self.target, pass, gave, &mut self.changes);
    }

    fn take(&mut self, fact: &Fact) {
        match *fact {
            Fact::Asked { caller, retry } => {
                self.ask(caller, retry);
            }
            Fact::Ended(which, how) => {
                if !self.under_way.is_empty() {
                    let gave = [Gave::Works, Gave::Fails, Gave::Nothing][usize::from(how)];
                    self.end(which % self.under_way.len(), gave);
                }
            }
            Fact::Waits(waits) => self.breaker.waited_for(&self.target, waits),
            Fact::Passed(ms) => self.at += ms,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn probes_and_calls_stay_within_their_limits_and_changes_take_turns(
        seed: u64, facts in prop::collection::vec(any_fact(), 0..300),
    ) {
        let mut world = World::new(seed);
        for fact in &facts {
            world.take(fact);
        }
        for (n, change) in world.changes.iter().enumerate() {
            prop_assert_eq!(matches!(change, Change::Down(_)), n % 2 == 0);
        }
    }

    #[test]
    fn whatever_came_before_it_holds_nobody_for_long_once_calls_succeed(
        seed: u64, facts in prop::collection::vec(any_fact(), 0..300),
    ) {
        let mut world = World::new(seed);
        for fact in &facts {
            world.take(fact);
        }
        while !world.under_way.is_empty() {
            world.end(0, Gave::Works);
        }
        // The longest pause, then one probe, then a moment.
        world.at += 10_000;
        prop_assert!(world.ask(1, false));
        world.end(0, Gave::Works);
        world.at += 100;
        prop_assert!(!world.breaker.is_down(&world.target));
        prop_assert!(world.ask(1, false));
    }

    #[test]
    fn the_same_facts_give_the_same_breaker(
        seed: u64, facts in prop::collection::vec(any_fact(), 0..100),
    ) {
        let run = || {
            let mut world = World::new(seed);
            for fact in &facts {
                world.take(fact);
            }
            world.breaker
        };
        prop_assert_eq!(run(), run());
    }
}

/// Drains so many that waited during an outage, calls taking 50 ms each: how long it took since
/// the target came back.
fn drained_after(seed: u64, waiting: u32, outage: u64) -> u64 {
    let mut world = World::new(seed);
    let mut waits: BTreeSet<u64> = (0..u64::from(waiting)).collect();
    let mut open: Vec<(u64, u64)> = vec![];
    let back = outage;
    world.breaker.waited_for(&world.target.clone(), true);
    while !waits.is_empty() || !open.is_empty() {
        let room = world.breaker.rooms(Mono(world.at));
        let room = room.values().next().copied().unwrap_or(0);
        for _ in 0..room {
            let Some(caller) = waits.pop_first() else {
                break;
            };
            assert!(world.ask(caller, false), "there was room");
            open.push((world.at + 50, caller));
        }
        world.at += 10;
        while let Some((ends, caller)) = open.first().copied()
            && ends <= world.at
        {
            open.remove(0);
            let which = world.under_way.iter().position(|p| p.caller == caller);
            if ends >= back {
                world.end(which.unwrap(), Gave::Works);
            } else {
                world.end(which.unwrap(), Gave::Fails);
                waits.insert(caller);
            }
        }
        assert!(world.at < back + 3_600_000, "it does not end");
    }
    world.at - back
}

#[test]
fn the_drain_takes_the_works_time_and_not_the_backoffs() {
    for seed in 0..20 {
        // 48 places, 50 ms a call: at most 960 a second.
        let short = drained_after(seed, 5_000, 10_000);
        let long = drained_after(seed, 5_000, 3_600_000);
        for took in [short, long] {
            // The longest pause, five seconds of ramp, then 5.2 s of work.
            assert!((5_200..=21_000).contains(&took), "{took} ms");
        }
        let none = drained_after(seed, 5_000, 0);
        assert!(long <= none + 11_000, "{long} and {none} ms");
    }
}
