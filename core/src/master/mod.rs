//! The master: who leads, how each service's ring is cut among slaves, which slave an orchestrator
//! gets.
//!
//! One leads a region and cluster, the others stand by and overhear everything (heartbeats, windows,
//! events), so a change of leader costs no window. The rules are `design.md` section 3. A master
//! refuses to know orchestrators (it sees counts) and the transactions' database.
//!
//! What needs durability comes first: a cut is ordered stored, and published only after
//! [`registry::Told::Stored`] came in. Without the registry the leader goes on from memory while a
//! majority of the last confirmed cut's seats beats, and says so.

mod asked;
mod assign;
mod board;
mod clock;
mod cutting;
mod frozen;
mod heard;
mod hints;
mod issue;
mod lease;
mod seats;
mod status;

use alloc::{
    collections::{BTreeMap, VecDeque},
    string::String,
    vec::Vec,
};
use core::time::Duration;

use crate::{
    bus,
    id::{BootId, NodeId, Scope, Service},
    machine::{End, Machine},
    registry,
    roster::{Limits, Roster},
    time::{Mono, Now, Wake, Wall},
    timing::Timing,
    window::{Term, WindowNo},
    wire::{Author, Event, Fact, Hint, Load, Role, Who},
};

/// Most slaves of a cluster: an `event.cut` lists them all, a seat takes up to 231 bytes, a message
/// at most 64 KiB.
pub const MAX_SLAVES: usize = 256;

/// Most services of a cluster: a heartbeat's reply carries two grants for each, a grant takes up to
/// 650 bytes, a message at most 64 KiB. Services beyond get no ring and are swept only.
pub const MAX_SERVICES: usize = 48;

/// Most slaves between the two phases of joining: enough to fill a cluster in a few round trips.
const MAX_NEWCOMERS: usize = 64;

/// How a service's ring is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// In proportion to live orchestrators.
    #[default]
    Weighted,
    /// The document's split: equal parts, whoever has orchestrators.
    Equal,
}

/// What a master is told when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Region and cluster.
    pub scope: Scope,
    /// Its id.
    pub id: NodeId,
    /// This start of its process.
    pub boot: BootId,
    /// The time settings; sound, see [`Timing::errors`].
    pub timing: Timing,
    /// How rings are divided.
    pub balance: Balance,
    /// Version of the program, for people.
    pub build: String,
    /// The only master, without a registry (embedded): it leads by itself and keeps cuts in
    /// memory. Two such masters in one cluster are a mistake of configuration.
    pub alone: bool,
}

/// Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The machine runs; the bus is connected.
    Started,
    /// From the bus.
    Bus(bus::Told),
    /// From the registry.
    Registry(registry::Told),
    /// Time passed.
    Woke,
    /// It was asked to leave.
    Drained,
}

/// Orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// To the bus.
    Bus(bus::Op),
    /// To the registry; never when [`Config::alone`].
    Registry(registry::Op),
    /// Drive this machine no longer.
    Stop(End),
}

/// The machine. Everything in it is bounded: by [`MAX_SLAVES`], [`MAX_SERVICES`], and three windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    config: Config,
    phase: Phase,
    /// The highest term number heard: the floor of the next one.
    floor: u64,
    lease: lease::Lease,
    ears: Ears,
    clock: clock::Clock,
    roster: Roster<Slave>,
    vanished: frozen::Vanished,
    board: board::Board,
    desk: assign::Desk,
    wake: Wake,
}

/// What it does at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Listens, and competes when it may.
    Standby,
    /// Leads.
    Leading(Lead),
    /// Gives its lease back, then stops; at the latest at this time.
    Leaving { until: Mono },
    /// Has stopped.
    Over,
}

/// A leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lead {
    term: Term,
    since: Wall,
    /// When the lease ends unless it is confirmed, counted from the order that confirmed it.
    lease_until: Mono,
    /// Whether the stored cuts were read (or the registry could not be asked).
    loaded: bool,
}

/// How long it could hear everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ears {
    /// Since when without a break.
    since: Mono,
    /// Since when the bus is down.
    deaf_since: Option<Mono>,
    /// The last input.
    last: Option<Now>,
    /// When it last looked what is due.
    looked: Mono,
}

/// What a slave's heartbeats told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slave {
    /// When the last heartbeat came; a renewed session does not count.
    beat_at: Option<Mono>,
    loads: BTreeMap<Service, Load>,
    clock_off: bool,
    /// Its clock less ours in its last heartbeats, at most [`clock::SAMPLES`].
    offsets: VecDeque<i64>,
    /// In every reply until the next cut, at most one a service.
    hints: Vec<Hint>,
}

