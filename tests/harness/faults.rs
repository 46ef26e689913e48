//! What goes wrong, when, for how long, and how everything heals.

use ring_core::{
    id::{Cluster, NodeId, Region, Scope, Service},
    time::{Wall, millis_i64},
    wire::Role,
};

use crate::{
    actor::{Fact, Identity},
    clock::{Clock, Instant},
    event::Event,
    network::{Cut, Index},
    node::{Link, Node},
    params::Fault,
    world::World,
};

/// Twins a run; more only slow it down.
const TWINS: usize = 3;
/// After this long a client's own pings find a dead connection (two of 5 s and a limit, [LAB N2]).
const PINGS_NOTICE_MS: i64 = 14_000;

impl World {
    /// Makes everybody and lets them start, most at once, some windows later.
    pub(crate) fn populate(&mut self) {
        for n in 0..self.params.masters {
            self.add(Role::Master, "m", n, 0);
        }
        for n in 0..self.params.slaves {
            self.add(Role::Slave, "s", n, 0);
        }
        for (n, service) in (0..).zip(self.params.orchestrators.clone()) {
            self.add(Role::Orchestrator, "o", n, service);
        }
        let len = millis_i64(self.params.timing.len);
        for node in 0..self.nodes.len() {
            let most = if self.rng.happens(200_000) {
                3 * len
            } else {
                2_000
            };
            let at = self.now.plus_ms(self.rng.within(0, most));
            self.agenda.at(at, Event::Restart { node });
        }
    }

    fn add(&mut self, role: Role, letter: &str, n: u64, service: u64) {
        let scope = Scope {
            region: Region::new("eu-1").expect("a constant name"),
            cluster: Cluster::new("c1").expect("a constant name"),
        };
        let id = NodeId::new(format!("{letter}-{n}")).expect("a name from a number");
        let service = Service::new(format!("svc-{service}")).expect("a name from a number");
        let who = Identity {
            role,
            scope,
            id: id.clone(),
            service,
        };
        let clock = self.some_clock();
        self.nodes.push(Node::new(who, id.to_string(), clock));
    }

    fn some_clock(&mut self) -> Clock {
        let offset_us = self.rng.within(-self.params.skew_us, self.params.skew_us);
        Clock {
            offset_us,
            drift_ppm: self.rng.within(-50, 50),
            since: self.now,
        }
    }

    /// The noise of the whole chaotic phase, and the first fault.
    pub(crate) fn begin_chaos(&mut self) {
        let noise = self.params.noise_ppm;
        let of = |fault| if self.params.has(fault) { noise } else { 0 };
        self.network.loss_ppm = of(Fault::Loss);
        self.network.twice_ppm = of(Fault::Duplication);
        self.network.late_ppm = of(Fault::Delay);
        self.schedule_fault();
    }

    fn schedule_fault(&mut self) {
        let most = i64::try_from(2 * self.params.pause_ms).unwrap_or(0);
        let at = self.now.plus_ms(self.chaos.within(1, most));
        self.agenda.at(at, Event::Fault);
    }

    /// The next fault of those that the seed enabled.
    pub(crate) fn next_fault(&mut self) {
        if self.healed {
            return;
        }
        self.schedule_fault();
        let Some(fault) = self.chaos.pick(&self.params.faults).copied() else {
            return;
        };
        let most = 3 * self.params.timing.len.as_millis();
        let lasts = self.chaos.log_within(50, u64::try_from(most).unwrap_or(50));
        let until = self.now.plus_ms(i64::try_from(lasts).unwrap_or(0));
        let node = self.chaos.index(self.nodes.len());
        if self.trace.has_lines() {
            let label = self.nodes[node].label.clone();
            self.trace.line(
                self.now,
                "FAULT",
                &format!("{fault:?} {label} for {lasts} ms"),
            );
        }
        self.strike(fault, node, until);
    }

