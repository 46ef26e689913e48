//! What master and slave tell people and tools.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{
    member::{Health, Load, Who},
    scalar::Time,
    window::{CutWire, GrantWire},
};
use crate::{id::Service, window::Term};

/// A master's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterStatus {
    /// The leader.
    #[serde(flatten)]
    pub who: Who,
    /// Its term.
    pub term: Term,
    /// Leading since.
    pub since: Time,
    /// Why it is degraded (Redis can't be reached …); absent when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// Its clock against Redis, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<i64>,
    /// Length of a window.
    pub window_ms: u64,
    /// Live slaves.
    pub slaves: Vec<MemberStatus>,
    /// The cuts of the current window and the next.
    pub cuts: Vec<ServiceCut>,
    /// Version of the program.
    pub build: String,
}

/// One service's cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceCut {
    /// The cut.
    #[serde(flatten)]
    pub cut: CutWire,
    /// Share of the ring that is frozen, in parts per million.
    pub frozen_ppm: u32,
}

/// A member as its coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Since its last heartbeat.
    pub heard_ms: u64,
    /// Its clock against the coordinator's, in milliseconds.
    pub clock_offset_ms: i64,
    /// A slave's loads, a service each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
    /// An orchestrator's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// An orchestrator's health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Version of the program.
    pub build: String,
}

/// A slave's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlaveStatus {
    /// The slave.
    #[serde(flatten)]
    pub who: Who,
    /// The highest term heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<Term>,
    /// Since the master last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_heard_ms: Option<u64>,
    /// Its live orchestrators.
    pub orchestrators: Vec<MemberStatus>,
    /// Its own grants: the current window and the next.
    pub grants: Vec<GrantWire>,
    /// What it granted out of them.
    pub granted: Vec<GrantWire>,
    /// Version of the program.
    pub build: String,
}
