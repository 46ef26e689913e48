//! The words for windows: what a cut is, what a grant is.
//!
//! A cut is an immutable value keyed (region, cluster, service, n): its identity is its map, the
//! term is only the envelope (`design.md` section 3, "Windows"). A grant is what one holder gets
//! of it, valid for its window whoever dies meanwhile.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    id::{BootId, NodeId, Service},
    token::Range,
};

/// The number of a window: Unix time divided by the window's length.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WindowNo(pub u64);

/// A master's term of leadership; compares as (number, boot), so two masters are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    /// 1 + the highest number known when leadership was taken.
    pub number: u64,
    /// The leader's boot.
    pub boot: BootId,
}

/// Whether a seat of a cut is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeatState {
    /// Its holder was alive when the window was cut.
    Live,
    /// Its holder vanished and is expected back (R8): a declared gap.
    Frozen,
    /// Its holder has no orchestrator of the service: it gets nothing.
    Empty,
}

/// One slave's place in a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The slave.
    pub slave: NodeId,
    /// The boot for which it was cut; nobody else may use it.
    pub boot: BootId,
    /// How many orchestrators it counted.
    pub weight: u32,
    /// Its part of the ring; `None` when empty.
    pub range: Option<Range>,
    /// Live, frozen or empty.
    pub state: SeatState,
}

/// How one service's ring is cut for one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whose ring.
    pub service: Service,
    /// For which window.
    pub window: WindowNo,
    /// Under whose term it was first stored.
    pub term: Term,
    /// All seats in index order, frozen and empty ones included.
    pub seats: Vec<Seat>,
}

impl Cut {
    /// Whether both cut the same window the same way, whatever the envelope (RI2).
    #[must_use]
    pub fn same_map(&self, other: &Self) -> bool {
        (&self.service, self.window, &self.seats) == (&other.service, other.window, &other.seats)
    }

    /// The ranges that some seat holds, frozen ones included.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range> {
        self.seats.iter().filter_map(|seat| seat.range).collect()
    }
}

/// The slave's seat out of which an orchestrator's grant was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The slave.
    pub slave: NodeId,
    /// Its boot.
    pub boot: BootId,
    /// Its index among `members` seats of the cut.
    pub index: u32,
    /// Seats in the cut.
    pub members: u32,
    /// Its slice.
    pub range: Range,
}

/// What one holder may look after during one window, for one service. Self-describing: any
/// listener can add grants up and prove coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose ring.
    pub service: Service,
    /// For which window.
    pub window: WindowNo,
    /// The holder's part.
    pub range: Range,
    /// The term of the cut.
    pub term: Term,
    /// A slave, or an orchestrator when `parent` is there.
    pub holder: NodeId,
    /// The only boot that may act on it.
    pub boot: BootId,
    /// The holder's index among `members`.
    pub index: u32,
    /// Among how many the cut (or the parent's slice) was divided.
    pub members: u32,
    /// The slice it was cut from; `None` for a slave's own grant.
    pub parent: Option<Parent>,
}

impl fmt::Display for WindowNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl WindowNo {
    /// The window after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The window before this one.
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
