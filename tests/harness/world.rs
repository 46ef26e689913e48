//! One universe: nodes, true time, the agenda, and the two phases. Chaos first, while whatever
//! the seed enabled goes wrong; then everything heals and the ring must become whole.
//!
//! It drives the machines as the shell does: read both clocks, hand in one fact, perform the
//! orders in order, sleep until the next deadline and at most a second.

use std::time::Duration;

use ring_core::{
    time::{Wall, millis_i64},
    window::WindowNo,
    wire::Role,
};

use crate::{
    actor::Fact,
    clock::Instant,
    counters::{Counters, Sometimes},
    event::{Agenda, Event},
    invariants::Violation,
    mutants::Mutant,
    network::{Index, Network},
    node::Node,
    params::Params,
    redis::Redis,
    requests::Requests,
    rng::Rng,
    trace::Trace,
    watch::Watch,
};

/// How one run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its universe.
    pub params: Params,
    /// The first violation, and seconds since the start.
    pub violation: Option<(Violation, f64)>,
    /// What happened at least once.
    pub counters: Counters,
    /// Equal digests: equal runs.
    pub digest: u64,
    /// Its lines, when they were asked for.
    pub lines: Option<String>,
    /// Facts handed to machines.
    pub facts: u64,
    /// True time that passed.
    pub simulated: Duration,
}

/// The whole universe.
#[derive(Debug)]
pub struct World {
    pub(crate) params: Params,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) now: Instant,
    pub(crate) rng: Rng,
    pub(crate) chaos: Rng,
    pub(crate) agenda: Agenda,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    pub(crate) requests: Requests,
    pub(crate) redis: Redis,
    pub(crate) redis_down_until: Instant,
    pub(crate) redis_slow_until: Instant,
    pub(crate) redis_mute_until: Instant,
    pub(crate) healed: bool,
    pub(crate) watch: Watch,
    pub(crate) trace: Trace,
    pub(crate) facts: u64,
}

/// Runs the universe of these parameters to its end or to the first violation.
#[must_use]
pub fn run(params: Params, mutant: Option<Mutant>, lines: bool) -> Report {
    World::new(params, mutant, lines).run()
}

impl World {
    fn new(params: Params, mutant: Option<Mutant>, lines: bool) -> Self {
        let mut rng = Rng::new(params.seed).fork(2);
        let len = millis_i64(params.timing.len);
        // Any phase of a window, some day.
        let start = Instant(1_796_040_000_000_000 + rng.within(0, len * 1_000 - 1));
        let first = params.timing.window_at(start.wall());
        let whole_from = WindowNo(first.0 + params.chaos + params.recovery());
        let mut world = Self {
            mutant,
            now: start,
            chaos: Rng::new(params.seed).fork(3),
            agenda: Agenda::default(),
            nodes: Vec::new(),
            network: Network::new(Rng::new(params.seed).fork(4)),
            requests: Requests::default(),
            redis: Redis::default(),
            redis_down_until: start,
            redis_slow_until: start,
            redis_mute_until: start,
            healed: false,
            watch: Watch::new(params.timing, whole_from),
            trace: Trace::new(start, lines),
            facts: 0,
            rng,
            params,
        };
        world.redis.overwrites = mutant == Some(Mutant::RegistryOverwrites);
        world.redis.one_term = mutant == Some(Mutant::TermReused);
        world.redis.immortal = mutant == Some(Mutant::LeaseImmortal);
        world.populate();
        world.schedule_phases(first);
        world
    }

    fn schedule_phases(&mut self, first: WindowNo) {
        let timing = self.params.timing;
        let begins = |n: u64| Instant(timing.starts(WindowNo(n)).0 * 1_000);
        let last = self.watch.whole_from.0 + 3;
        let early = timing.guard + 2 * timing.tolerance + Duration::from_millis(50);
        for n in first.0 + 1..=last {
            self.agenda
                .at(begins(n).plus_ms(-millis_i64(early)), Event::Plan);
        }
        // Somewhere in the last chaotic window; recovery is counted from it.
        let heal = self.rng.within(0, millis_i64(timing.len) - 1);
        self.agenda.at(
            begins(first.0 + self.params.chaos).plus_ms(heal),
            Event::Heal,
        );
        self.agenda.at(begins(last), Event::End);
        self.begin_chaos();
    }

    fn run(mut self) -> Report {
        let start = self.now;
        while let Some((at, event)) = self.agenda.take() {
            self.now = at;
            self.watch.now = at.wall();
            if matches!(event, Event::End) {
                self.watch.counters.saw(Sometimes::Healed);
                break;
            }
            self.step(event);
            if self.watch.violation.is_some() {
                break;
            }
        }
        let us = self.now.0.abs_diff(start.0);
        let simulated = Duration::from_micros(us);
        let violation = self
            .watch
            .violation
            .take()
            .map(|v| (v, simulated.as_secs_f64()));
        if let Some((violation, _)) = &violation {
            self.trace
                .line(self.now, "VIOLATION", &violation.to_string());
        }
        let (digest, lines) = self.trace.finish();
        Report {
            params: self.params,
            violation,
            counters: self.watch.counters,
            digest,
            lines,
            facts: self.facts,
            simulated,
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Reach { node, start, fact } => self.reach(node, start, *fact),
            Event::Wake { node, wake } => {
                if self.nodes[node].wake == wake && self.nodes[node].runs() {
                    self.feed(node, Fact::Woke);
                }
            }
            Event::Answer {
                node,
                start,
                ask,
                answer,
            } => {
                self.answer_arrives(node, start, ask, *answer);
            }
            Event::Redis {
                node,
                start,
                client,
                op,
            } => {
                self.redis_performs(node, start, &client, op);
            }
            Event::Poll { node, start } => self.poll(node, start),
            Event::Plan => self.plan(),
            Event::Sample { inside } => self.sample(inside),
            Event::Fault => self.next_fault(),
            Event::Resume { node, start } => self.resume(node, start),
            Event::Relink { node, start } => self.relink(node, start),
            Event::Restart { node } => {
                if self.nodes[node].actor.is_none() {
                    self.start(node);
                }
            }
            Event::BusUp => self.bus_up(),
            Event::Heal => self.heal(),
            Event::End => {}
        }
    }

    /// The reading of a clock without error.
    pub(crate) fn wall(&self) -> Wall {
        self.now.wall()
    }

    /// Nodes of a role.
    pub(crate) fn of(&self, role: Role) -> Vec<Index> {
        (0..self.nodes.len())
            .filter(|i| self.nodes[*i].who.role == role)
            .collect()
    }
}
