//! Many processes and one database, generated: nobody starts a call under a lease that the
//! database has ended, and a database that was away kills nobody.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::chance::mixed;

const LEASE: Duration = Duration::from_secs(6);
const STEP_MS: u64 = 20;
/// A request without an answer fails after this.
const LIMIT_MS: u64 = 1_000;

/// A message on its way: when it arrives, at or from whom.
#[derive(Clone, Debug)]
struct Letter {
    at: u64,
    process: usize,
    sent_at: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Request(Order),
    Answer(Input),
}

#[derive(Clone, Copy, Debug)]
struct Row {
    until: u64,
    dead: bool,
}

struct World {
    owners: Vec<Owner>,
    rows: Vec<Row>,
    letters: Vec<Letter>,
    now: u64,
    seed: u64,
    draws: u64,
    loss: u64,
    slow: u64,
    /// The database is away within these.
    outages: Vec<(u64, u64)>,
    opened: u32,
}

impl World {
    fn new(
        processes: usize,
        seed: u64,
        (loss, slow): (u64, u64),
        outages: Vec<(u64, u64)>,
    ) -> Self {
        let owner = |n| Owner::new(LEASE, mixed(seed, n));
        Self {
            owners: (0..).map(owner).take(processes).collect(),
            rows: vec![],
            letters: vec![],
            now: 0,
            seed,
            draws: 0,
            loss,
            slow,
            outages,
            opened: 0,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.draws += 1;
        mixed(self.seed, self.draws) % below.max(1)
    }

    fn run(&mut self, until: u64) {
        while self.now < until {
            self.now += STEP_MS;
            let now = self.now;
            let (due, rest) = core::mem::take(&mut self.letters)
                .into_iter()
                .partition(|l| l.at <= now);
            self.letters = rest;
            let due: Vec<Letter> = due;
            for letter in due {
                match letter.content.clone() {
                    Content::Request(order) => self.asked(&letter, &order),
                    Content::Answer(input) => self.handle(letter.process, input),
                }
            }
            for process in 0..self.owners.len() {
                let wake = self.owners[process].wake_at().mono;
                if wake.is_some_and(|(at, _)| at.0 <= now) {
                    self.handle(process, Input::Woke);
                    let next = self.owners[process].wake_at().mono;
                    assert!(next.is_some_and(|(at, _)| at.0 > now), "it spins");
                }
            }
            self.check();
        }
    }

    fn check(&self) {
        for owner in &self.owners {
            if owner.start_until() >= Some(Mono(self.now)) {
                let of = owner.incarnation().unwrap();
                let row = self.rows[usize::try_from(of.0).unwrap()];
                assert!(
                    !row.dead && row.until >= self.now,
                    "a call under an ended lease"
                );
            }
        }
    }

    fn handle(&mut self, process: usize, input: Input) {
        let now = Now {
            wall: Wall(0),
            mono: Mono(self.now),
        };
        let mut orders = Vec::new();
        self.owners[process].handle(now, input, &mut orders);
        for order in orders {
            if matches!(order, Order::DropCalls | Order::Forget(_)) {
                continue;
            }
            let lost = self.draw(100) < self.loss;
            let at = self.now + self.draw(self.slow);
            let (sent_at, content) = (self.now, Content::Request(order));
            self.letters.push(Letter {
                at: if lost { u64::MAX } else { at },
                process,
                sent_at,
                content,
            });
            if lost {
                self.fails(process, sent_at);
            }
        }
    }

    fn fails(&mut self, process: usize, sent_at: u64) {
        self.letters.push(Letter {
            at: sent_at + LIMIT_MS,
            process,
            sent_at,
            content: Content::Answer(Input::Unreachable),
        });
    }

    fn asked(&mut self, letter: &Letter, order: &Order) {
        let now = self.now;
        let away = self
            .outages
            .iter()
            .any(|(from, to)| (*from..*to).contains(&now));
        if away || self.draw(100) < self.loss {
            return self.fails(letter.process, letter.sent_at);
        }
        let Some(input) = self.answer(letter.sent_at, order) else {
            return;
        };
        let at = now + self.draw(self.slow);
        self.letters.push(Letter {
            at,
            content: Content::Answer(input),
            ..letter.clone()
        });
    }

    fn answer(&mut self, sent_at: u64, order: &Order) -> Option<Input> {
        let (now, sent_at) = (self.now, Mono(sent_at));
        let clock = Wall(i64::try_from(now).unwrap());
        let until = Mono(now).plus(LEASE).0;
        match order {
            Order::Open => {
                self.opened += 1;
                self.rows.push(Row { until, dead: false });
                let newest = i64::try_from(self.rows.len() - 1).unwrap();
                Some(Input::Opened {
                    sent_at,
                    incarnation: Incarnation(newest),
                    clock,
                })
            }
            Order::Renew(of) => {
                let row = &mut self.rows[usize::try_from(of.0).unwrap()];
                let answer = if row.dead {
                    Renewed::Dead
                } else {
                    row.until = until;
                    let running = vec![];
                    let woken = vec![];
                    Renewed::Held {
                        clock,
                        running,
                        woken,
                    }
                };
                Some(Input::Renewed {
                    sent_at,
                    incarnation: *of,
                    answer,
                    known: vec![],
                })
            }
            Order::DeclareDead(of) => {
                let own = self.rows[usize::try_from(of.0).unwrap()];
                if !own.dead && own.until > now {
                    for row in &mut self.rows {
                        row.dead |= row.until < now;
                    }
                }
                None
            }
            Order::DropCalls
            | Order::Forget(_)
            | Order::HandBack(..)
            | Order::Close(_)
            | Order::Stop => None,
        }
    }
}

fn outages() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let one = (0..60_000_u64, 0..40_000_u64).prop_map(|(from, long)| (from, from + long));
    prop::collection::vec(one, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nobody_starts_a_call_under_a_lease_that_has_ended(
        seed: u64, loss in 0..60_u64, slow in 1..4_000_u64, outages in outages(),
    ) {
        World::new(4, seed, (loss, slow), outages).run(120_000);
    }

    #[test]
    fn a_database_that_was_away_kills_nobody(seed: u64, outages in outages()) {
        let mut world = World::new(4, seed, (0, 150), outages);
        world.run(120_000);
        prop_assert_eq!(world.opened, 4);
        prop_assert!(world.rows.iter().all(|row| !row.dead));
        prop_assert!(world.owners.iter().all(|o| o.start_until() >= Some(Mono(world.now))));
    }

    #[test]
    fn who_is_gone_is_declared_dead_within_a_lease_and_four_seconds(
        seed: u64, at in 10_000..60_000_u64,
    ) {
        let mut world = World::new(4, seed, (0, 150), vec![]);
        world.run(at);
        let gone = world.owners.pop().and_then(|o| o.incarnation()).unwrap();
        world.letters.retain(|l| l.process < 3);
        let died = world.now;
        world.run(died + 10_000);
        let row = world.rows[usize::try_from(gone.0).unwrap()];
        prop_assert!(row.dead);
        prop_assert_eq!(world.rows.iter().filter(|r| r.dead).count(), 1);
    }
}
