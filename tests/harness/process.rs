//! How a process lives: it starts, hears facts, has its orders performed, sleeps until its next
//! deadline and at most a second, polls its store, and dies.

use ring_core::{machine::End, time::Now, wire::Health};

use crate::{
    actor::{Actor, Fact, Order},
    clock::Instant,
    counters::Sometimes,
    event::Event,
    invariants::bounded,
    network::Index,
    node::Link,
    world::World,
};

impl World {
    /// Starts a process anew.
    pub(crate) fn start(&mut self, i: Index) {
        let timing = self.params.timing;
        let node = &mut self.nodes[i];
        node.boot(self.now, &mut self.rng);
        let timing = self
            .mutant
            .map_or(timing, |m| m.timing(node.who.role, timing));
        let seed = self.rng.draw();
        node.actor = Some(Actor::start(
            &node.who,
            node.boot,
            timing,
            self.params.equal,
            seed,
        ));
        let start = node.start;
        if self.network.down {
            node.link = Link::Down;
        }
        if node.claims() {
            let first = Instant(self.now.0 + self.rng.within(0, 500_000));
            self.agenda.at(first, Event::Poll { node: i, start });
        }
        self.feed(i, Fact::Started);
    }

    /// A fact arrives at a process: now, later, or never.
    pub(crate) fn reach(&mut self, i: Index, start: u32, fact: Fact) {
        let node = &mut self.nodes[i];
        if node.start != start || node.actor.is_none() {
            return;
        }
        let broken = node.link != Link::Up;
        let news = matches!(&fact, Fact::Bus(told) if crate::bus::is_message(told));
        if news && broken {
            return;
        }
        if node.paused_until.is_some() {
            node.wait(fact);
        } else {
            self.feed(i, fact);
        }
    }

    /// Hands a fact to a running machine and performs its orders.
    pub(crate) fn feed(&mut self, i: Index, fact: Fact) {
        let now = self.now;
        let node = &mut self.nodes[i];
        let Some(actor) = &mut node.actor else { return };
        self.facts += 1;
        if matches!(fact, Fact::Woke | Fact::Started) {
            node.woken = now;
        }
        let (woke, kind) = (matches!(fact, Fact::Woke), kind(&fact));
        self.trace.digest(now, i, kind);
        if self.trace.has_lines() {
            self.trace.line(now, &node.label, &format!("< {fact:?}"));
        }
        let mut fact = fact;
        if let (Some(mutant), Fact::Bus(told)) = (self.mutant, &mut fact) {
            crate::bus::mutate(mutant, node.who.role, node.boot, told);
        }
        let reads: Now = node.clock.read(now);
        let mut orders = Vec::new();
        let second = now.0.div_euclid(1_000_000);
        if node.fed.0 != second {
            node.fed = (second, bounded::Fed::default());
        }
        node.fed.1.note(&fact);
        actor.handle(reads, fact, &mut orders);
        let checked = bounded::check(orders.len(), node.asks.len(), node.fed.1);
        self.watch.must(checked);
        self.perform(i, orders);
        self.sleep(i);
        if self.nodes[i].claims() && !woke {
            self.compare(&self.nodes[i].who.service.clone());
        }
    }

    fn perform(&mut self, i: Index, orders: Vec<Order>) {
        for order in orders {
            if let Some(left) = &mut self.nodes[i].dies_after {
                if *left == 0 {
                    self.watch.counters.saw(Sometimes::DiedBetweenOrders);
                    self.die(i);
                    return;
                }
                *left -= 1;
            }
            if self.trace.has_lines() {
                let label = self.nodes[i].label.clone();
                self.trace.line(self.now, &label, &format!("> {order:?}"));
            }
            match order {
                Order::Bus(op) => self.perform_bus(i, op),
                Order::Registry(op) => self.ask_redis(i, op),
                Order::Stop(end) => {
                    self.watch.counters.saw(match end {
                        End::Drained => Sometimes::Drained,
                        End::Superseded => Sometimes::TwinEvicted,
                    });
                    self.nodes[i].die(self.now);
                    self.nodes[i].ended = Some(end);
                    if self.healed {
                        // Who was still leaving when all healed comes back like the others.
                        let back = self.now.plus_ms(200);
                        self.agenda.at(back, Event::Restart { node: i });
                    }
                    return;
                }
            }
        }
    }

    /// Schedules the machine's next deadline: at most a second off, a little late as timers are.
    fn sleep(&mut self, i: Index) {
        let node = &mut self.nodes[i];
        let Some(actor) = node.actor.as_ref().filter(|_| node.paused_until.is_none()) else {
            return;
        };
        let wake = actor.wake_at();
        let mut at = node.woken.plus_ms(1_000).max(self.now);
        if let Some((wall, _)) = wake.wall {
            at = at.min(node.clock.when(wall.min(node.clock.read(at).wall)));
        }
        if let Some((mono, _)) = wake.mono {
            at = at.min(node.clock.when_mono(mono));
        }
        let late = self.rng.within(1, 1_500);
        node.wake += 1;
        let wake = node.wake;
        self.agenda.at(
            Instant(at.max(self.now).0 + late),
            Event::Wake { node: i, wake },
        );
    }

    /// A process polls its store; its clock is compared with the database's, which is right.
    pub(crate) fn poll(&mut self, i: Index, start: u32) {
        let now = self.now;
        let node = &self.nodes[i];
        if node.start != start || node.actor.is_none() {
            return;
        }
        let next = Instant(now.0 + self.rng.within(700_000, 1_300_000));
        self.agenda.at(next, Event::Poll { node: i, start });
        if !self.nodes[i].runs() {
            return;
        }
        let sick = now < self.nodes[i].sick_until;
        let health = Health {
            polled_ms: Some(0),
            backlog: 0,
            oldest_due_ms: 0,
            sick,
        };
        self.feed(i, Fact::Measured(health));
        if !sick && self.nodes[i].runs() {
            let noise = self.rng.within(-2, 2);
            let offset = self.nodes[i].clock.ahead_us(now) / 1_000 + noise;
            self.feed(i, Fact::ClockMeasured(offset));
        }
    }

    /// Kills a process; the bus may take it for alive for a while.
    pub(crate) fn die(&mut self, i: Index) {
        let noticed = if self.rng.happens(700_000) {
            0
        } else {
            self.rng.within(0, 8_000)
        };
        self.nodes[i].die(self.now.plus_ms(noticed));
        let label = self.nodes[i].label.clone();
        self.trace.line(self.now, &label, "died");
    }
}

/// A number for each kind of fact, for the digest.
fn kind(fact: &Fact) -> u64 {
    match fact {
        Fact::Started => 1,
        Fact::Bus(told) => 10 + crate::bus::kind(told),
        Fact::Registry(_) => 2,
        Fact::Measured(_) => 3,
        Fact::ClockMeasured(offset) => 1_000 + offset.unsigned_abs(),
        Fact::Woke => 4,
        Fact::Drained => 5,
    }
}
