//! Messages become facts here, or are counted and dropped.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_nats::{
    Message, Subscriber,
    service::{NATS_SERVICE_ERROR, Request, endpoint::Endpoint},
};
use futures_util::{StreamExt as _, stream};
use ring_core::{
    bus::{ReplyTo, Told},
    id::Scope,
    subject::{Place, Subject, Topic},
    wire::{self, WireError},
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    clock,
    telemetry::{MESSAGES_DROPPED, MESSAGES_RECEIVED, Meter},
};

/// Requests without an answer yet. A machine answers at once; more than this were forgotten, and
/// the oldest askers have given up long ago.
const WAITING: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Incoming {
    scope: Scope,
    told: mpsc::Sender<Told>,
    waiting: Arc<Mutex<Waiting>>,
    pub(super) meter: Meter,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    requests: BTreeMap<ReplyTo, Request>,
}

impl Incoming {
    pub(super) fn new(scope: Scope, told: mpsc::Sender<Told>, meter: Meter) -> Self {
        Self {
            scope,
            told,
            waiting: Arc::default(),
            meter,
        }
    }

    /// Reads a subscription until it is ignored.
    pub(super) async fn listen(
        self,
        topic: Topic,
        mut messages: Subscriber,
        stop: CancellationToken,
    ) {
        while let Some(Some(message)) = stop.run_until_cancelled(messages.next()).await {
            if let Some(told) = self.heard(&topic, &message) {
                self.offer(told);
            }
        }
    }

    /// Reads endpoints until they are withdrawn.
    pub(super) async fn serve(self, endpoints: Vec<(Place, Endpoint)>) {
        let requests = endpoints
            .into_iter()
            .map(|(place, endpoint)| endpoint.map(move |request| (place.clone(), request)));
        let mut requests = stream::select_all(requests);
        while let Some((place, request)) = requests.next().await {
            self.asked(place, request).await;
        }
    }

    /// The request behind a [`ReplyTo`], once.
    pub(super) fn waiting(&self, to: ReplyTo) -> Option<Request> {
        self.lock().requests.remove(&to)
    }

    /// Tells what must not be lost.
    pub(super) async fn tell(&self, told: Told) {
        self.received(&told);
        // Nobody listens any more: the role has ended.
        drop(self.told.send(told).await);
    }

    pub(super) fn decode<T: DeserializeOwned>(&self, message: &Message) -> Option<T> {
        match wire::decode(&message.payload) {
            Ok(body) => Some(body),
            Err(error) => {
                let subject = message.subject.as_str();
                tracing::debug!(%error, subject, bytes = message.payload.len(), "dropped");
                self.dropped(match error {
                    WireError::TooLarge(_) => "oversized",
                    WireError::Version(_) => "version",
                    WireError::Shape(_) => "garbled",
                });
                None
            }
        }
    }

    fn heard(&self, topic: &Topic, message: &Message) -> Option<Told> {
        let subject = Subject::parse(&message.subject)
            .filter(|subject| subject.scope == self.scope && topic.hears(&subject.place));
        let Some(Subject { place, .. }) = subject else {
            self.dropped("subject");
            return None;
        };
        match place {
            Place::SlaveWindows(_) | Place::OrchWindows(_) => {
                let body = self.decode(message)?;
                Some(Told::Published { place, body })
            }
            Place::Event(_) => self.decode(message).map(Told::Event),
            Place::Master(_) | Place::Assign => {
                let question = self.decode(message)?;
                Some(Told::Overheard { place, question })
            }
            Place::Slave(..) => {
                self.dropped("subject");
                None
            }
        }
    }

    async fn asked(&self, place: Place, request: Request) {
        let Some(question) = self.decode(&request.message) else {
            // Told to the asker, whoever it is, in the words of NATS services.
            let refusal = refused(400, "not a question of the contract");
            if request.respond(Err(refusal)).await.is_err() {
                self.dropped("unsent");
            }
            return;
        };
        let to = self.keep(request);
        let chance = clock::nonce();
        let asked = Told::Asked {
            to,
            place,
            question,
            chance,
        };
        if !self.offer(asked) {
            drop(self.waiting(to));
        }
    }

    fn keep(&self, request: Request) -> ReplyTo {
        let mut waiting = self.lock();
        waiting.last += 1;
        let to = ReplyTo(waiting.last);
        waiting.requests.insert(to, request);
        if waiting.requests.len() > WAITING {
            drop(waiting.requests.pop_first());
            self.dropped("full");
        }
        to
    }

    // Windows and requests come again, so a full queue drops them rather than hold up the reader.
    fn offer(&self, told: Told) -> bool {
        self.received(&told);
        let taken = self.told.try_send(told).is_ok();
        if !taken {
            self.dropped("full");
        }
        taken
    }

    fn received(&self, told: &Told) {
        let kind = match told {
            Told::Published { .. } => "published",
            Told::Event(_) => "event",
            Told::Asked { .. } => "asked",
            Told::Overheard { .. } => "overheard",
            Told::Answered { .. } => "answered",
            Told::Connected | Told::Disconnected => return,
        };
        self.meter.count_as(MESSAGES_RECEIVED, "kind", kind);
    }

    fn dropped(&self, reason: &'static str) {
        self.meter.count_as(MESSAGES_DROPPED, "reason", reason);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A map and a counter are whole after any panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error answer in the words of NATS services.
pub(super) fn refused(code: usize, status: &str) -> async_nats::service::error::Error {
    async_nats::service::error::Error {
        status: status.to_owned(),
        code,
    }
}

/// Whether an answer is an error of the service's, which has no body.
pub(super) fn is_refusal(message: &Message) -> bool {
    message
        .headers
        .as_ref()
        .is_some_and(|headers| headers.get(NATS_SERVICE_ERROR).is_some())
}
