//! `bus::Op` over NATS: one match.
//!
//! Decides how bytes become words and back, what is dropped (bad bytes, and what would be
//! published while the connection is down: a window delivered late is what must not happen), and
//! when a server can't be used. Knows no Redis, no Postgres, and nothing of what messages mean.

mod ask;
mod incoming;
mod link;
mod options;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_nats::{Client, service::Service, service::ServiceExt as _};
use bytes::Bytes;
use ring_core::{
    bus::{AskId, Op, ReplyTo, Told},
    id::Scope,
    subject::{Endpoints, Place, Subject, Topic},
    wire::{self, Answer, Question, Role},
};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "config")]
pub(crate) use self::options::shown;
pub use self::options::{Credentials, Options, OptionsError, server_addresses};
use self::{incoming::Incoming, link::Link};
use crate::{
    tasks::Spawner,
    telemetry::{MESSAGES_DROPPED, MESSAGES_PUBLISHED, Meter, role_name},
};

/// Facts waiting for the machine. It takes microseconds each, so a thousand is a long stall;
/// beyond it windows and requests are dropped and counted, heartbeats and repeats heal that.
const TOLD_CAPACITY: usize = 1024;

/// Requests under way at once: a machine has a handful.
const ASKS: usize = 256;

/// How long leaving waits for the last bytes, and again for the server's goodbye.
const CLOSING: Duration = Duration::from_secs(1);

/// One connection to NATS, for one machine.
#[derive(Debug)]
pub struct Bus {
    client: Client,
    options: Arc<Options>,
    link: Link,
    incoming: Incoming,
    listening: BTreeMap<Topic, CancellationToken>,
    serving: BTreeMap<Endpoints, Service>,
    asks: Arc<Semaphore>,
    tasks: Spawner,
    meter: Meter,
}

impl Bus {
    /// Begins to connect and returns at once: servers may come later, `Told::Connected` says when.
    ///
    /// # Errors
    /// [`OptionsError`] when credentials can't be read.
    pub async fn connect(
        options: Options,
        tasks: Spawner,
        meter: Meter,
    ) -> Result<(Self, mpsc::Receiver<Told>), OptionsError> {
        let (told, facts) = mpsc::channel(TOLD_CAPACITY);
        let link = Link::new(meter.clone());
        options.print();
        let client = options.open(&link).await?;
        link.watch(&tasks, client.clone(), told.clone());
        let bus = Self {
            client,
            incoming: Incoming::new(options.scope.clone(), told, meter.clone()),
            options: Arc::new(options),
            link,
            listening: BTreeMap::new(),
            serving: BTreeMap::new(),
            asks: Arc::new(Semaphore::new(ASKS)),
            tasks,
            meter,
        };
        Ok((bus, facts))
    }

    /// Performs an order. Waits only for room in the client's queue, which it does not use while
    /// the connection is down.
    pub async fn perform(&mut self, op: Op) {
        match op {
            Op::Publish { place, body } => self.publish(place, &body).await,
            Op::Tell(event) => {
                let place = Place::Event(event.fact.kind());
                self.publish(place, &event).await;
            }
            Op::Ask {
                ask,
                place,
                question,
                within,
            } => self.ask(ask, place, question, within),
            Op::Answer { to, answer } => self.answer(to, &answer).await,
            Op::Listen(topic) => self.listen(topic).await,
            Op::Ignore(topic) => {
                if let Some(stop) = self.listening.remove(&topic) {
                    stop.cancel();
                }
            }
            Op::Serve(endpoints) => self.serve(endpoints).await,
            Op::Withdraw(endpoints) => self.withdraw(&endpoints).await,
            Op::Reconnect => self.leave_server().await,
        }
    }

    /// Why this connection can never be used, if so: the role must end with it.
    #[must_use]
    pub fn unusable(&self) -> Option<String> {
        self.link.unusable()
    }