impl Master {
    /// A master that has not started. `seed` is for jitter.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        let limits = Limits {
            members: MAX_SLAVES,
            newcomers: MAX_NEWCOMERS,
            session: config.timing.session,
        };
        Self {
            config,
            phase: Phase::Standby,
            floor: 0,
            lease: lease::Lease::new(seed),
            ears: Ears::default(),
            clock: clock::Clock::default(),
            roster: Roster::new(limits),
            vanished: frozen::Vanished::default(),
            board: board::Board::default(),
            desk: assign::Desk::default(),
            wake: Wake::NEVER,
        }
    }

    fn timing(&self) -> &Timing {
        &self.config.timing
    }

    /// Two heartbeat intervals: after them everybody alive was heard.
    fn quiet(&self) -> Duration {
        2 * self.timing().heartbeat
    }

    fn who(&self) -> Who {
        Who {
            id: self.config.id.clone(),
            boot: self.config.boot,
        }
    }

    fn lead(&self) -> Option<&Lead> {
        match &self.phase {
            Phase::Leading(lead) => Some(lead),
            Phase::Standby | Phase::Leaving { .. } | Phase::Over => None,
        }
    }

    fn lead_mut(&mut self) -> Option<&mut Lead> {
        match &mut self.phase {
            Phase::Leading(lead) => Some(lead),
            Phase::Standby | Phase::Leaving { .. } | Phase::Over => None,
        }
    }

    fn tell(&self, now: Now, fact: Fact, out: &mut Vec<Order>) {
        let by = Author {
            role: Role::Master,
            id: self.config.id.clone(),
            boot: self.config.boot,
        };
        let event = Event::new(now.wall, by, fact);
        out.push(Order::Bus(bus::Op::Tell(event)));
    }

    fn current(&self, now: Now) -> WindowNo {
        self.timing().window_at(now.wall)
    }

    /// Sees pauses of the whole process and steps of its wall clock, before anything else.
    fn notice_time(&mut self, now: Now) {
        if self.clock.stepped(now, self.config.timing.tolerance) {
            self.clock.suspect(now.mono);
            self.roster.each(|slave| slave.role.offsets.clear());
            self.ask_soon(now);
        }
        // It is woken at least once a second, so a gap of two is a pause in which nobody could be
        // heard: sessions start anew, and what was overheard before is old.
        let most = Duration::from_secs(2).max(self.timing().session / 2);
        let last = self.ears.last.replace(now);
        if last.is_some_and(|last| now.mono.since(last.mono) > most) {
            self.roster.renew_all(now.mono);
            self.ears.since = now.mono;
        }
    }

    /// Whatever time brings. Idempotent: a spurious wake finds nothing due.
    fn pass(&mut self, now: Now, out: &mut Vec<Order>) {
        self.ears.looked = now.mono;
        match &self.phase {
            Phase::Over => {}
            Phase::Leaving { until } if *until <= now.mono => self.stop(out),
            Phase::Leaving { .. } => {}
            Phase::Standby | Phase::Leading(_) => {
                self.expire(now, out);
                self.keep_lease(now, out);
                self.cut_what_is_due(now, out);
                self.publish_again(now, out);
            }
        }
    }

    /// Whether a deadline is reached, or a second went by: messages that come one after another must
    /// not keep it from its work.
    fn is_due(&self, now: Now) -> bool {
        let reached = self.wake.after(now).is_some_and(|(left, _)| left.is_zero());
        reached || now.mono.since(self.ears.looked) >= Duration::from_secs(1)
    }

    fn plan(&mut self, now: Now) {
        let mut wake = Wake::NEVER;
        match &self.phase {
            Phase::Over => {}
            Phase::Leaving { until } => wake.at_mono(*until, "leave without an answer"),
            Phase::Standby | Phase::Leading(_) => {
                self.plan_lease(now, &mut wake);
                self.plan_cuts(now, &mut wake);
                if let Some(at) = self.roster.next_expiry().filter(|at| *at > now.mono) {
                    wake.at_mono(at, "a slave's session ends");
                }
            }
        }
        self.wake = wake;
    }

    /// What holds after every input.
    fn is_sound(&self) -> bool {
        self.roster.len() <= MAX_SLAVES
            && self.board.is_bounded()
            && self.desk.is_bounded()
            && (self.lead().is_some() || self.desk.is_empty())
    }
}

impl Machine for Master {
    type Input = Input;
    type Order = Order;

    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Order>) {
        if self.phase == Phase::Over {
            return;
        }
        self.notice_time(now);
        match input {
            Input::Started => self.start(now, out),
            Input::Bus(told) => {
                let due = self.is_due(now);
                self.on_bus(now, told, out);
                if due {
                    self.pass(now, out);
                }
            }
            Input::Registry(told) => {
                self.on_registry(now, told, out);
                self.pass(now, out);
            }
            Input::Woke => self.pass(now, out),
            Input::Drained => self.drain(now, out),
        }
        self.plan(now);
        debug_assert!(self.is_sound(), "the master's state is not sound: {self:?}");
    }

    fn wake_at(&self) -> Wake {
        self.wake
    }
}

#[cfg(test)]
mod tests;