    fn strike(&mut self, fault: Fault, i: Index, until: Instant) {
        match fault {
            Fault::Loss | Fault::Duplication | Fault::Delay => {}
            Fault::Cut => {
                let how = if self.chaos.happens(500_000) {
                    Cut::Known
                } else {
                    Cut::Silent
                };
                let other = self.other(i);
                self.network.cut(i, other, how, until);
                self.network.cut(other, i, how, until);
            }
            Fault::OneWay => {
                let other = self.other(i);
                self.network.cut(i, other, Cut::Silent, until);
            }
            Fault::Disconnection => self.disconnect(i, until),
            Fault::HalfOpen => self.half_open(i, until),
            Fault::BusDown => self.bus_down(until),
            Fault::Crash => self.crash(i, until),
            Fault::Pause => self.pause(i, until),
            Fault::Suspend => {
                self.half_open(i, until);
                self.pause(i, until);
            }
            Fault::Twin => self.twin(i),
            Fault::Drain => {
                if self.nodes[i].runs() {
                    self.feed(i, Fact::Drained);
                }
                self.agenda.at(until, Event::Restart { node: i });
            }
            Fault::SmallStep => self.step_clock(i, None),
            Fault::BigStep => {
                let by = i64::try_from(self.chaos.log_within(1_000, 7_200_000)).unwrap_or(0);
                let by = if self.chaos.happens(500_000) { by } else { -by };
                self.step_clock(i, Some(by));
            }
            Fault::SickStore => self.nodes[i].sick_until = until,
            Fault::RedisSlow => self.redis_slow_until = until,
            Fault::RedisDown => {
                self.redis_breaks(until);
                self.redis_down_until = until;
            }
            Fault::RedisPartition => {
                self.redis_breaks(until);
                let masters = self.of(Role::Master);
                if let Some(i) = self.chaos.pick(&masters) {
                    self.nodes[*i].redis_cut_until = until;
                }
            }
            Fault::RedisAmbiguous => {
                self.redis_breaks(until);
                self.redis_mute_until = until;
            }
            Fault::RedisFlush => {
                self.redis_breaks(self.now);
                self.redis.flush();
            }
            Fault::RedisForgets => {
                self.redis_breaks(self.now);
                self.redis.forget();
            }
        }
    }

    /// Redis breaks its promise: overlaps are counted until what was cut meanwhile is over.
    fn redis_breaks(&mut self, until: Instant) {
        self.watch.soften(self.wall(), until.wall());
    }

    fn other(&mut self, i: Index) -> Index {
        let step = 1 + self.chaos.index(self.nodes.len() - 1);
        (i + step) % self.nodes.len()
    }

    fn half_open(&mut self, i: Index, until: Instant) {
        if self.nodes[i].actor.is_some() && self.nodes[i].link == Link::Up {
            self.nodes[i].link = Link::HalfOpen;
            let noticed = until.min(self.now.plus_ms(PINGS_NOTICE_MS));
            let start = self.nodes[i].start;
            self.agenda.at(noticed, Event::Relink { node: i, start });
        }
    }

    fn bus_down(&mut self, until: Instant) {
        self.network.down = true;
        self.agenda.at(until, Event::BusUp);
        for i in 0..self.nodes.len() {
            if self.nodes[i].actor.is_some() {
                let back = until.plus_ms(self.chaos.within(0, 1_000));
                self.disconnect(i, back);
            }
        }
    }

    /// The bus works again; each connection comes back at its own time.
    pub(crate) fn bus_up(&mut self) {
        self.network.down = false;
        for i in 0..self.nodes.len() {
            if self.nodes[i].link != Link::Up {
                let (at, start) = (
                    self.now.plus_ms(self.rng.within(0, 1_000)),
                    self.nodes[i].start,
                );
                self.agenda.at(at, Event::Relink { node: i, start });
            }
        }
    }