    /// Whether NATS is connected now.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link.is_up()
    }

    /// The client, for what is not the ring's (the caller's own subjects, tools).
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The scope of all places.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.options.scope
    }

    /// The last step of leaving: withdraws everything, sends what is buffered, says goodbye.
    pub async fn close(mut self) {
        self.link.closing();
        for stop in self.listening.values() {
            stop.cancel();
        }
        for endpoints in self.serving.keys().cloned().collect::<Vec<_>>() {
            self.withdraw(&endpoints).await;
        }
        if !self.link.is_up() {
            return;
        }
        // Unanswered is as good as done: the process ends, and what it said last is repeated by
        // its peers' time limits.
        let flushed = tokio::time::timeout(CLOSING, self.client.flush()).await;
        let closed = tokio::time::timeout(CLOSING, async {
            if self.client.drain().await.is_ok() {
                self.link.closed().await;
            }
        })
        .await;
        tracing::debug!(
            flushed = flushed.is_ok(),
            closed = closed.is_ok(),
            "bus closed"
        );
    }

    async fn leave_server(&self) {
        if !self.link.is_worn() {
            return;
        }
        tracing::warn!("no answers on this NATS connection: leaving it for another server");
        if self.client.force_reconnect().await.is_err() {
            tracing::warn!("the NATS connection is closed");
        }
    }

    async fn publish<T: Serialize>(&self, place: Place, body: &T) {
        if !self.link.is_up() {
            self.dropped("disconnected");
            return;
        }
        let subject = self.subject(place);
        let Some(bytes) = self.encode(&subject, body) else {
            return;
        };
        if self.client.publish(subject, bytes).await.is_ok() {
            self.meter.count(MESSAGES_PUBLISHED);
        } else {
            self.dropped("unsent");
        }
    }

    fn ask(&self, ask: AskId, place: Place, question: Question, within: Duration) {
        let question = self.encode(&self.subject(place.clone()), &question);
        self.tasks.spawn(ask::ask(
            ask::Ask {
                id: ask,
                subject: self.subject(place),
                question,
                within,
            },
            self.client.clone(),
            self.link.clone(),
            self.asks.clone(),
            self.incoming.clone(),
        ));
    }

    async fn answer(&self, to: ReplyTo, answer: &Answer) {
        let Some(request) = self.incoming.waiting(to) else {
            return;
        };
        if !self.link.is_up() {
            self.dropped("disconnected");
            return;
        }
        let body = self
            .encode(&request.message.subject, answer)
            .ok_or_else(|| incoming::refused(500, "the answer is too large"));
        if request.respond(body).await.is_err() {
            self.dropped("unsent");
        }
    }

    async fn listen(&mut self, topic: Topic) {
        if self.listening.contains_key(&topic) {
            return;
        }
        match self.client.subscribe(topic.pattern(self.scope())).await {
            Ok(messages) => {
                let stop = CancellationToken::new();
                let reading = self
                    .incoming
                    .clone()
                    .listen(topic.clone(), messages, stop.clone());
                self.tasks.spawn(reading);
                self.listening.insert(topic, stop);
            }
            Err(error) => tracing::error!(%error, ?topic, "can't subscribe"),
        }
    }

    async fn serve(&mut self, endpoints: Endpoints) {
        if self.serving.contains_key(&endpoints) {
            return;
        }
        match self.add_service(&endpoints).await {
            Ok((service, requests)) => {
                self.tasks.spawn(self.incoming.clone().serve(requests));
                self.serving.insert(endpoints, service);
            }
            Err(error) => tracing::error!(%error, ?endpoints, "can't serve"),
        }
    }

    async fn add_service(
        &self,
        endpoints: &Endpoints,
    ) -> Result<
        (
            Service,
            Vec<(Place, async_nats::service::endpoint::Endpoint)>,
        ),
        async_nats::Error,
    > {
        let options = &self.options;
        let role = role_name(options.role);
        let metadata = HashMap::from([
            ("region".to_owned(), options.scope.region.to_string()),
            ("cluster".to_owned(), options.scope.cluster.to_string()),
            ("role".to_owned(), role.to_owned()),
            ("id".to_owned(), options.id.to_string()),
            ("boot".to_owned(), options.boot.to_string()),
            ("build".to_owned(), options.build.clone()),
        ]);
        let service = self
            .client
            .service_builder()
            .metadata(metadata)
            .start(format!("ring-{role}"), crate::BUILD)
            .await?;
        let mut requests = Vec::new();
        for place in endpoints.places() {
            let subject = self.subject(place.clone());
            let name = endpoint_name(&place);
            let endpoint = service.endpoint_builder().name(name).add(subject).await?;
            requests.push((place, endpoint));
        }
        Ok((service, requests))
    }

    async fn withdraw(&mut self, endpoints: &Endpoints) {
        // The endpoints' stream unsubscribes and ends by itself; dropping the service would leave
        // its answers to `$SRV` on.
        if let Some(service) = self.serving.remove(endpoints)
            && let Err(error) = service.stop().await
        {
            tracing::warn!(%error, ?endpoints, "can't stop serving");
        }
    }

    fn subject(&self, place: Place) -> String {
        let scope = self.options.scope.clone();
        Subject { scope, place }.to_string()
    }

    fn encode<T: Serialize>(&self, subject: &str, body: &T) -> Option<Bytes> {
        match wire::encode(body) {
            Ok(bytes) => Some(bytes.into()),
            Err(error) => {
                tracing::error!(%error, subject, "own message dropped");
                self.dropped("oversized");
                None
            }
        }
    }

    fn dropped(&self, reason: &'static str) {
        self.meter.count_as(MESSAGES_DROPPED, "reason", reason);
    }
}

fn endpoint_name(place: &Place) -> &'static str {
    match place {
        Place::Master(verb) | Place::Slave(_, verb) => verb.as_str(),
        Place::Assign => "assign",
        Place::SlaveWindows(_) | Place::OrchWindows(_) | Place::Event(_) => "none",
    }
}

/// The user's name and the inbox prefix that the permissions of `infra/nats` give to a role.
#[must_use]
pub fn inbox_prefix(role: Role) -> String {
    format!("_INBOX_{}", role_name(role))
}
