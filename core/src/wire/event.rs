//! What happened, on `event.<kind>`: for people and tools that subscribe.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::{
    scalar::Time,
    window::{CutWire, short},
};
use crate::{
    id::{BootId, NodeId, SagaName, Service, TransactionId},
    time::Wall,
    token::Range,
    window::{Term, WindowNo},
};

/// A role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Cuts the ring among slaves.
    Master,
    /// Cuts its slice among orchestrators.
    Slave,
    /// Runs sagas.
    Orchestrator,
}

/// Who says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// Its role.
    pub role: Role,
    /// Its id.
    pub id: NodeId,
    /// Its boot.
    pub boot: BootId,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, by the author's clock.
    pub at: Time,
    /// Who says it.
    pub by: Author,
    /// What.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fact {
    /// A service's ring was cut for a window; all seats are listed.
    Cut {
        /// The cut.
        cut: CutWire,
    },
    /// The author leads now.
    Leader {
        /// Its term.
        term: Term,
    },
    /// The author leads no longer.
    SteppedDown {
        /// Its term.
        term: Term,
        /// Why.
        reason: String,
    },
    /// Something that it needs is gone; it goes on.
    Degraded {
        /// What and why.
        reason: String,
    },
    /// It is back.
    Recovered {
        /// What.
        reason: String,
    },
    /// A member joined the author.
    Joined {
        /// Role of the member.
        role: Role,
        /// Its id.
        id: NodeId,
        /// Its boot.
        boot: BootId,
        /// An orchestrator's service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<Service>,
    },
    /// A member left the author or fell silent.
    Left {
        /// Role of the member.
        role: Role,
        /// Its id.
        id: NodeId,
        /// Its boot.
        boot: BootId,
        /// Whether it said so itself.
        graceful: bool,
        /// An orchestrator's service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<Service>,
    },
    /// A vanished slave's seat is kept: a declared gap.
    Frozen {
        /// The service.
        service: Service,
        /// The slave.
        slave: NodeId,
        /// The window.
        window: WindowNo,
        /// The part that nobody looks after.
        range: Range,
    },
    /// The ring is cut without the vanished slave from this window on.
    Thawed {
        /// The service.
        service: Service,
        /// The slave.
        slave: NodeId,
        /// The window.
        window: WindowNo,
    },
    /// The author's id is held by a newer boot; the author stops.
    Superseded,
    /// Two grants for one window overlap: must not happen while Redis keeps its data.
    Overlap {
        /// The service.
        service: Service,
        /// The window.
        window: WindowNo,
        /// The part granted twice.
        range: Range,
    },
    /// A transaction outlived its lifetime.
    TxDisabled(Tx),
    /// A transaction's compensation failed for good: a person is needed.
    TxTerminated(Tx),
    /// A transaction killed its processes too often: a person is needed.
    TxQuarantined(Tx),
    /// A person restored a transaction.
    TxRestored(Tx),
    /// A step that can't be undone, or not be repeated while in doubt, failed: a person is needed.
    IrreversibleFailed(Tx),
    /// A compensation has stood at one step for too long; it is still retried.
    CompensationFailing(Tx),
    /// Transactions wait for code that no live process has.
    ExecutorMissing {
        /// The service.
        service: Service,
        /// The saga.
        saga: SagaName,
        /// Its version.
        version: u32,
        /// How many wait.
        transactions: u64,
        /// When the first one's lifetime ends.
        first_expires_at: Time,
    },
    /// Transactions wait and no retry node of the service lives.
    RetryNodeMissing {
        /// The service.
        service: Service,
        /// How many wait.
        transactions: u64,
    },
    /// A downstream fails for every caller of the author: its transactions wait for it.
    TargetDown {
        /// The target's name.
        target: String,
    },
    /// It works again.
    TargetUp {
        /// The target's name.
        target: String,
    },
}

/// A transaction in an event; no payload ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tx {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its service.
    pub service: Service,
    /// Its saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// In a sentence.
    pub reason: String,
}

impl Fact {
    /// The last token of the event's subject.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Leader { .. } => "leader",
            Self::SteppedDown { .. } => "stepped-down",
            Self::Degraded { .. } => "degraded",
            Self::Recovered { .. } => "recovered",
            Self::Joined { .. } => "joined",
            Self::Left { .. } => "left",
            Self::Frozen { .. } => "frozen",
            Self::Thawed { .. } => "thawed",
            Self::Superseded => "superseded",
            Self::Overlap { .. } => "overlap",
            Self::TxDisabled(_) => "tx-disabled",
            Self::TxTerminated(_) => "tx-terminated",
            Self::TxQuarantined(_) => "tx-quarantined",
            Self::TxRestored(_) => "tx-restored",
            Self::IrreversibleFailed(_) => "irreversible-failed",
            Self::CompensationFailing(_) => "compensation-failing",
            Self::ExecutorMissing { .. } => "executor-missing",
            Self::RetryNodeMissing { .. } => "retry-node-missing",
            Self::TargetDown { .. } => "target-down",
            Self::TargetUp { .. } => "target-up",
        }
    }
}

impl Event {
    /// An event now.
    #[must_use]
    pub fn new(at: Wall, by: Author, fact: Fact) -> Self {
        Self {
            at: Time(at),
            by,
            fact,
        }
    }
}

impl Tx {
    /// A transaction with a reason, cut to 500 characters.
    #[must_use]
    pub fn new(
        transaction: TransactionId,
        service: Service,
        saga: SagaName,
        version: u32,
        reason: &str,
    ) -> Self {
        Self {
            transaction,
            service,
            saga,
            version,
            reason: short(reason),
        }
    }
}