    fn crash(&mut self, i: Index, until: Instant) {
        if self.nodes[i].actor.is_none() {
            return;
        }
        if self.chaos.happens(500_000) {
            let orders = self.chaos.index(6);
            self.nodes[i].dies_after = Some(orders);
        } else {
            self.die(i);
        }
        if self.chaos.happens(600_000) {
            self.agenda.at(until, Event::Restart { node: i });
        }
    }

    fn pause(&mut self, i: Index, until: Instant) {
        if self.nodes[i].runs() {
            self.nodes[i].paused_until = Some(until);
            let start = self.nodes[i].start;
            self.agenda.at(until, Event::Resume { node: i, start });
        }
    }

    /// A paused process goes on: what waited for it comes at once, then the time that passed.
    pub(crate) fn resume(&mut self, i: Index, start: u32) {
        let node = &mut self.nodes[i];
        if node.start != start || node.paused_until.is_none_or(|until| self.now < until) {
            return;
        }
        node.paused_until = None;
        let mut waiting = std::mem::take(&mut node.backlog);
        // Whether the timer or the first message is seen first is chance.
        if self.rng.happens(500_000) {
            waiting.push_front(Fact::Woke);
        } else {
            waiting.push_back(Fact::Woke);
        }
        for fact in waiting {
            self.feed(i, fact);
        }
    }

    fn twin(&mut self, i: Index) {
        let expected = self.params.masters + self.params.slaves;
        let own = usize::try_from(expected).unwrap_or(0) + self.params.orchestrators.len();
        if self.nodes[i].actor.is_none() || self.nodes.len() >= own + TWINS {
            return;
        }
        let who = self.nodes[i].who.clone();
        let label = format!("{}'{}", who.id, self.nodes.len());
        let clock = self.some_clock();
        self.nodes.push(Node::new(who, label, clock));
        self.start(self.nodes.len() - 1);
    }

    /// Steps a wall clock: by that much, or to anywhere within the tolerance.
    fn step_clock(&mut self, i: Index, by: Option<i64>) {
        if let Some(by) = by {
            self.nodes[i].clock.step_ms(by);
            // A clock far off may have been acted upon until everything has healed.
            self.watch.soften(self.wall(), Wall(i64::MAX / 2));
        } else {
            self.set_clock(i);
        }
        if self.nodes[i].runs() {
            self.feed(i, Fact::Woke);
        }
    }

    fn set_clock(&mut self, i: Index) {
        let goal = self.rng.within(-self.params.skew_us, self.params.skew_us);
        let clock = &mut self.nodes[i].clock;
        clock.offset_us += goal - clock.ahead_us(self.now);
    }

    /// All faults end; most of the dead come back, at least one of each kind.
    pub(crate) fn heal(&mut self) {
        self.healed = true;
        let now = self.now;
        self.trace.line(now, "HEAL", "");
        self.network.heal();
        (
            self.redis_down_until,
            self.redis_slow_until,
            self.redis_mute_until,
        ) = (now, now, now);
        for i in 0..self.nodes.len() {
            let far = self.nodes[i].clock.ahead_us(now).abs() > 2 * self.params.skew_us;
            if far {
                self.set_clock(i);
            }
            let node = &mut self.nodes[i];
            (node.sick_until, node.redis_cut_until, node.ghost_until) = (now, now, now);
            node.dies_after = None;
            let start = node.start;
            if node.paused_until.is_some() {
                node.paused_until = Some(now);
                self.agenda.at(now, Event::Resume { node: i, start });
            }
            self.agenda.at(now, Event::Relink { node: i, start });
            if self.nodes[i].actor.is_none() && (self.rng.happens(500_000) || self.last(i)) {
                self.start(i);
            }
        }
    }

    /// Whether nobody else can do this node's work.
    fn last(&self, i: Index) -> bool {
        let me = &self.nodes[i].who;
        let same = |node: &Node| {
            node.actor.is_some()
                && node.who.role == me.role
                && (me.role != Role::Orchestrator || node.who.service == me.service)
        };
        !self.nodes.iter().any(same)
    }
}
