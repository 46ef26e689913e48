//! Who a member is and how it works: what requests and statuses have in common.

use serde::{Deserialize, Serialize};

use crate::id::{BootId, NodeId, Service};

/// Who asks: an id in one boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Who {
    /// The id.
    pub id: NodeId,
    /// This start of its process.
    pub boot: BootId,
}

/// What a slave tells about one service: counts, not names (R12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The service.
    pub service: Service,
    /// Live orchestrators that will still be here for the next cut.
    pub live: u32,
    /// How many of them can't work now (their store is stuck, their clock is off).
    pub sick: u32,
    /// Due transactions in their ranges, as last polled.
    pub backlog: u64,
    /// Age of the oldest due one.
    pub oldest_due_ms: u64,
}

/// How well an orchestrator works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Since the last poll that succeeded; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled_ms: Option<u64>,
    /// Due transactions in its range, as last polled.
    pub backlog: u64,
    /// Age of the oldest due one.
    pub oldest_due_ms: u64,
    /// Whether it can't work now: its store is stuck or its clock is off.
    pub sick: bool,
}
