//! The slave's machine: takes its slice from the master, keeps its own orchestrators, cuts the
//! slice among them.
//!
//! It decides who of its orchestrators looks after which part of its slice, and when one should
//! look for another slave. It knows NATS alone: no other slave, no database, no business logic
//! (R6, R12). A grant stays valid until its window ends, so it goes on through the master's death.

mod clock;
mod holdings;
mod master;
mod members;
mod serve;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

pub use self::holdings::Dropped;
use self::{
    clock::Offset,
    holdings::Holdings,
    members::{LIMITS, Role},
};
use crate::{
    bus::{AskId, Op, Told},
    chance::Chance,
    id::{BootId, NodeId, Scope, Service},
    joining::{Asks, Coordinator, Failure, Joining, soon},
    machine::{End, Machine},
    roster::{Limits, Roster},
    subject::{Endpoints, Place, Topic},
    time::{Mono, Now, Wake},
    timing::Timing,
    window::{Grant, WindowNo},
    wire::{Publication, Who},
};

/// Who it is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Region and cluster.
    pub scope: Scope,
    /// Its id, unique among slaves of the scope.
    pub id: NodeId,
    /// This start of the process.
    pub boot: BootId,
    /// All times.
    pub timing: Timing,
    /// Version of the program, for people.
    pub build: String,
}

/// Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large kind, and each is moved once"
)]
pub enum Input {
    /// The process is up.
    Started,
    /// The bus told something.
    Bus(Told),
    /// Time passed.
    Woke,
    /// It was asked to leave.
    Drained,
}

/// What the caller must do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large kind, and each is moved once"
)]
pub enum Order {
    /// Perform this on the bus.
    Bus(Op),
    /// Drive it no more.
    Stop(End),
}

/// The slave.
#[derive(Clone, Debug)]
pub struct Slave {
    me: Who,
    timing: Timing,
    build: String,
    chance: Chance,
    asks: Asks,
    life: Life,
    /// The connection is up.
    connected: bool,
    /// It was accepted by a master once, so the id's endpoints are served.
    serving: bool,
    joining: Joining,
    holdings: Holdings,
    roster: Roster<Role>,
    offset: Offset,
    /// A grant or a member is new: something may have to be cut.
    to_cut: bool,
    /// For which newest window a service's hints were followed: one round a cut.
    moved_for: BTreeMap<Service, WindowNo>,
    /// Who should look for another slave.
    moving: BTreeSet<Who>,
    /// A fetch of missing windows, and for which window the last one was.
    fetching: Option<AskId>,
    fetched_for: WindowNo,
    /// No session ends before this moment.
    sweep_at: Mono,
    /// The window for which leavers were taken out.
    departed_for: WindowNo,
    seen: Now,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Life {
    Fresh,
    Up,
    /// Leaves: waits for the master's answer and until every orchestrator knows, at most until
    /// this moment.
    Leaving {
        left: Option<AskId>,
        until: Mono,
    },
    Over,
}

impl Slave {
    /// A slave that has done nothing yet. The seed is for jitter.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        let Config {
            scope,
            id,
            boot,
            timing,
            build,
        } = config;
        let me = Who { id, boot };
        let with = Coordinator::Master;
        let limits = Limits {
            session: timing.session,
            ..LIMITS
        };
        Self {
            joining: Joining::new(me.clone(), None, build.clone(), with, timing),
            holdings: Holdings::new(scope, timing, me.clone()),
            roster: Roster::new(limits),
            me,
            timing,
            build,
            chance: Chance::new(seed),
            asks: Asks::default(),
            life: Life::Fresh,
            connected: true,
            serving: false,
            offset: Offset::default(),
            to_cut: false,
            moved_for: BTreeMap::new(),
            moving: BTreeSet::new(),
            fetching: None,
            fetched_for: WindowNo(0),
            sweep_at: Mono(0),
            departed_for: WindowNo(0),
            seen: Now::default(),
        }
    }

    /// Why it is not ready; empty when it is.
    #[must_use]
    pub fn ready(&self, now: Now) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        let granted = self.holdings.own(now).next().is_some();
        match self.life {
            Life::Fresh => reasons.push("it has not started"),
            Life::Up => {}
            Life::Leaving { .. } => reasons.push("it is leaving"),
            Life::Over => reasons.push("it has stopped"),
        }
        if !self.connected {
            reasons.push("the bus is disconnected");
        }
        if self.joining.waits_for_twin() {
            reasons.push("another live process has this id: it waits");
        } else if !self.serving {
            reasons.push(match self.joining.failure() {
                Some(Failure::NoResponders) => "no master leads",
                Some(Failure::Deaf) => "it does not hear its own subject: check NATS permissions",
                Some(_) | None => "no master has accepted it yet",
            });
        } else if self.is_isolated(now) && !granted {
            reasons.push("the master is silent and no window is granted");
        }
        if self.sits_out() {
            reasons.push("its clock is off: it sits out");
        }
        reasons.extend(self.holdings.unusable());
        reasons
    }

    /// Its own grants that are not over, by service and window.
    pub fn grants(&self, now: Now) -> impl Iterator<Item = &Grant> {
        self.holdings.own(now)
    }

    /// What it granted out of them.
    pub fn issued(&self, now: Now) -> impl Iterator<Item = &Grant> {
        self.holdings.issued(now)
    }

    /// Its clock less the master's, in milliseconds.
    #[must_use]
    pub fn clock_offset_ms(&self) -> Option<i64> {
        self.offset.ms()
    }

    /// Grants that it dropped since it started.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.holdings.dropped
    }

    /// Whether a live process holds its id, so that it waits.
    #[must_use]
    pub fn waits_for_twin(&self) -> bool {
        self.joining.waits_for_twin()
    }

    /// Its clock is off against the master's, and most of its orchestrators find so, too.
    fn sits_out(&self) -> bool {
        self.offset.is_off(&self.timing) && self.members_disagree()
    }

    /// The master was not heard for two windows: whatever was granted is over.
    fn is_isolated(&self, now: Now) -> bool {
        let heard = self.joining.heard().unwrap_or_default();
        now.mono.since(heard) >= 2 * self.timing.len
    }

    fn told(&mut self, now: Now, told: Told, out: &mut Vec<Op>) -> Option<End> {
        match told {
            Told::Published { place, body } => {
                if place == Place::SlaveWindows(self.me.id.clone()) {
                    match body {
                        Publication::Grant(wire) => self.accept(now, wire, false),
                        Publication::Probe(probe) => {
                            self.joining.probed(&probe, &mut self.asks, out);
                        }
                    }
                }
                None
            }
            Told::Asked {
                to,
                place,
                question,
                chance,
            } => {
                let answer = self.serve(now, &place, question, chance, out);
                out.push(Op::Answer { to, answer });
                None
            }
            Told::Answered { ask, answer } => self.answered(now, ask, answer, out),
            Told::Connected => {
                self.roster.renew_all(now.mono);
                self.connected = true;
                let at = soon(now.mono, &self.timing, &mut self.chance);
                self.joining.hurry(at);
                None
            }
            Told::Disconnected => {
                self.connected = false;
                None
            }
            // It subscribes to neither.
            Told::Event(_) | Told::Overheard { .. } => None,
        }
    }

    fn drain(&mut self, now: Now, out: &mut Vec<Op>) {
        if matches!(self.life, Life::Leaving { .. } | Life::Over) {
            return;
        }
        let left = self
            .serving
            .then(|| self.joining.leave(None, &mut self.asks, out));
        self.holdings.repeat_all(now);
        // Each orchestrator is told at its next heartbeat; a session is three of them.
        let until = now.mono.plus(self.timing.session);
        self.life = Life::Leaving { left, until };
    }

    /// What only time brings.
    fn tick(&mut self, now: Now, out: &mut Vec<Op>) -> Option<End> {
        self.expire(now, out);
        self.holdings.forget(now);
        match self.life {
            Life::Fresh | Life::Over => return None,
            Life::Up => {
                let event = self
                    .joining
                    .woke(now, &mut self.chance, &mut self.asks, out);
                if let Some(end) = event.and_then(|event| self.membership(now, event, out)) {
                    return Some(end);
                }
                if self.joining.beat_due(now.mono) {
                    let beat = self.beat(now);
                    self.joining.beat(now, beat, &mut self.asks, out);
                }
                self.fetch_missing(now, out);
            }
            Life::Leaving { left, until } => {
                if (left.is_none() && self.roster.is_empty()) || until <= now.mono {
                    return Some(End::Drained);
                }
            }
        }
        self.issue(now, out);
        None
    }

    fn stop(&mut self, end: End, ops: Vec<Op>, out: &mut Vec<Order>) {
        out.extend(ops.into_iter().map(Order::Bus));
        let id = &self.me.id;
        if self.serving {
            out.push(Order::Bus(Op::Withdraw(Endpoints::Slave(id.clone()))));
        }
        out.push(Order::Bus(Op::Ignore(Topic::SlaveWindows(id.clone()))));
        out.push(Order::Stop(end));
        self.life = Life::Over;
    }
}

