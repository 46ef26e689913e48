//! The orchestrator as a member of the ring: finds a slave, keeps its grants, says which part of
//! the ring may be claimed from now.
//!
//! It decides who looks, never who wins: Postgres does that. It refuses to know transactions. The
//! ring is efficiency only, so every failure here ends in "claims nothing from the ring", and the
//! sweeper goes on (`design.md` section 1).

mod inbox;
mod member;
mod search;

use alloc::{string::String, vec::Vec};

pub use self::inbox::Dropped;
use self::{inbox::Inbox, search::Search};
use crate::{
    bus::{AskId, Op, Told},
    chance::Chance,
    id::{BootId, NodeId, Scope, Service},
    joining::{Asks, Joining, patience, soon},
    machine::{End, Machine},
    subject::{Place, Topic},
    time::{Mono, Now, Wake, Wall, millis_i64, millis_u64},
    timing::Timing,
    token::Range,
    window::{Grant, WindowNo},
    wire::{Health, Publication, Who},
};

/// Who it is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Region and cluster.
    pub scope: Scope,
    /// Its id, unique among orchestrators of the scope.
    pub id: NodeId,
    /// Whose transactions it runs.
    pub service: Service,
    /// This start of the process.
    pub boot: BootId,
    /// All times.
    pub timing: Timing,
    /// Version of the program, for people.
    pub build: String,
}

/// Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The process is up.
    Started,
    /// The bus told something.
    Bus(Told),
    /// The store was polled: how well it works.
    Measured(Health),
    /// The clock was compared with Postgres' one: ours less the database's.
    ClockMeasured {
        /// In milliseconds.
        offset_ms: i64,
    },
    /// Time passed.
    Woke,
    /// It was asked to leave: it claims nothing from now on.
    Drained,
}

/// What the caller must do.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large kind, and each is moved once"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Perform this on the bus.
    Bus(Op),
    /// Drive it no more.
    Stop(End),
}

/// The orchestrator's side of the ring.
#[derive(Clone, Debug)]
pub struct Orchestrator {
    me: Who,
    service: Service,
    timing: Timing,
    build: String,
    chance: Chance,
    asks: Asks,
    life: Life,
    connected: bool,
    search: Search,
    /// At this slave, or on the way in.
    at: Option<At>,
    inbox: Inbox,
    health: Option<(Mono, Health)>,
    offset_ms: Option<i64>,
    fetching: Option<AskId>,
    fetched_for: WindowNo,
    seen: Now,
}

