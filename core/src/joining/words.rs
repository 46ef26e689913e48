//! The words of joining: with whom, what came of it, how long to wait.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    bus::{AskError, AskId},
    chance::{Backoff, Chance},
    id::NodeId,
    subject::{Place, Verb},
    time::{Mono, Wall},
    timing::Timing,
    window::Term,
    wire::{GrantWire, Hint, Refusal, Who},
};

/// With whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coordinator {
    /// Whoever leads.
    Master,
    /// This slave.
    Slave(NodeId),
}

/// Numbers the requests of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks(u64);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is in.
    Joined {
        /// The coordinator.
        by: Who,
        /// The newest grants.
        grants: Vec<GrantWire>,
    },
    /// A heartbeat was answered.
    Heard(Heard),
    /// An attempt to get in, or a heartbeat, failed; it goes on trying by itself.
    Failed(Failure),
    /// A member, and the coordinator was not heard for a session. Told once a silence.
    Silent,
    /// The id is held by a newer boot. Nothing more will come.
    Superseded,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The coordinator.
    pub by: Who,
    /// A master's term.
    pub term: Option<Term>,
    /// The coordinator's clock when it answered.
    pub now: Wall,
    /// From question to answer.
    pub took: Duration,
    /// The newest grants.
    pub grants: Vec<GrantWire>,
    /// How many to give up.
    pub hints: Vec<Hint>,
    /// Look for another coordinator.
    pub moves: bool,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody serves the coordinator's endpoints: known at once.
    NoResponders,
    /// Nobody answered in time; it was perhaps done.
    TimedOut,
    /// The answer made no sense.
    Garbled,
    /// The probe did not come: it can't hear its own subject.
    Deaf,
    /// The coordinator said no.
    Refused(Refusal),
}

impl Asks {
    /// The next number.
    pub fn number(&mut self) -> AskId {
        self.0 += 1;
        AskId(self.0)
    }
}

/// How long a request may take: 2 s, less where heartbeats are faster, but never under what a
/// busy network needs (`reliability.md` row 21).
#[must_use]
pub fn patience(timing: &Timing) -> Duration {
    let least = Duration::from_millis(250);
    timing.heartbeat.max(least).min(Duration::from_secs(2))
}

/// No cluster elects 2^48 leaders; a larger number is a corrupt message, and believing it would
/// silence every later leader.
pub const LARGEST_TERM: u64 = 1 << 48;

/// Learns a leader's term; `false` when a higher one is known, or when it makes no sense.
pub fn learn(known: &mut Option<Term>, term: Term) -> bool {
    if term.number >= LARGEST_TERM || known.is_some_and(|known| term < known) {
        return false;
    }
    *known = Some(term);
    true
}

/// When to come after the connection is back: within a fifth of a heartbeat, since everybody who
/// lost it comes back at the same moment.
pub fn soon(now: Mono, timing: &Timing, chance: &mut Chance) -> Mono {
    now.plus(chance.between(Duration::ZERO, timing.heartbeat / 5))
}

/// Pauses between attempts: from half a second up to a quarter of a window, so that a member is
/// back before the next cut.
#[must_use]
pub fn backoff(timing: &Timing) -> Backoff {
    let base = Duration::from_millis(500).min(timing.heartbeat);
    Backoff::new(base, timing.len / 4)
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NoResponders => Self::NoResponders,
            AskError::TimedOut => Self::TimedOut,
            AskError::Garbled => Self::Garbled,
        }
    }
}

impl Coordinator {
    pub(super) fn place(&self, verb: Verb) -> Place {
        match self {
            Self::Master => Place::Master(verb),
            Self::Slave(id) => Place::Slave(id.clone(), verb),
        }
    }
}
