//! When claims are compared: at the edges of every window on the clocks that reach them first and
//! last, in the middle, and whenever an orchestrator heard something.

use std::collections::BTreeSet;

use ring_core::{id::Service, subject::Endpoints, time::Wall, token::Range, wire::Role};

use crate::{
    clock::Instant,
    counters::Sometimes,
    event::Event,
    invariants::{covered, disjoint, one_leader, time_box},
    network::Index,
    world::World,
};

impl World {
    /// Looks the edges of the next window up and schedules samples there.
    pub(crate) fn plan(&mut self) {
        let timing = self.params.timing;
        let n = timing.window_at(self.wall()).next();
        let (starts, ends) = (timing.starts(n), timing.ends(n));
        let (first, last) = (starts.plus(timing.guard), ends.minus(timing.guard));
        for service in self.services() {
            let nodes = self.claimers(&service);
            let all = &self.nodes;
            let when = |wall: Wall| nodes.iter().map(move |i| all[*i].clock.when(wall));
            let before = |at: Instant| Instant(at.0 - 1_000);
            let edges = [
                when(starts).min(),
                when(first).min(),
                when(last).max().map(before),
                when(ends).max().map(before),
            ];
            let near = |at: &Instant| self.now <= *at && at.wall() <= ends.plus(timing.len);
            for at in edges.into_iter().flatten().filter(near) {
                self.agenda.at(at, Event::Sample { inside: false });
            }
        }
        let middle = Wall(i64::midpoint(starts.0, ends.0));
        let inner = [
            first.plus(timing.tolerance).0 + 1,
            middle.0,
            last.minus(timing.tolerance).0 - 1,
        ];
        for ms in inner {
            self.agenda
                .at(Instant(ms * 1_000), Event::Sample { inside: true });
        }
    }

    /// Compares all claims now.
    pub(crate) fn sample(&mut self, inside: bool) {
        for service in self.services() {
            self.compare(&service);
            if inside {
                self.cover(&service);
            }
        }
        if inside {
            self.lead();
        }
    }

    /// Compares what the orchestrators of a service may claim at this instant.
    pub(crate) fn compare(&mut self, service: &Service) {
        let timing = self.params.timing;
        let window = timing.window_at(self.wall());
        let mut claims: Vec<(Index, Range)> = Vec::new();
        for i in self.claimers(service) {
            let wall = self.nodes[i].clock.read(self.now).wall;
            let mine = self.claims(i, wall);
            if mine.is_empty() {
                continue;
            }
            self.watch.counters.saw(Sometimes::Claimed);
            let checked = time_box::check(&timing, wall, &mine);
            self.watch.must(checked);
            let acted = timing.window_at(wall);
            let checked = self.watch.monotonic.acted(self.nodes[i].boot, acted);
            self.watch.must(checked);
            claims.extend(mine.into_iter().map(|range| (i, range)));
        }
        let checked = disjoint::check(&claims);
        self.watch.should(window, checked);
    }

    fn cover(&mut self, service: &Service) {
        let window = self.params.timing.window_at(self.wall());
        let nodes = self.claimers(service);
        // With the document's equal split a slave without orchestrators keeps its slice dark.
        if window < self.watch.whole_from || nodes.is_empty() || self.params.equal {
            return;
        }
        let read = |i: &Index| self.nodes[*i].clock.read(self.now).wall;
        let claims: Vec<Range> = nodes
            .iter()
            .flat_map(|i| self.claims(*i, read(i)))
            .collect();
        // From then on no seat is frozen any more: nobody has died since the healing.
        let checked = covered::check(service.as_str(), window, &claims, &[]);
        self.watch.must(checked);
    }

    fn lead(&mut self) {
        if self.params.timing.window_at(self.wall()) < self.watch.whole_from {
            return;
        }
        let leads = |i: &Index| {
            self.nodes[*i].actor.is_some() && self.nodes[*i].serves.contains_key(&Endpoints::Master)
        };
        let leaders: Vec<&str> = self
            .of(Role::Master)
            .into_iter()
            .filter(leads)
            .map(|i| self.nodes[i].label.as_str())
            .collect();
        let checked = one_leader::check(&leaders);
        self.watch.must(checked);
    }

    fn claims(&self, i: Index, wall: Wall) -> Vec<Range> {
        self.nodes[i]
            .actor
            .as_ref()
            .map(|actor| actor.claimable(wall))
            .unwrap_or_default()
    }

    fn claimers(&self, service: &Service) -> Vec<Index> {
        let claims = |i: &Index| {
            let node = &self.nodes[*i];
            node.claims() && node.runs() && node.who.service == *service
        };
        (0..self.nodes.len()).filter(claims).collect()
    }

    fn services(&self) -> BTreeSet<Service> {
        let orchestrators = self.nodes.iter().filter(|node| node.claims());
        orchestrators.map(|node| node.who.service.clone()).collect()
    }
}
