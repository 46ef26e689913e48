//! An observer's connection: subscribes to `ring.>`, reads what comes, asks for status.
//!
//! It needs no more rights than the users `observer` (listening) and `operator` (status) of
//! `infra/nats`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectOptions, RequestErrorKind, Subscriber};
use futures_util::StreamExt;
use ring_core::{
    id::Scope,
    subject::{Place, Subject},
    wire::{Answer, Event, Publication, Question, decode, encode},
};
use secrecy::ExposeSecret;

use crate::{
    args::{Bus, Seen},
    exit::Exit,
};

/// How long an answer may take: nodes answer in milliseconds, a node that takes longer is ill.
const ANSWER: Duration = Duration::from_secs(2);

/// How long the first connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection that listens.
pub(crate) struct Ear {
    client: Client,
    seen: Seen,
    /// Set when the connection was lost or could not keep up: what was said meanwhile is lost.
    cut_off: Arc<AtomicBool>,
}

/// Something heard.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A window or a probe.
    Published(Subject, Publication),
    /// An event.
    Event(Subject, Event),
    /// A request of others.
    Request(Subject),
    /// Not of the contract, and why.
    Strange(String),
}

impl Ear {
    /// Connects.
    ///
    /// # Errors
    /// Exit 4 when no server can be reached or the user is refused.
    pub(crate) async fn open(seen: &Seen) -> anyhow::Result<Self> {
        let cut_off = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&cut_off);
        let options = options(&seen.bus).await?.event_callback(move |event| {
            use async_nats::Event::{Disconnected, SlowConsumer};
            if matches!(event, Disconnected | SlowConsumer(_)) {
                note.store(true, Ordering::Relaxed);
            }
            async {}
        });
        let servers = ring_shell::bus::server_addresses(seen.bus.nats.expose_secret())
            .map_err(|error| Exit::Usage.because(error.to_string()))?;
        let connect = tokio::time::timeout(CONNECT, options.connect(servers));
        let client = match connect.await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(unreachable(&seen.bus, &error.to_string())),
            Err(_) => return Err(unreachable(&seen.bus, "no answer within 5s")),
        };
        Ok(Self {
            client,
            seen: seen.clone(),
            cut_off,
        })
    }

    /// Hears all of the rings asked for.
    ///
    /// # Errors
    /// When the subscription can't be made.
    pub(crate) async fn listen(&self) -> anyhow::Result<Subscriber> {
        let any = || "*".to_owned();
        let region = self
            .seen
            .region
            .as_ref()
            .map_or_else(any, ToString::to_string);
        let cluster = self
            .seen
            .cluster
            .as_ref()
            .map_or_else(any, ToString::to_string);
        Ok(self
            .client
            .subscribe(format!("ring.{region}.{cluster}.>"))
            .await?)
    }

    /// Asks for a status; `None` when nobody serves it.
    ///
    /// # Errors
    /// Exit 4 when the answer takes too long or makes no sense, exit 5 when it may not be asked.
    pub(crate) async fn status(
        &self,
        scope: &Scope,
        place: Place,
    ) -> anyhow::Result<Option<Answer>> {
        let subject = Subject {
            scope: scope.clone(),
            place,
        }
        .to_string();
        let question = encode(&Question::Status)?;
        let ask = self.client.request(subject.clone(), question.into());
        match tokio::time::timeout(ANSWER, ask).await {
            Ok(Ok(message)) => decode(&message.payload)
                .map(Some)
                .map_err(|e| Exit::NotReachable.because(format!("{subject}: {e}"))),
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Ok(None),
            Ok(Err(error)) => Err(Exit::NotReachable.because(format!("{subject}: {error}"))),
            Err(_) => Err(Exit::NotReachable.because(format!(
                "{subject}: no answer within 2s (may this user ask? see infra/nats/permissions.conf)"
            ))),
        }
    }

    /// Whether the connection was lost at any time.
    pub(crate) fn was_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Whether a service is asked for.
    pub(crate) fn wants(&self, service: &ring_core::id::Service) -> bool {
        self.seen
            .service
            .as_ref()
            .is_none_or(|only| only == service)
    }
}

/// Reads the next message; `None` when the connection is closed.
pub(crate) async fn hear(from: &mut Subscriber) -> Option<Heard> {
    let message = from.next().await?;
    let text = message.subject.as_str();
    let Some(subject) = Subject::parse(text) else {
        return Some(Heard::Strange(format!(
            "{text}: not a subject of the contract"
        )));
    };
    let strange = |error| Heard::Strange(format!("{text}: {error}"));
    Some(match subject.place {
        Place::SlaveWindows(_) | Place::OrchWindows(_) => match decode(&message.payload) {
            Ok(body) => Heard::Published(subject, body),
            Err(error) => strange(error),
        },
        Place::Event(_) => match decode(&message.payload) {
            Ok(event) => Heard::Event(subject, event),
            Err(error) => strange(error),
        },
        Place::Master(_) | Place::Assign | Place::Slave(..) => Heard::Request(subject),
    })
}

async fn options(bus: &Bus) -> anyhow::Result<ConnectOptions> {
    let mut options = ConnectOptions::new().name("ringsaga ring");
    // Inboxes are walled off by user; see infra/nats/permissions.conf.
    let inbox = bus.user.as_deref().unwrap_or("operator");
    options = options.custom_inbox_prefix(format!("_INBOX_{inbox}"));
    if let (Some(user), Some(password)) = (&bus.user, &bus.password) {
        options = options.user_and_password(user.clone(), password.expose_secret().to_owned());
    }
    if let Some(file) = &bus.creds {
        options = options.credentials_file(file).await.map_err(|error| {
            Exit::Usage.because(format!("credentials file {}: {error}", file.display()))
        })?;
    }
    if let Some(ca) = &bus.ca {
        options = options.add_root_certificates(ca.clone());
    }
    Ok(options)
}

fn unreachable(bus: &Bus, why: &str) -> anyhow::Error {
    let nats = bus.nats.expose_secret();
    let place = nats.rsplit('@').next().unwrap_or_default();
    Exit::NotReachable.because(format!(
        "NATS at {place}: {why}; set --nats, --user and --password (or NATS_URL, NATS_USER, NATS_PASSWORD)"
    ))
}
