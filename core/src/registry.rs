//! Port as data: what the master may ask of Redis, and the answers.
//!
//! Redis holds the leader's lease, the cuts (set if absent, kept three windows) and the round
//! robin's cursor (card C, R5). Nothing there is needed for safety of transactions. Keys are
//! hash-tagged `{region.cluster}`.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    id::{NodeId, Service},
    time::Wall,
    window::{Cut, Term, WindowNo},
};

/// Orders to the registry. Each is answered by exactly one [`Told`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Take the lease if it is free or mine: term = 1 + max(stored, `floor`). If it is mine
    /// already, extend it under the same term (so a repeat after a timeout is harmless).
    Acquire {
        /// The highest term number heard.
        floor: u64,
        /// How long.
        ttl: Duration,
    },
    /// Extend my lease; if the key is missing, restore it under my term unless a higher term is
    /// stored.
    Renew {
        /// Mine.
        term: Term,
        /// How long.
        ttl: Duration,
    },
    /// Give the lease back, if it is mine.
    Release {
        /// Mine.
        term: Term,
    },
    /// Store cuts, each only if its (service, window) has none.
    StoreCuts {
        /// Mine.
        cuts: Vec<Cut>,
        /// How long they are kept: three windows.
        keep: Duration,
    },
    /// Read all cuts of these windows.
    LoadCuts {
        /// Which.
        windows: Vec<WindowNo>,
    },
    /// Count the round robin of a service one on.
    Count {
        /// Which.
        service: Service,
    },
}

/// Answers of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The lease is mine.
    Mine {
        /// Under this term.
        term: Term,
        /// Redis' clock.
        clock: Wall,
    },
    /// The lease is somebody else's.
    Theirs {
        /// Whose.
        holder: NodeId,
        /// Under which term.
        term: Term,
        /// What is left of it.
        left: Duration,
        /// Redis' clock.
        clock: Wall,
    },
    /// The lease was given back.
    Released,
    /// What is stored now for the cuts that were to be stored: mine, or an older one.
    Stored {
        /// The stored cuts.
        cuts: Vec<Cut>,
    },
    /// What is stored for the windows asked for.
    Loaded {
        /// The windows asked for.
        windows: Vec<WindowNo>,
        /// The stored cuts.
        cuts: Vec<Cut>,
    },
    /// The count before this one.
    Counted {
        /// Which.
        service: Service,
        /// 0, 1, 2 …
        count: u64,
    },
    /// The registry can't be reached; the order was perhaps done.
    Unreachable {
        /// The order.
        op: Op,
    },
}
