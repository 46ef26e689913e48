//! Performs [`ring_core::bus::Op`] on the simulated network: at most once, queue groups for endpoints,
//! questions that wait for a connection, and "nobody listens" apart from "nobody answered".

use ring_core::{
    bus::{AskError, AskId, Op, Told},
    id::{BootId, Nonce},
    subject::{Place, Topic},
    time::millis_i64,
    wire::{Answer, Publication, Question, Role},
};
use uuid::Uuid;

use crate::{
    actor::Fact,
    clock::Instant,
    counters::Sometimes,
    event::Event,
    mutants::Mutant,
    network::{Cut, Index},
    node::Link,
    requests::Asker,
    world::World,
};

/// Whether this fact is a message, which a broken connection loses.
pub(crate) fn is_message(told: &Told) -> bool {
    match told {
        Told::Published { .. } | Told::Event(_) | Told::Asked { .. } | Told::Overheard { .. } => {
            true
        }
        // Timeouts are the client's own doing; answers are looked at where they arrive.
        Told::Answered { .. } | Told::Connected | Told::Disconnected => false,
    }
}

/// A number for each kind of fact from the bus, for the digest.
pub(crate) fn kind(told: &Told) -> u64 {
    match told {
        Told::Published { .. } => 0,
        Told::Event(_) => 1,
        Told::Asked { to, .. } => 1_000 + to.0,
        Told::Overheard { .. } => 2,
        Told::Answered { ask, .. } => 100_000 + ask.0,
        Told::Connected => 3,
        Told::Disconnected => 4,
    }
}

/// Makes a planted defect heard.
pub(crate) fn mutate(mutant: Mutant, by: Role, boot: BootId, told: &mut Told) {
    match told {
        Told::Published { body, .. } => mutant.heard(by, boot, body),
        Told::Asked { question, .. } => mutant.question(question),
        Told::Event(_)
        | Told::Overheard { .. }
        | Told::Answered { .. }
        | Told::Connected
        | Told::Disconnected => {}
    }
}

impl World {
    /// Performs one order of a node.
    pub(crate) fn perform_bus(&mut self, i: Index, op: Op) {
        match op {
            Op::Publish { place, body } => self.publish(i, place, body),
            Op::Tell(event) => {
                self.watch.told(&event);
                if self.nodes[i].link == Link::Up {
                    self.spread(i, &Place::Event(event.fact.kind()), &Told::Event(event));
                }
            }
            Op::Ask {
                ask,
                place,
                question,
                within,
            } => {
                self.nodes[i].asks.insert(ask);
                let over = self.now.plus_ms(millis_i64(within).max(1));
                self.answer_later(i, self.nodes[i].start, over, ask, Err(AskError::TimedOut));
                self.watch.asked(&question);
                self.ask(i, ask, place, question);
            }
            Op::Answer { to, answer } => {
                let Some(asker) = self.requests.close(to) else {
                    return;
                };
                self.answer(i, asker, answer);
            }
            Op::Listen(topic) => {
                let known = Instant(self.now.0 + self.rng.within(0, 2_000));
                self.nodes[i].listens.entry(topic).or_insert(known);
            }
            Op::Ignore(topic) => {
                self.nodes[i].listens.remove(&topic);
            }
            Op::Serve(endpoints) => {
                let known = Instant(self.now.0 + self.rng.within(0, 2_000));
                self.nodes[i].serves.entry(endpoints).or_insert(known);
            }
            Op::Withdraw(endpoints) => {
                self.nodes[i].serves.remove(&endpoints);
            }
            Op::Reconnect => {
                self.watch.counters.saw(Sometimes::Reconnected);
                let back = self.rng.within(20, 500);
                self.disconnect(i, self.now.plus_ms(back));
            }
        }
    }

    /// Breaks a node's connection until then, and tells it.
    pub(crate) fn disconnect(&mut self, i: Index, until: Instant) {
        let start = self.nodes[i].start;
        self.agenda.at(until, Event::Relink { node: i, start });
        if self.nodes[i].link != Link::Down {
            self.nodes[i].link = Link::Down;
            self.reach_at(self.now, i, Fact::Bus(Told::Disconnected));
        }
    }

    /// A node's connection is up again, by now to a server that works: its questions go out.
    pub(crate) fn relink(&mut self, i: Index, start: u32) {
        let node = &mut self.nodes[i];
        if node.start != start || node.actor.is_none() || node.link == Link::Up {
            return;
        }
        if self.network.down {
            let later = self.now.plus_ms(self.rng.within(200, 1_000));
            self.agenda.at(later, Event::Relink { node: i, start });
            return;
        }
        let unnoticed = node.link == Link::HalfOpen;
        node.link = Link::Up;
        let kept: Vec<_> = node.outbox.drain(..).collect();
        for (ask, place, question) in kept {
            if self.nodes[i].asks.contains(&ask) {
                self.route(i, ask, place, question);
            }
        }
        if unnoticed {
            self.reach_at(self.now, i, Fact::Bus(Told::Disconnected));
        }
        self.reach_at(self.now, i, Fact::Bus(Told::Connected));
    }

    /// An answer, or the end of waiting for it, arrives: the first one counts.
    pub(crate) fn answer_arrives(
        &mut self,
        i: Index,
        start: u32,
        ask: AskId,
        answer: Result<Answer, AskError>,
    ) {
        let node = &mut self.nodes[i];
        let arrived = answer.is_ok();
        if node.start != start || node.actor.is_none() || (arrived && node.link != Link::Up) {
            return;
        }
        if !node.asks.remove(&ask) {
            if arrived {
                self.watch.counters.saw(Sometimes::DoneButTimedOut);
            }
            return;
        }
        match &answer {
            Ok(answer) => self.watch.got(answer),
            Err(AskError::NoResponders) => self.watch.counters.saw(Sometimes::NoResponders),
            Err(AskError::TimedOut | AskError::Garbled) => {}
        }
        self.reach_at(self.now, i, Fact::Bus(Told::Answered { ask, answer }));
    }

