//! What is published on a member's own subject: grants, and probes of a subscription.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::scalar::Time;
use crate::{
    id::{BootId, Cluster, NodeId, Nonce, Region, Scope, Service},
    time::Wall,
    timing::Timing,
    token::Range,
    window::{Cut, Grant, Parent, Seat, SeatState, Term, WindowNo},
};

/// Published on `slave.<id>` and `orch.<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Publication {
    /// A window granted to the holder of the subject.
    Grant(GrantWire),
    /// Proves to a newcomer that it hears its own subject; it answers with `confirm`.
    Probe(Probe),
}

/// A nonce for one boot; only a member that hears its subject can confirm it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The newcomer's boot; other boots ignore it.
    pub boot: BootId,
    /// To be sent back.
    pub nonce: Nonce,
}

/// [`Grant`] as published, with its scope and its times, so that a stranger needs nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantWire {
    /// The region.
    pub region: Region,
    /// The cluster.
    pub cluster: Cluster,
    /// Whose ring.
    pub service: Service,
    /// Number of the window.
    pub window: WindowNo,
    /// First moment.
    pub starts_at: Time,
    /// First moment after.
    pub ends_at: Time,
    /// The holder's part, both ends inclusive.
    pub range: Range,
    /// The master's term of the cut.
    pub term: Term,
    /// Who may look after it.
    pub holder: NodeId,
    /// In which boot.
    pub boot: BootId,
    /// Index among `members`.
    pub index: u32,
    /// Among how many.
    pub members: u32,
    /// The slave's slice it was cut from; absent in a slave's own grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentWire>,
}

/// [`Parent`] on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentWire {
    /// The slave.
    pub slave: NodeId,
    /// Its boot.
    pub boot: BootId,
    /// Index of its seat.
    pub index: u32,
    /// Seats in the cut.
    pub members: u32,
    /// Its slice.
    pub range: Range,
}

/// [`Cut`] on the wire: in `event.cut`, in a master's status, and in Redis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutWire {
    /// Whose ring.
    pub service: Service,
    /// Number of the window.
    pub window: WindowNo,
    /// First moment.
    pub starts_at: Time,
    /// First moment after.
    pub ends_at: Time,
    /// The term under which it was first stored.
    pub term: Term,
    /// All seats in index order.
    pub seats: Vec<SeatWire>,
}

/// [`Seat`] on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatWire {
    /// The slave.
    pub slave: NodeId,
    /// Its boot.
    pub boot: BootId,
    /// Orchestrators it counted.
    pub weight: u32,
    /// `live`, `frozen` or `empty`.
    pub state: SeatState,
    /// Its part; absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
}

impl GrantWire {
    /// Dresses a grant for the wire.
    #[must_use]
    pub fn new(scope: &Scope, timing: &Timing, grant: Grant) -> Self {
        let Grant {
            service,
            window,
            range,
            term,
            holder,
            boot,
            index,
            members,
            parent,
        } = grant;
        let parent = parent.map(
            |Parent {
                 slave,
                 boot,
                 index,
                 members,
                 range,
             }| ParentWire {
                slave,
                boot,
                index,
                members,
                range,
            },
        );
        Self {
            region: scope.region.clone(),
            cluster: scope.cluster.clone(),
            service,
            window,
            starts_at: Time(timing.starts(window)),
            ends_at: Time(timing.ends(window)),
            range,
            term,
            holder,
            boot,
            index,
            members,
            parent,
        }
    }

    /// The grant inside, when scope and times are ours.
    ///
    /// # Errors
    /// A sentence for the log: another scope, other window times (the two sides are configured
    /// with different window lengths), a part outside its parent, or an index outside the count.
    pub fn open(self, scope: &Scope, timing: &Timing) -> Result<Grant, &'static str> {
        if (&self.region, &self.cluster) != (&scope.region, &scope.cluster) {
            return Err("the window is of another region or cluster");
        }
        if (self.starts_at.0, self.ends_at.0)
            != (timing.starts(self.window), timing.ends(self.window))
        {
            return Err("the window's times are not ours: compare the configured window lengths");
        }
        if self.index >= self.members {
            return Err("the index is not below the member count");
        }
        if self
            .parent
            .as_ref()
            .is_some_and(|p| !p.range.covers(self.range))
        {
            return Err("the range lies outside its parent's");
        }
        Ok(Grant {
            service: self.service,
            window: self.window,
            range: self.range,
            term: self.term,
            holder: self.holder,
            boot: self.boot,
            index: self.index,
            members: self.members,
            parent: self.parent.map(
                |ParentWire {
                     slave,
                     boot,
                     index,
                     members,
                     range,
                 }| Parent {
                    slave,
                    boot,
                    index,
                    members,
                    range,
                },
            ),
        })
    }
}

impl CutWire {
    /// Dresses a cut for the wire.
    #[must_use]
    pub fn new(timing: &Timing, cut: &Cut) -> Self {
        let seat = |s: &Seat| SeatWire {
            slave: s.slave.clone(),
            boot: s.boot,
            weight: s.weight,
            state: s.state,
            range: s.range,
        };
        Self {
            service: cut.service.clone(),
            window: cut.window,
            starts_at: Time(timing.starts(cut.window)),
            ends_at: Time(timing.ends(cut.window)),
            term: cut.term,
            seats: cut.seats.iter().map(seat).collect(),
        }
    }

    /// The cut inside.
    #[must_use]
    pub fn open(self) -> Cut {
        let seat = |s: SeatWire| Seat {
            slave: s.slave,
            boot: s.boot,
            weight: s.weight,
            range: s.range,
            state: s.state,
        };
        Cut {
            service: self.service,
            window: self.window,
            term: self.term,
            seats: self.seats.into_iter().map(seat).collect(),
        }
    }
}

/// Text cut to 500 characters, so that no error fills a message.
#[must_use]
pub(super) fn short(text: &str) -> String {
    text.chars().take(500).collect()
}

/// The wall clock's moment inside a [`Time`].
impl From<Wall> for Time {
    fn from(at: Wall) -> Self {
        Self(at)
    }
}