impl Machine for Slave {
    type Input = Input;
    type Order = Order;

    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Order>) {
        if self.life == Life::Over {
            return;
        }
        // Who was suspended heard nobody: that is nobody's fault.
        if now.mono.since(self.seen.mono) >= self.timing.session / 2 {
            self.roster.renew_all(now.mono);
        }
        self.seen = now;
        let mut ops = Vec::new();
        let end = match input {
            Input::Started if self.life == Life::Fresh => {
                self.life = Life::Up;
                ops.push(Op::Listen(Topic::SlaveWindows(self.me.id.clone())));
                None
            }
            Input::Bus(told) => self.told(now, told, &mut ops),
            Input::Drained => {
                self.drain(now, &mut ops);
                None
            }
            Input::Started | Input::Woke => None,
        };
        let end = end.or_else(|| self.tick(now, &mut ops));
        // A connection that is known to be down is being replaced already.
        ops.retain(|op| self.connected || *op != Op::Reconnect);
        match end {
            Some(end) => self.stop(end, ops, out),
            None => out.extend(ops.into_iter().map(Order::Bus)),
        }
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        match self.life {
            Life::Fresh | Life::Over => return wake,
            Life::Up => {
                wake = self.joining.wake_at();
                let next = self.timing.window_at(self.seen.wall).next();
                wake.at_wall(self.timing.starts(next), "window");
                if self.fetched_for != next && self.seen.wall < self.fetch_at(next) {
                    wake.at_wall(self.fetch_at(next), "missing window");
                }
            }
            Life::Leaving { until, .. } => wake.at_mono(until, "leave"),
        }
        if let Some(at) = self.holdings.next_due() {
            wake.at_mono(at, "publish again");
        }
        if self.connected && !self.roster.is_empty() {
            wake.at_mono(self.sweep_at, "session");
        }
        wake
    }
}

#[cfg(test)]
mod tests;
