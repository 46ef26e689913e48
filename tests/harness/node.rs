//! One process of the simulated world and its machine room: clock, connection, subscriptions.
//! It decides nothing; the world moves it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ring_core::{
    bus::AskId,
    id::BootId,
    machine::End,
    subject::{Endpoints, Place, Topic},
    wire::{Question, Role},
};
use uuid::Uuid;

use crate::{
    actor::{Actor, Fact, Identity},
    clock::{Clock, Instant},
    invariants::bounded::Fed,
    redis::Client,
    rng::Rng,
};

/// What waits for a paused process; the newest beyond it are dropped, as NATS does ([LAB N3]).
const BACKLOG: usize = 4_096;
/// What a client keeps while it is not connected; more would block it.
const OUTBOX: usize = 256;

/// The connection to the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Works.
    Up,
    /// Is down, and the process knows.
    Down,
    /// Is dead, and nobody knows.
    HalfOpen,
}

/// One process, in all its starts.
#[derive(Debug)]
pub struct Node {
    /// Who it is, in every start.
    pub who: Identity,
    /// Role, id and place in the list, for people.
    pub label: String,
    /// Its machine room's clocks.
    pub clock: Clock,
    /// Its current start's boot.
    pub boot: BootId,
    /// Counts its starts, so that messages to an earlier one find nobody.
    pub start: u32,
    /// Its machine; none while it is down.
    pub actor: Option<Actor>,
    /// Why its machine stopped, when it did so by itself.
    pub ended: Option<End>,
    /// It stands still until this moment.
    pub paused_until: Option<Instant>,
    /// What waits until it goes on.
    pub backlog: VecDeque<Fact>,
    /// Its connection.
    pub link: Link,
    /// What was asked while the connection was down.
    pub outbox: VecDeque<(AskId, Place, Question)>,
    /// Subscriptions, and from when the bus knows them.
    pub listens: BTreeMap<Topic, Instant>,
    /// Endpoints served, and from when the bus knows them.
    pub serves: BTreeMap<Endpoints, Instant>,
    /// Until when the bus takes a dead process for a live one.
    pub ghost_until: Instant,
    /// Its requests under way.
    pub asks: BTreeSet<AskId>,
    /// Names the one wake-up that counts.
    pub wake: u64,
    /// When it was last woken; within a second it is again.
    pub woken: Instant,
    /// Redis performs its orders one after the other.
    pub redis_free_at: Instant,
    /// Redis' answers come one after the other.
    pub redis_told_at: Instant,
    /// It can't reach Redis until then.
    pub redis_cut_until: Instant,
    /// Its store hangs until then.
    pub sick_until: Instant,
    /// It dies after so many further orders.
    pub dies_after: Option<usize>,
    /// Inputs of each kind in the current second of true time.
    pub fed: (i64, Fed),
}

impl Node {
    /// A process that does not run yet.
    #[must_use]
    pub fn new(who: Identity, label: String, clock: Clock) -> Self {
        let long_ago = Instant(0);
        Self {
            who,
            label,
            clock,
            boot: BootId(Uuid::nil()),
            start: 0,
            actor: None,
            ended: None,
            paused_until: None,
            backlog: VecDeque::new(),
            link: Link::Up,
            outbox: VecDeque::new(),
            listens: BTreeMap::new(),
            serves: BTreeMap::new(),
            ghost_until: long_ago,
            asks: BTreeSet::new(),
            wake: 0,
            woken: long_ago,
            redis_free_at: long_ago,
            redis_told_at: long_ago,
            redis_cut_until: long_ago,
            sick_until: long_ago,
            dies_after: None,
            fed: (0, Fed::default()),
        }
    }

    /// A new start: everything but the machine room is new. The boot is a UUIDv7 of its own clock.
    pub fn boot(&mut self, at: Instant, rng: &mut Rng) {
        let fresh = Self::new(
            self.who.clone(),
            std::mem::take(&mut self.label),
            self.clock.clone(),
        );
        let (start, wake) = (self.start + 1, self.wake + 1);
        let millis = u64::try_from(self.clock.read(at).wall.0).unwrap_or(0);
        let high = (millis << 16) | 0x7000 | rng.below(0x1000);
        let low = 0x8000_0000_0000_0000 | (rng.draw() >> 2);
        let boot = BootId(Uuid::from_u64_pair(high, low));
        let (redis_cut_until, sick_until) = (self.redis_cut_until, self.sick_until);
        *self = Self {
            start,
            wake,
            boot,
            redis_cut_until,
            sick_until,
            ..fresh
        };
    }

    /// The process is gone. The bus may take a moment to notice.
    pub fn die(&mut self, noticed: Instant) {
        self.actor = None;
        self.paused_until = None;
        self.backlog.clear();
        self.outbox.clear();
        self.asks.clear();
        self.listens.clear();
        self.dies_after = None;
        self.ghost_until = noticed;
    }

    /// Whether its machine runs and does not stand still.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.actor.is_some() && self.paused_until.is_none()
    }

    /// Whether it is an orchestrator.
    #[must_use]
    pub fn claims(&self) -> bool {
        self.who.role == Role::Orchestrator
    }

    /// As Redis knows it.
    #[must_use]
    pub fn client(&self) -> Client {
        Client {
            id: self.who.id.clone(),
            boot: self.boot,
        }
    }

    /// Whether the bus sends it what is published there.
    #[must_use]
    pub fn hears(&self, place: &Place, at: Instant) -> bool {
        self.actor.is_some()
            && self.link != Link::Down
            && self
                .listens
                .iter()
                .any(|(topic, from)| *from <= at && topic.hears(place))
    }

    /// Whether the bus sends it requests to that endpoint: perhaps though it is dead.
    #[must_use]
    pub fn serves(&self, place: &Place, at: Instant) -> bool {
        let known = self.actor.is_some() && self.link != Link::Down || at < self.ghost_until;
        let serves = |(endpoints, from): (&Endpoints, &Instant)| {
            *from <= at && endpoints.places().contains(place)
        };
        known && self.serves.iter().any(serves)
    }

    /// Keeps a fact until the process goes on.
    pub fn wait(&mut self, fact: Fact) {
        if self.backlog.len() < BACKLOG {
            self.backlog.push_back(fact);
        }
    }

    /// Keeps a question that can't be sent now.
    pub fn keep(&mut self, ask: AskId, place: Place, question: Question) {
        if self.outbox.len() < OUTBOX {
            self.outbox.push_back((ask, place, question));
        }
    }
}
