//! Requests to a coordinator and their answers. Master and slave speak the same four verbs with
//! their members; who asks tells which heartbeat is meant.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{
    member::{Health, Load, Who},
    scalar::Time,
    status::{MasterStatus, SlaveStatus},
    window::GrantWire,
};
use crate::{
    id::{NodeId, Nonce, Service},
    window::{Term, WindowNo},
};

/// What a coordinator is asked. Every handler is idempotent: a request that timed out was perhaps
/// done and may be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Question {
    /// First phase of joining; a probe follows on the member's own subject.
    Register(Register),
    /// Second phase.
    Confirm(Confirm),
    /// A slave's heartbeat to the master.
    SlaveBeat(SlaveBeat),
    /// An orchestrator's heartbeat to its slave.
    OrchestratorBeat(OrchestratorBeat),
    /// The member goes.
    Leave(Leave),
    /// Send the current grants again.
    Window(Who),
    /// An orchestrator asks the master for a slave.
    Assign(Assign),
    /// Tell what you know.
    Status,
}

/// First phase of joining.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Who joins.
    #[serde(flatten)]
    pub who: Who,
    /// The service of an orchestrator; a slave has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Version of the program, for people.
    pub build: String,
}

/// Second phase: the probe's nonce was heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirm {
    /// Who joins.
    #[serde(flatten)]
    pub who: Who,
    /// From the probe.
    pub nonce: Nonce,
}

/// A slave's heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlaveBeat {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Its clock when it sent this, to measure the offset.
    pub sent_at: Time,
    /// The highest term it has heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<Term>,
    /// Its services.
    pub loads: Vec<Load>,
    /// For which windows it holds a grant, so that a new leader cuts none of them twice.
    pub granted: Vec<(Service, WindowNo)>,
    /// Whether its orchestrators find its clock off, too.
    #[serde(default)]
    pub clock_off: bool,
}

/// An orchestrator's heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrchestratorBeat {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Its service.
    pub service: Service,
    /// Its clock when it sent this.
    pub sent_at: Time,
    /// How well it works.
    pub health: Health,
}

/// The member goes, at once or after a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// The last window that it will still serve; absent: it is gone now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<WindowNo>,
}

/// An orchestrator asks for a slave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// Its service.
    pub service: Service,
    /// Slaves that it could not use, or comes from.
    #[serde(default)]
    pub exclude: Vec<NodeId>,
}

/// "Give up `count` orchestrators of this service": how balance is restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The service.
    pub service: Service,
    /// How many should move.
    pub count: u32,
}

/// Why a coordinator refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It does not lead (any more).
    NotLeader,
    /// It does not know this boot: register.
    Unregistered,
    /// A live holder has this id: wait, or give one of the two another id.
    TwinAlive,
    /// A newer boot has this id: stop.
    Superseded,
    /// There is no slave to assign.
    NoSlave,
    /// It is shutting down.
    Draining,
    /// Too many at once.
    Busy,
    /// The question makes no sense here.
    BadRequest,
}

/// A coordinator's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Answer {
    /// Accepted so far: confirm the probe that comes on your own subject.
    Registered {
        /// The coordinator.
        #[serde(flatten)]
        by: Who,
        /// The leader's term, from a master.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        term: Option<Term>,
    },
    /// You are a member.
    Confirmed {
        /// The coordinator.
        #[serde(flatten)]
        by: Who,
        /// The newest grants for this boot, if any.
        grants: Vec<GrantWire>,
    },
    /// Heartbeat heard.
    Heard {
        /// The coordinator.
        #[serde(flatten)]
        by: Who,
        /// The leader's term, from a master.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        term: Option<Term>,
        /// The coordinator's clock.
        now: Time,
        /// The newest grants for this boot: the current window and the next.
        grants: Vec<GrantWire>,
        /// From a master: how many to give up.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hints: Vec<Hint>,
        /// From a slave: you move; ask the master for another one.
        #[serde(default)]
        moves: bool,
    },
    /// The grants asked for.
    Grants {
        /// The newest grants for this boot.
        grants: Vec<GrantWire>,
    },
    /// You are out.
    Left,
    /// Register with this slave.
    Assigned {
        /// The slave.
        slave: NodeId,
        /// The leader's term.
        term: Term,
    },
    /// A master's status.
    Master(MasterStatus),
    /// A slave's status.
    Slave(SlaveStatus),
    /// No, and why.
    Refused {
        /// Why.
        reason: Refusal,
        /// When to ask again.
        retry_after_ms: u64,
    },
}
