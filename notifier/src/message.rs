//! What a hook is told of an alert: the words that all kinds of hooks share.

use orchestrator_lib::store::{Alert, AlertKind};
use ring_core::{id::Scope, time::Wall};
use serde::Serialize;
use uuid::Uuid;

/// The kind of a message that a person sends to see whether a hook works.
const TEST: &str = "test";

/// An alert as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Message {
    /// The same at every attempt.
    pub(crate) id: Uuid,
    pub(crate) kind: &'static str,
    /// RFC 3339, UTC.
    pub(crate) at: String,
    pub(crate) region: String,
    pub(crate) cluster: String,
    pub(crate) service: Option<String>,
    /// The transaction's id.
    pub(crate) tx: Option<String>,
    pub(crate) saga: Option<String>,
    pub(crate) version: Option<u32>,
    pub(crate) step: Option<String>,
    pub(crate) text: String,
    /// Where a person looks at it.
    pub(crate) link: Option<String>,
}

impl Message {
    pub(crate) fn new(alert: &Alert, link: Option<&str>) -> Self {
        let tx = alert.transaction.map(|id| id.to_string());
        let link = link.zip(tx.as_deref());
        Self {
            id: alert.id,
            kind: alert.kind.as_str(),
            at: alert.at.rfc3339(),
            region: alert.region.clone(),
            cluster: alert.cluster.clone(),
            service: Some(alert.service.clone()),
            link: link.map(|(template, tx)| template.replace("{tx}", tx)),
            tx,
            saga: alert.saga.clone(),
            version: alert.version,
            step: alert.step.clone(),
            text: alert.text.clone(),
        }
    }

    /// A test, of an id that no alert has.
    pub(crate) fn test(id: Uuid, at: Wall, scope: &Scope) -> Self {
        Self {
            id,
            kind: TEST,
            at: at.rfc3339(),
            region: scope.region.to_string(),
            cluster: scope.cluster.to_string(),
            service: None,
            tx: None,
            saga: None,
            version: None,
            step: None,
            text: "a test: alerts of this cluster arrive here".to_owned(),
            link: None,
        }
    }

    /// How urgent it is: whether a person must act.
    pub(crate) fn urgency(&self) -> Urgency {
        match AlertKind::parse(self.kind) {
            Some(AlertKind::Restored) | None => Urgency::News,
            Some(_) => Urgency::Act,
        }
    }
}

/// How urgent a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Good to know.
    News,
    /// A person must act.
    Act,
}
