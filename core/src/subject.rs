//! The only place where a subject is written or read.
//!
//! The names are a contract for people who only subscribe; `subjects.md` says the same in prose
//! and a test keeps the two equal. Requests sit one level below windows, so that
//! `ring.*.*.slave.*` matches windows only.

use alloc::string::String;
use core::fmt;

use crate::id::{Cluster, NodeId, Region, Scope};

/// What a coordinator (master or slave) is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// First phase of joining.
    Register,
    /// Second phase: the probe was heard.
    Confirm,
    /// I am alive; answered with the newest grants.
    Heartbeat,
    /// I go.
    Leave,
    /// Send me the current grants again.
    Window,
    /// Tell what you know (for people and tools).
    Status,
}

/// A subject of the ring.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// `slave.<id>`: a slave's windows and probes.
    SlaveWindows(NodeId),
    /// `orch.<id>`: an orchestrator's windows and probes.
    OrchWindows(NodeId),
    /// `master.slave.<verb>`, or `master.status`.
    Master(Verb),
    /// `master.orch.assign`: which slave shall I register with?
    Assign,
    /// `slave.<id>.<verb>`.
    Slave(NodeId, Verb),
    /// `event.<kind>`.
    Event(&'static str),
}

/// A whole subject: `ring.<region>.<cluster>.<place>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Region and cluster.
    pub scope: Scope,
    /// The rest.
    pub place: Place,
}

/// A subscription without queue group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// `master.>`: what a standby overhears.
    MasterRequests,
    /// `slave.*`: every slave's windows.
    AllSlaveWindows,
    /// `event.>`.
    Events,
    /// `slave.<id>`.
    SlaveWindows(NodeId),
    /// `orch.<id>`.
    OrchWindows(NodeId),
}

/// A set of request endpoints, served as a NATS micro service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoints {
    /// `master.slave.*`, `master.orch.assign`, `master.status`: the leader only.
    Master,
    /// `slave.<id>.*`: the accepted holder of the id only.
    Slave(NodeId),
}

/// Every kind of event, the last token of its subject.
pub const EVENT_KINDS: [&str; 21] = [
    "cut",
    "leader",
    "stepped-down",
    "degraded",
    "recovered",
    "joined",
    "left",
    "frozen",
    "thawed",
    "superseded",
    "overlap",
    "tx-disabled",
    "tx-terminated",
    "tx-quarantined",
    "tx-restored",
    "irreversible-failed",
    "compensation-failing",
    "executor-missing",
    "retry-node-missing",
    "target-down",
    "target-up",
];

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 6] = [
        Self::Register,
        Self::Confirm,
        Self::Heartbeat,
        Self::Leave,
        Self::Window,
        Self::Status,
    ];

    /// The last token of the subject.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Confirm => "confirm",
            Self::Heartbeat => "heartbeat",
            Self::Leave => "leave",
            Self::Window => "window",
            Self::Status => "status",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }
}

impl Subject {
    /// Reads a subject; `None` when it is not of the ring's contract.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut tokens = text.split('.');
        if tokens.next() != Some("ring") {
            return None;
        }
        let region = Region::new(tokens.next()?).ok()?;
        let cluster = Cluster::new(tokens.next()?).ok()?;
        let scope = Scope { region, cluster };
        let rest = [tokens.next(), tokens.next(), tokens.next(), tokens.next()];
        let place = match rest {
            [Some("master"), Some("status"), None, None] => Place::Master(Verb::Status),
            [Some("master"), Some("slave"), Some(verb), None] => {
                Place::Master(Verb::parse(verb).filter(|v| *v != Verb::Status)?)
            }
            [Some("master"), Some("orch"), Some("assign"), None] => Place::Assign,
            [Some("slave"), Some(id), None, None] => Place::SlaveWindows(NodeId::new(id).ok()?),
            [Some("slave"), Some(id), Some(verb), None] => {
                Place::Slave(NodeId::new(id).ok()?, Verb::parse(verb)?)
            }
            [Some("orch"), Some(id), None, None] => Place::OrchWindows(NodeId::new(id).ok()?),
            [Some("event"), Some(kind), None, None] => {
                Place::Event(EVENT_KINDS.into_iter().find(|k| *k == kind)?)
            }
            _ => return None,
        };
        Some(Self { scope, place })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ring.{}.", self.scope)?;
        match &self.place {
            Place::SlaveWindows(id) => write!(f, "slave.{id}"),
            Place::OrchWindows(id) => write!(f, "orch.{id}"),
            Place::Master(Verb::Status) => f.write_str("master.status"),
            Place::Master(verb) => write!(f, "master.slave.{}", verb.as_str()),
            Place::Assign => f.write_str("master.orch.assign"),
            Place::Slave(id, verb) => write!(f, "slave.{id}.{}", verb.as_str()),
            Place::Event(kind) => write!(f, "event.{kind}"),
        }
    }
}

