//! Who leads: the lease in the registry, terms, and when a leader steps down.
//!
//! One order about the lease is open at a time; its answer counts from the moment it was sent. The
//! file refuses to know what a leader does with its leadership.

use alloc::{string::ToString, vec::Vec};
use core::time::Duration;

use super::{Lead, Master, Order, Phase};
use crate::{
    bus,
    chance::Chance,
    id::NodeId,
    joining::LARGEST_TERM,
    machine::End,
    registry::{Op, Told},
    subject::{Endpoints, Topic},
    time::{Mono, Now, Wake, Wall},
    window::Term,
    wire::{Fact, Refusal},
};

/// What is known of the lease and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// An order about it is open since then.
    asked: Option<Now>,
    /// Not before this.
    next: Mono,
    /// The registry can't be reached since then.
    pub(super) lost_since: Option<Mono>,
    /// Standbys must not compete in step.
    chance: Chance,
}

impl Lease {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            asked: None,
            next: Mono(0),
            lost_since: None,
            chance: Chance::new(seed),
        }
    }
}

impl Master {
    pub(super) fn start(&mut self, now: Now, out: &mut Vec<Order>) {
        self.ears.since = now.mono;
        for topic in Self::TOPICS {
            out.push(Order::Bus(bus::Op::Listen(topic)));
        }
    }

    /// Competes, renews, or steps down, whichever is due.
    pub(super) fn keep_lease(&mut self, now: Now, out: &mut Vec<Order>) {
        self.give_up_unanswered(now);
        let Some(lead) = self.lead().copied() else {
            return self.compete(now, out);
        };
        let lease = self.timing().master_lease;
        let deaf = self.ears.deaf_since;
        if self.is_clock_off(now) {
            self.step_down(now, "its clock is off from the majority's", out);
        } else if deaf.is_some_and(|since| now.mono.since(since) >= lease) {
            self.step_down(now, "it does not hear the bus", out);
        } else if self.config.alone {
        } else if lead.lease_until <= now.mono && !self.has_majority(now) {
            let why = "its lease is not confirmed and no majority of slaves beats";
            self.step_down(now, why, out);
        } else if self.lease.asked.is_none() && self.lease.next <= now.mono {
            self.renew(now, lead.term, out);
        }
    }

    fn compete(&mut self, now: Now, out: &mut Vec<Order>) {
        let listened = now.mono.since(self.ears.since) >= self.quiet();
        let able = self.ears.deaf_since.is_none() && !self.is_clock_off(now);
        if !listened || !able || self.lease.asked.is_some() || self.lease.next > now.mono {
            return;
        }
        if self.config.alone {
            let term = Term {
                number: self.floor.saturating_add(1),
                boot: self.config.boot,
            };
            self.take_over(now, term, Mono(u64::MAX), out);
        } else {
            self.lease.asked = Some(now);
            out.push(Order::Registry(Op::Acquire {
                floor: self.floor,
                ttl: self.timing().master_lease,
            }));
        }
    }

    fn renew(&mut self, now: Now, term: Term, out: &mut Vec<Order>) {
        let ttl = self.timing().master_lease;
        self.lease.next = now.mono.plus(ttl / 3);
        if self.lease.lost_since.is_some() && self.board.has_memory() {
            // What was published without the registry is stored before the lease is confirmed.
            self.store_at_once(now);
        } else {
            self.lease.asked = Some(now);
            out.push(Order::Registry(Op::Renew { term, ttl }));
        }
    }

    /// Every order is answered; should an answer be lost all the same, it is not waited for longer
    /// than a lease.
    fn give_up_unanswered(&mut self, now: Now) {
        let most = self.timing().master_lease;
        let late = |sent: Now| now.mono.since(sent.mono) > most;
        if self.lease.asked.is_some_and(late) {
            self.lease.asked = None;
        }
    }

    /// The leader asks the registry at once what time it is: its own clock stepped.
    pub(super) fn ask_soon(&mut self, now: Now) {
        if self.lead().is_some() {
            self.lease.next = now.mono;
        }
    }

