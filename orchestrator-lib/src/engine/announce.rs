//! Events about transactions on the bus: for people and tools that subscribe.
//!
//! At most once, fire and forget: an event that is lost is found in the store. Knows no reason.

use async_nats::Client;
use ring_core::{
    id::{BootId, NodeId, Scope},
    subject::{Place, Subject},
    wire::{self, Author, Event, Fact, Role, Time},
};
use ring_shell::clock;

/// Publishes events of this node, when it has a bus.
#[derive(Clone, Debug)]
pub(super) struct Announcer {
    client: Option<Client>,
    scope: Scope,
    by: Author,
}

impl Announcer {
    pub(super) fn new(scope: Scope, id: NodeId, boot: BootId, client: Option<Client>) -> Self {
        let role = Role::Orchestrator;
        Self {
            client,
            scope,
            by: Author { role, id, boot },
        }
    }

    pub(super) async fn tell(&self, fact: Fact) {
        let Some(client) = &self.client else { return };
        let place = Place::Event(fact.kind());
        let scope = self.scope.clone();
        let subject = Subject { scope, place }.to_string();
        let event = Event {
            at: Time(clock::now().wall),
            by: self.by.clone(),
            fact,
        };
        let sent = match wire::encode(&event) {
            Ok(bytes) => client.publish(subject, bytes.into()).await.err(),
            Err(error) => {
                tracing::warn!(%error, "an event can't be written");
                None
            }
        };
        if let Some(error) = sent {
            tracing::debug!(%error, "an event was not sent");
        }
    }
}