#[derive(Clone, Debug)]
struct At {
    slave: NodeId,
    joining: Joining,
    /// Attempts to get in that failed.
    failures: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Life {
    Fresh,
    Up,
    /// Said that it goes; waits for the answer at most until this moment.
    Leaving {
        left: AskId,
        until: Mono,
    },
    Over,
}

impl Orchestrator {
    /// An orchestrator that has done nothing yet. The seed is for jitter.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        let Config {
            scope,
            id,
            service,
            boot,
            timing,
            build,
        } = config;
        let me = Who { id, boot };
        Self {
            inbox: Inbox::new(scope, timing, me.clone(), service.clone()),
            search: Search::new(me.clone(), service.clone(), timing),
            me,
            service,
            timing,
            build,
            chance: Chance::new(seed),
            asks: Asks::default(),
            life: Life::Fresh,
            connected: true,
            at: None,
            health: None,
            offset_ms: None,
            fetching: None,
            fetched_for: WindowNo(0),
            seen: Now::default(),
        }
    }

    /// Which parts of the ring may be claimed from at this moment: the union of the grants for
    /// the current window, sorted and merged; nothing outside the guards (RI4), while the clock is
    /// off, and after it was asked to leave or lost its id.
    #[must_use]
    pub fn claimable(&self, now: Wall) -> Vec<Range> {
        let n = self.timing.window_at(now);
        if self.may_claim() && self.timing.claimable(n, now) {
            self.inbox.ranges(n)
        } else {
            Vec::new()
        }
    }

    /// When claiming from the current window must stop, its guard already taken off; `None` when
    /// nothing is granted for it or nothing may be claimed.
    #[must_use]
    pub fn window_ends(&self, now: Wall) -> Option<Wall> {
        let n = self.timing.window_at(now);
        let end = self.timing.ends(n).minus(self.timing.guard);
        (self.may_claim() && now < end && !self.inbox.ranges(n).is_empty()).then_some(end)
    }

    /// The slave that has accepted it.
    #[must_use]
    pub fn slave(&self) -> Option<NodeId> {
        let at = self.at.as_ref().filter(|at| at.joining.is_member())?;
        Some(at.slave.clone())
    }

    /// All grants kept, in order of slave and window.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.inbox.grants()
    }

    /// Grants that it dropped since it started.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.inbox.dropped
    }

    /// Its clock less Postgres' one, in milliseconds, as last measured.
    #[must_use]
    pub fn clock_offset_ms(&self) -> Option<i64> {
        self.offset_ms
    }

    /// Whether a live process holds its id at the slave, so that it waits.
    #[must_use]
    pub fn waits_for_twin(&self) -> bool {
        self.at
            .as_ref()
            .is_some_and(|at| at.joining.waits_for_twin())
    }

    /// Why it is not ready to take its part of the ring; empty when it is. Normal execution of
    /// sagas needs none of this.
    #[must_use]
    pub fn ready(&self, now: Now) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        match self.life {
            Life::Fresh => reasons.push("it has not started"),
            Life::Up => {}
            Life::Leaving { .. } => reasons.push("it is leaving"),
            Life::Over => reasons.push("it has stopped"),
        }
        if !self.connected {
            reasons.push("the bus is disconnected");
        }
        if self.clock_is_off() {
            reasons.push("its clock is off against Postgres: it sits the ring out");
        }
        if self.waits_for_twin() {
            reasons.push("another live process has this id: it waits");
        } else if self.slave().is_none() {
            reasons.push("no slave has accepted it");
        }
        if self
            .inbox
            .ranges(self.timing.window_at(now.wall))
            .is_empty()
        {
            reasons.push("nothing is granted for the current window");
        }
        reasons.extend(self.inbox.unusable());
        reasons
    }

    fn may_claim(&self) -> bool {
        self.life == Life::Up && !self.clock_is_off()
    }

    fn clock_is_off(&self) -> bool {
        let tolerated = millis_i64(self.timing.tolerance).unsigned_abs();
        self.offset_ms
            .is_some_and(|ms| ms.unsigned_abs() > tolerated)
    }

    /// What a heartbeat tells: as last measured, aged until now.
    fn health(&self, now: Mono) -> Health {
        let (at, mut health) = self.health.unwrap_or_else(|| (now, Health::default()));
        let age = millis_u64(now.since(at));
        health.polled_ms = health.polled_ms.map(|ms| ms.saturating_add(age));
        health.sick |= self.clock_is_off();
        health
    }

    fn told(&mut self, now: Now, told: Told, out: &mut Vec<Op>) -> Option<End> {
        match told {
            Told::Published { place, body } => {
                if place == Place::OrchWindows(self.me.id.clone()) {
                    match (body, &mut self.at) {
                        (Publication::Grant(wire), _) => self.inbox.accept(now, wire),
                        (Publication::Probe(probe), Some(at)) if self.life == Life::Up => {
                            at.joining.probed(&probe, &mut self.asks, out);
                        }
                        (Publication::Probe(_), Some(_) | None) => {}
                    }
                }
                None
            }
            Told::Answered { ask, answer } => self.answered(now, ask, answer, out),
            Told::Connected => {
                self.connected = true;
                let soon = soon(now.mono, &self.timing, &mut self.chance);
                self.search.hurry(soon);
                if let Some(at) = &mut self.at {
                    at.joining.hurry(soon);
                }
                None
            }
            Told::Disconnected => {
                self.connected = false;
                None
            }
            // It serves nothing and subscribes to nothing else.
            Told::Asked { .. } | Told::Event(_) | Told::Overheard { .. } => None,
        }
    }

    fn drain(&mut self, now: Now, out: &mut Vec<Op>) -> Option<End> {
        match (&self.life, &self.at) {
            (Life::Leaving { .. }, _) => None,
            (Life::Up, Some(at)) => {
                let left = at.joining.leave(None, &mut self.asks, out);
                let until = now.mono.plus(2 * patience(&self.timing));
                self.life = Life::Leaving { left, until };
                None
            }
            (Life::Fresh | Life::Up | Life::Over, _) => Some(End::Drained),
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Op>) -> Option<End> {
        self.inbox.passed(now, self.may_claim());
        match self.life {
            Life::Fresh | Life::Over => None,
            Life::Leaving { until, .. } => (until <= now.mono).then_some(End::Drained),
            Life::Up => {
                let end = self.stay_in(now, out);
                if end.is_none() {
                    self.search.woke(now.mono, &mut self.asks, out);
                }
                end
            }
        }
    }
}

impl Machine for Orchestrator {
    type Input = Input;
    type Order = Order;

    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Order>) {
        if self.life == Life::Over {
            return;
        }
        self.seen = now;
        let mut ops = Vec::new();
        let end = match input {
            Input::Started if self.life == Life::Fresh => {
                self.life = Life::Up;
                ops.push(Op::Listen(Topic::OrchWindows(self.me.id.clone())));
                self.search.start(now.mono);
                None
            }
            Input::Bus(told) => self.told(now, told, &mut ops),
            Input::Measured(health) => {
                self.health = Some((now.mono, health));
                None
            }
            Input::ClockMeasured { offset_ms } => {
                self.offset_ms = Some(offset_ms);
                None
            }
            Input::Drained => self.drain(now, &mut ops),
            Input::Started | Input::Woke => None,
        };
        let end = end.or_else(|| self.tick(now, &mut ops));
        // A connection that is known to be down is being replaced already.
        ops.retain(|op| self.connected || *op != Op::Reconnect);
        out.extend(ops.into_iter().map(Order::Bus));
        if let Some(end) = end {
            let topic = Topic::OrchWindows(self.me.id.clone());
            out.push(Order::Bus(Op::Ignore(topic)));
            out.push(Order::Stop(end));
            self.life = Life::Over;
        }
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        match self.life {
            Life::Fresh | Life::Over => {}
            Life::Leaving { until, .. } => wake.at_mono(until, "leave"),
            Life::Up => {
                wake = self.search.wake_at();
                if let Some(at) = &self.at {
                    wake = wake.sooner(at.joining.wake_at());
                }
                for (at, why) in self.edges() {
                    if self.seen.wall < at {
                        wake.at_wall(at, why);
                    }
                }
            }
        }
        wake
    }
}

#[cfg(test)]
mod tests;