    pub(super) fn on_registry(&mut self, now: Now, told: Told, out: &mut Vec<Order>) {
        if let Phase::Leaving { .. } = self.phase {
            return self.last_answer(told, out);
        }
        match told {
            Told::Mine { term, clock } => self.on_mine(now, term, clock, out),
            Told::Theirs {
                term, left, clock, ..
            } => self.on_theirs(now, term, left, clock, out),
            Told::Released => {}
            Told::Stored { cuts } => {
                self.stored(now, cuts, out);
                if self.lease.lost_since.is_some() && !self.board.has_memory() {
                    self.lease.next = now.mono;
                }
            }
            Told::Loaded { cuts, .. } => {
                if let Some(lead) = self.lead_mut() {
                    lead.loaded = true;
                    self.stored(now, cuts, out);
                }
            }
            Told::Counted { service, count } => self.counted(&service, count, out),
            Told::Unreachable { op } => self.on_unreachable(now, op, out),
        }
    }

    fn on_mine(&mut self, now: Now, term: Term, clock: Wall, out: &mut Vec<Order>) {
        let Some(sent) = self.lease.asked.take() else {
            // An answer to an order of a leadership that is over.
            if self.lead().is_none() {
                out.push(Order::Registry(Op::Release { term }));
            }
            return;
        };
        let tolerance = self.timing().tolerance;
        self.clock.measure(sent, now, clock, tolerance);
        self.found_again(now, out);
        let ttl = self.timing().master_lease;
        let until = sent.mono.plus(ttl);
        let (floor, off) = (self.floor, self.is_clock_off(now));
        match self.lead_mut() {
            Some(lead) if lead.term == term => lead.lease_until = until,
            Some(_) => {}
            None if off => {
                out.push(Order::Registry(Op::Release { term }));
                self.lease.next = now.mono.plus(ttl);
            }
            None if term.number <= floor || until <= now.mono => {
                // A higher term was heard, or the lease ran out, while this was under way.
                out.push(Order::Registry(Op::Release { term }));
                self.lease.next = now.mono;
            }
            None => {
                self.lease.next = sent.mono.plus(ttl / 3);
                self.take_over(now, term, until, out);
            }
        }
    }

    fn on_theirs(
        &mut self,
        now: Now,
        term: Term,
        left: Duration,
        clock: Wall,
        out: &mut Vec<Order>,
    ) {
        if let Some(sent) = self.lease.asked.take() {
            let tolerance = self.timing().tolerance;
            self.clock.measure(sent, now, clock, tolerance);
        }
        self.found_again(now, out);
        self.floor = self.floor.max(term.number);
        self.step_down(now, "another master has the lease", out);
        let third = self.timing().master_lease / 3;
        // A leader that leaves gives its lease back before it ends.
        let pause = left.min(third) + self.lease.chance.between(Duration::ZERO, third / 4);
        self.lease.next = now.mono.plus(pause);
    }

    fn on_unreachable(&mut self, now: Now, op: Op, out: &mut Vec<Order>) {
        if self.lease.lost_since.is_none() {
            self.lease.lost_since = Some(now.mono);
            if self.lead().is_some() {
                let reason = super::status::NO_REGISTRY.to_string();
                self.tell(now, Fact::Degraded { reason }, out);
            }
        }
        match op {
            Op::Acquire { .. } | Op::Renew { .. } => {
                self.lease.asked = None;
                let third = self.timing().master_lease / 3;
                let pause = self.lease.chance.between(third / 2, third);
                self.lease.next = now.mono.plus(pause);
            }
            Op::Release { .. } => {}
            Op::StoreCuts { .. } => self.not_stored(now),
            // What was heard is all there is to go by; the majority's beats are still required.
            Op::LoadCuts { .. } => {
                if let Some(lead) = self.lead_mut() {
                    lead.loaded = true;
                }
            }
            Op::Count { service } => self.not_counted(&service, out),
        }
    }

    fn found_again(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.lease.lost_since.take().is_some() && self.lead().is_some() {
            let reason = "the registry answers again".to_string();
            self.tell(now, Fact::Recovered { reason }, out);
        }
    }