impl Topic {
    /// The subscription's subject, wildcards included.
    #[must_use]
    pub fn pattern(&self, scope: &Scope) -> String {
        match self {
            Self::MasterRequests => alloc::format!("ring.{scope}.master.>"),
            Self::AllSlaveWindows => alloc::format!("ring.{scope}.slave.*"),
            Self::Events => alloc::format!("ring.{scope}.event.>"),
            Self::SlaveWindows(id) => alloc::format!("ring.{scope}.slave.{id}"),
            Self::OrchWindows(id) => alloc::format!("ring.{scope}.orch.{id}"),
        }
    }

    /// Whether a message published there reaches this subscription.
    #[must_use]
    pub fn hears(&self, place: &Place) -> bool {
        match (self, place) {
            (Self::MasterRequests, Place::Master(_) | Place::Assign)
            | (Self::AllSlaveWindows, Place::SlaveWindows(_))
            | (Self::Events, Place::Event(_)) => true,
            (Self::SlaveWindows(mine), Place::SlaveWindows(id))
            | (Self::OrchWindows(mine), Place::OrchWindows(id)) => mine == id,
            _ => false,
        }
    }
}

impl Endpoints {
    /// The places served, each a subject of its own.
    #[must_use]
    pub fn places(&self) -> alloc::vec::Vec<Place> {
        let verbs = Verb::ALL.into_iter();
        match self {
            Self::Master => verbs.map(Place::Master).chain([Place::Assign]).collect(),
            Self::Slave(id) => verbs.map(|verb| Place::Slave(id.clone(), verb)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString, vec::Vec};

    use super::*;

    fn places() -> Vec<Place> {
        let id = NodeId::new("s-1").unwrap();
        let mut all = Endpoints::Master.places();
        all.extend(Endpoints::Slave(id.clone()).places());
        all.extend([Place::SlaveWindows(id.clone()), Place::OrchWindows(id)]);
        all.extend(EVENT_KINDS.map(Place::Event));
        all
    }

    #[test]
    fn every_subject_reads_back_from_its_text() {
        let scope = Scope {
            region: Region::new("eu-1").unwrap(),
            cluster: Cluster::new("c1").unwrap(),
        };
        for place in places() {
            let subject = Subject {
                scope: scope.clone(),
                place,
            };
            assert_eq!(
                Subject::parse(&subject.to_string()),
                Some(subject.clone()),
                "{subject}"
            );
        }
    }

    #[test]
    fn strange_subjects_are_not_of_the_contract() {
        for text in [
            "",
            "ring",
            "ring.a.b",
            "ring.a.b.slave",
            "ring.a.b.slave.*",
            "ring.a.b.slave.x.y",
            "ring.a.b.slave.x.status.z",
            "ring.A.b.slave.x",
            "ring.a.b.event.unheard-of",
            "ring..b.slave.x",
            "ring.a.b.master.slave.status",
            "other.a.b.slave.x",
        ] {
            assert_eq!(Subject::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_topic_hears_exactly_what_its_pattern_matches() {
        let scope = Scope {
            region: Region::new("eu-1").unwrap(),
            cluster: Cluster::new("c1").unwrap(),
        };
        let id = NodeId::new("s-1").unwrap();
        for topic in [
            Topic::MasterRequests,
            Topic::AllSlaveWindows,
            Topic::Events,
            Topic::SlaveWindows(id.clone()),
            Topic::OrchWindows(id),
        ] {
            let pattern = topic.pattern(&scope);
            for place in places() {
                let subject = format!(
                    "{}",
                    Subject {
                        scope: scope.clone(),
                        place: place.clone()
                    }
                );
                assert_eq!(
                    matches(&pattern, &subject),
                    topic.hears(&place),
                    "{pattern} {subject}"
                );
            }
        }
    }

    fn matches(pattern: &str, subject: &str) -> bool {
        let (mut p, mut s) = (pattern.split('.'), subject.split('.'));
        loop {
            match (p.next(), s.next()) {
                (Some(">"), Some(_)) | (None, None) => return true,
                (Some(a), Some(b)) if a == "*" || a == b => {}
                _ => return false,
            }
        }
    }
}