    /// Schedules a fact for the current start of a node.
    pub(crate) fn reach_at(&mut self, at: Instant, i: Index, fact: Fact) {
        let start = self.nodes[i].start;
        self.agenda.at(
            at,
            Event::Reach {
                node: i,
                start,
                fact: Box::new(fact),
            },
        );
    }

    fn publish(&mut self, i: Index, place: Place, mut body: Publication) {
        if let Some(mutant) = self.mutant {
            let again = self.watch.times_published(&body);
            mutant.publication(self.nodes[i].who.role, &mut body, again);
        }
        self.watch.published(&body);
        let deaf = self.healed && self.params.deaf && matches!(body, Publication::Grant(_));
        if !deaf && self.nodes[i].link == Link::Up {
            self.spread(i, &place.clone(), &Told::Published { place, body });
        }
    }

    /// Sends copies to everybody who listens.
    fn spread(&mut self, from: Index, place: &Place, told: &Told) {
        for to in 0..self.nodes.len() {
            if !self.nodes[to].hears(place, self.now) {
                continue;
            }
            for at in self
                .network
                .arrivals(from, to, self.now)
                .into_iter()
                .flatten()
            {
                self.watch_arrival(to, told, at);
                self.reach_at(at, to, Fact::Bus(told.clone()));
            }
        }
    }

    /// A grant on its own holder's subject is going to reach it.
    fn watch_arrival(&mut self, to: Index, told: &Told, at: Instant) {
        let Told::Published { body, place } = told else {
            return;
        };
        let own = match place {
            Place::SlaveWindows(id) | Place::OrchWindows(id) => *id == self.nodes[to].who.id,
            Place::Master(_) | Place::Assign | Place::Slave(..) | Place::Event(_) => false,
        };
        if own {
            self.watch.heard(body, at.wall());
        }
    }

    /// A question waits for the connection, within its limit; what is published does not.
    fn ask(&mut self, i: Index, ask: AskId, place: Place, question: Question) {
        match self.nodes[i].link {
            Link::Up => self.route(i, ask, place, question),
            Link::HalfOpen => {}
            Link::Down => self.nodes[i].keep(ask, place, question),
        }
    }

    /// Brings a question to one of those who serve the place, and to who overhears it.
    fn route(&mut self, i: Index, ask: AskId, place: Place, question: Question) {
        let now = self.now;
        let start = self.nodes[i].start;
        let overhears = |topic: &Topic| *topic == Topic::MasterRequests && topic.hears(&place);
        let mut heard = false;
        for j in 0..self.nodes.len() {
            let node = &self.nodes[j];
            let listens = node.actor.is_some() && node.link != Link::Down;
            if !listens
                || !node
                    .listens
                    .iter()
                    .any(|(t, from)| *from <= now && overhears(t))
            {
                continue;
            }
            heard = true;
            for at in self.network.arrivals(i, j, now).into_iter().flatten() {
                let told = Told::Overheard {
                    place: place.clone(),
                    question: question.clone(),
                };
                self.reach_at(at, j, Fact::Bus(told));
            }
        }
        let known = |j: &Index| self.network.cut_between(i, *j, now) != Some(Cut::Known);
        let servers: Vec<Index> = (0..self.nodes.len())
            .filter(|j| self.nodes[*j].serves(&place, now))
            .filter(known)
            .collect();
        let Some(j) = self.rng.pick(&servers).copied() else {
            if !heard {
                let told = Err(AskError::NoResponders);
                if let [Some(at), _] = self.network.arrivals(i, i, now) {
                    self.answer_later(i, start, at, ask, told);
                }
            }
            return;
        };
        if self.nodes[j].actor.is_none() {
            return;
        }
        for at in self.network.arrivals(i, j, now).into_iter().flatten() {
            let to = self.requests.open(Asker {
                node: i,
                start,
                ask,
            });
            let chance = Nonce(Uuid::from_u64_pair(self.rng.draw(), self.rng.draw()));
            let (place, question) = (place.clone(), question.clone());
            self.reach_at(
                at,
                j,
                Fact::Bus(Told::Asked {
                    to,
                    place,
                    question,
                    chance,
                }),
            );
        }
    }

    fn answer(&mut self, i: Index, asker: Asker, mut answer: Answer) {
        if let Some(mutant) = self.mutant {
            mutant.answer(self.nodes[i].who.role, &mut answer);
        }
        self.watch.answered(&answer);
        // Who has the same request on two subscriptions is refused the reply by the server's
        // `allow_responses`: a leader must not overhear itself.
        let overhears = self.nodes[i].listens.contains_key(&Topic::MasterRequests);
        if overhears || self.nodes[i].link != Link::Up {
            return;
        }
        if let [Some(at), _] = self.network.arrivals(i, asker.node, self.now) {
            self.answer_later(asker.node, asker.start, at, asker.ask, Ok(answer));
        }
    }

    fn answer_later(
        &mut self,
        node: Index,
        start: u32,
        at: Instant,
        ask: AskId,
        answer: Result<Answer, AskError>,
    ) {
        let answer = Box::new(answer);
        self.agenda.at(
            at,
            Event::Answer {
                node,
                start,
                ask,
                answer,
            },
        );
    }
}