    fn take_over(&mut self, now: Now, term: Term, lease_until: Mono, out: &mut Vec<Order>) {
        self.floor = self.floor.max(term.number);
        self.board.start_over();
        self.phase = Phase::Leading(Lead {
            term,
            since: now.wall,
            lease_until,
            loaded: self.config.alone,
        });
        // Who gets a request on two subscriptions of one connection is refused the reply by
        // nats-server's `allow_responses` (seen with 2.15): a leader hears it by serving.
        out.push(Order::Bus(bus::Op::Ignore(Topic::MasterRequests)));
        out.push(Order::Bus(bus::Op::Serve(Endpoints::Master)));
        self.tell(now, Fact::Leader { term }, out);
        if !self.config.alone {
            let current = self.current(now);
            let windows = alloc::vec![current, current.next()];
            out.push(Order::Registry(Op::LoadCuts { windows }));
        }
    }

    /// Ends a leadership; nothing to do without one.
    pub(super) fn step_down(&mut self, now: Now, reason: &str, out: &mut Vec<Order>) {
        let Some(term) = self.lead().map(|lead| lead.term) else {
            return;
        };
        self.refuse_open(Refusal::NotLeader, out);
        self.phase = Phase::Standby;
        self.board.start_over();
        out.push(Order::Bus(bus::Op::Withdraw(Endpoints::Master)));
        out.push(Order::Bus(bus::Op::Listen(Topic::MasterRequests)));
        if !self.config.alone {
            out.push(Order::Registry(Op::Release { term }));
        }
        let reason = reason.to_string();
        self.tell(now, Fact::SteppedDown { term, reason }, out);
        self.lease.asked = None;
        let third = self.timing().master_lease / 3;
        let pause = self.lease.chance.between(third, 2 * third);
        self.lease.next = now.mono.plus(pause);
    }

    /// A term was heard, from whomever. A leader yields to a higher one.
    pub(super) fn hear(&mut self, now: Now, term: Term, out: &mut Vec<Order>) {
        // Half the range: whatever is heard, its successors are still accepted by every slave.
        if term.number >= LARGEST_TERM / 2 {
            return;
        }
        self.floor = self.floor.max(term.number);
        if self.lead().is_some_and(|lead| lead.term < term) {
            self.step_down(now, "a higher term was heard", out);
        }
    }

    /// Whether more than half of the slaves with a seat in the last confirmed cuts beat here.
    pub(super) fn has_majority(&self, now: Now) -> bool {
        let voters = self.board.voters();
        let session = self.timing().session;
        let beats = |id: &&NodeId| {
            let member = self.roster.get(id);
            let beat = member.and_then(|member| member.role.beat_at);
            beat.is_some_and(|at| now.mono.since(at) < session)
        };
        let all = voters.len();
        2 * voters.into_iter().filter(beats).count() > all
    }

    /// Leaves: the endpoints first, then the lease, then it stops.
    pub(super) fn drain(&mut self, now: Now, out: &mut Vec<Order>) {
        if let Phase::Leaving { .. } | Phase::Over = self.phase {
            return;
        }
        let open = self.lead().is_some() || self.lease.asked.is_some();
        self.step_down(now, "it was asked to leave", out);
        if self.config.alone || !open {
            return self.stop(out);
        }
        let until = now.mono.plus(self.timing().master_lease / 3);
        self.phase = Phase::Leaving { until };
    }

    fn last_answer(&mut self, told: Told, out: &mut Vec<Order>) {
        match told {
            // An order to acquire was under way.
            Told::Mine { term, .. } => out.push(Order::Registry(Op::Release { term })),
            Told::Released
            | Told::Theirs { .. }
            | Told::Unreachable {
                op: Op::Release { .. } | Op::Acquire { .. },
            } => self.stop(out),
            Told::Unreachable { .. }
            | Told::Stored { .. }
            | Told::Loaded { .. }
            | Told::Counted { .. } => {}
        }
    }

    pub(super) fn stop(&mut self, out: &mut Vec<Order>) {
        self.phase = Phase::Over;
        out.push(Order::Stop(End::Drained));
    }

    pub(super) fn plan_lease(&self, now: Now, wake: &mut Wake) {
        let mut at = |at: Mono, why| {
            if at > now.mono {
                wake.at_mono(at, why);
            }
        };
        match &self.phase {
            Phase::Leading(lead) if !self.config.alone => {
                at(lead.lease_until, "the lease ends");
                at(self.lease.next, "the lease is renewed");
            }
            Phase::Standby => {
                at(self.ears.since.plus(self.quiet()), "it has listened");
                at(self.lease.next, "it competes");
            }
            Phase::Leading(_) | Phase::Leaving { .. } | Phase::Over => {}
        }
    }
}
