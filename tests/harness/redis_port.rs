//! Performs [`registry::Op`] on the simulated Redis: in order for each master, perhaps slowly,
//! perhaps with the answer lost, perhaps not at all.

use ring_core::registry;

use crate::{
    actor::Fact, clock::Instant, event::Event, mutants::Mutant, network::Index, redis::Client,
    world::World,
};

impl World {
    /// Sends an order of a node to Redis.
    pub(crate) fn ask_redis(&mut self, i: Index, op: registry::Op) {
        let us = if self.now < self.redis_slow_until {
            self.rng.within(100_000, 900_000)
        } else {
            self.rng.within(200, 2_000)
        };
        let node = &mut self.nodes[i];
        let at = Instant(self.now.0 + us).max(node.redis_free_at);
        node.redis_free_at = at;
        let (start, client) = (node.start, node.client());
        self.agenda.at(
            at,
            Event::Redis {
                node: i,
                start,
                client,
                op,
            },
        );
    }

    /// Redis receives an order, or its sender learns that it can't be reached.
    pub(crate) fn redis_performs(
        &mut self,
        i: Index,
        start: u32,
        client: &Client,
        op: registry::Op,
    ) {
        let endless = self.mutant == Some(Mutant::StoredWithoutEnd);
        let alive = self.nodes[i].start == start && self.nodes[i].actor.is_some();
        if endless && alive && matches!(op, registry::Op::StoreCuts { .. }) {
            self.ask_redis(i, op.clone());
        }
        let unreachable =
            self.now < self.redis_down_until || self.now < self.nodes[i].redis_cut_until;
        let mute = self.now < self.redis_mute_until && self.rng.happens(500_000);
        let limit_us = 500_000;
        let (told, us) = if unreachable {
            (
                registry::Told::Unreachable { op },
                self.rng.within(500, limit_us),
            )
        } else {
            let mut seen = Vec::new();
            let told = self
                .redis
                .perform(client, op.clone(), self.wall(), &mut seen);
            self.watch.stored(seen);
            if mute {
                (registry::Told::Unreachable { op }, limit_us)
            } else {
                (told, self.rng.within(100, 1_000))
            }
        };
        let at = Instant(self.now.0 + us).max(self.nodes[i].redis_told_at);
        self.nodes[i].redis_told_at = at;
        let fact = Box::new(Fact::Registry(told));
        self.agenda.at(
            at,
            Event::Reach {
                node: i,
                start,
                fact,
            },
        );
    }
}
