//! What the lookout is told, and what it orders.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::{
    id::TargetName,
    store::{Backlog, Look},
    token::Range,
};

/// Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The ranges that may be polled now; none outside a window's guards.
    RangesChanged(Vec<Range>),
    /// How many more transactions can start now, of how many in all. To be told when it differs
    /// from what was told last: after [`Input::Looked`] before anything else, if rows were claimed.
    /// Slots held for looks under way count as free.
    Slots {
        /// Now.
        free: u32,
        /// In all.
        total: u32,
    },
    /// How many suspects run here; to be told like the slots.
    Suspects(u32),
    /// How many of the rows that wait for a target may be taken now, as its breaker says; of other
    /// targets none. To be told like the slots.
    Waiting(BTreeMap<TargetName, u32>),
    /// Whether the own lease lets anything start.
    Lease {
        /// As [`crate::owner::Owner::start_until`] says.
        startable: bool,
    },
    /// A look was answered.
    Looked {
        /// From the order.
        look: u32,
        /// Rows claimed.
        claimed: u32,
        /// What else it saw; only a look for due rows counts it.
        backlog: Option<Backlog>,
    },
    /// A look was not made: there was no lease or no room for it. It tells nothing of the store.
    NotAsked {
        /// From the order.
        look: u32,
    },
    /// A look failed, or nobody knows what it claimed.
    Unreachable {
        /// From the order.
        look: u32,
    },
    /// The process is about to go: nothing is looked for any more.
    Drained,
    /// Time passed.
    Woke,
}

/// The one order: make a claim of it with a nonce for each row, and answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Counts the looks.
    pub look: u32,
    /// Which rows.
    pub rows: Look,
    /// At most so many.
    pub limit: u32,
    /// Whether suspects are among them; such a look is for one row.
    pub suspects: bool,
}
