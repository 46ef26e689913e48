//! The loops: new alerts are spread to hooks, and each hook takes what is due, sends it and says
//! what became of it. Between "sent" and "said" a process may die: then the same alert, with the
//! same id, is sent again when its lease ends.

use std::{sync::Arc, time::Duration};

use orchestrator_lib::store::{self, AlertKind, Alerts, Failed};
use reqwest::Client;
use ring_core::chance;
use ring_shell::clock;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    hook::{Hook, LAST_PAUSE},
    http,
    message::Message,
    telemetry,
};

/// Pause between two looks for something new: people react in minutes.
const POLL: Duration = Duration::from_secs(1);

/// Pause after the store did not answer.
const STORE_AWAY: Duration = Duration::from_secs(5);

/// How long an attempt keeps others away: the call's 10 s, the store's 5 s, and room.
const LEASE: Duration = Duration::from_secs(30);

/// Why a notifier ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client for HTTP can't be made.
    #[error("HTTP can't be set up: {0}")]
    Http(String),
    /// Two hooks have one name: their deliveries would be one.
    #[error("two hooks are named {0:?}")]
    Twice(String),
    /// One of its tasks panicked.
    #[error("a task of the notifier broke")]
    Broken(#[source] JoinError),
    /// A message was not taken.
    #[error("{0}")]
    Refused(String),
}

/// A notifier that does not run yet.
#[derive(Debug)]
pub struct Notifier {
    desk: Arc<Desk>,
    hooks: Vec<Hook>,
    health: watch::Receiver<Option<String>>,
}

#[derive(Debug)]
struct Desk {
    alerts: Alerts,
    http: Client,
    health: watch::Sender<Option<String>>,
}

/// Delivers until `shutdown`; attempts under way are ended first.
///
/// # Errors
/// [`enum@Error`] when it can't begin, or broke.
pub async fn run(
    alerts: Alerts,
    hooks: Vec<Hook>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    Notifier::new(alerts, hooks)?.run(shutdown).await
}

/// Sends a test to one hook, now and once, past the outbox.
///
/// # Errors
/// [`Error::Refused`] with what the receiver said.
pub async fn send_test(hook: &Hook, scope: &ring_core::id::Scope) -> Result<(), Error> {
    let now = clock::now().wall;
    let message = Message::test(clock::nonce().0, now, scope);
    let sent = http::send(&http::client()?, hook, &[message], now).await;
    sent.map_err(|refused| Error::Refused(refused.says))
}

impl Notifier {
    /// Prepares everything and connects to nothing yet.
    ///
    /// # Errors
    /// [`enum@Error`] when HTTP can't be set up or hooks share a name.
    pub fn new(alerts: Alerts, hooks: Vec<Hook>) -> Result<Self, Error> {
        let mut names: Vec<&str> = hooks.iter().map(Hook::name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Twice(twice[0].to_owned()));
        }
        let first = "the store has not answered yet".to_owned();
        let (sender, health) = watch::channel(Some(first));
        let desk = Desk {
            alerts,
            http: http::client()?,
            health: sender,
        };
        Ok(Self {
            desk: Arc::new(desk),
            hooks,
            health,
        })
    }

    /// Why nothing is delivered at the moment; none when all is well.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Option<String>> {
        self.health.clone()
    }

    /// Delivers until `shutdown`.
    ///
    /// # Errors
    /// As for [`run`].
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let stop = shutdown.child_token();
        let mut tasks = JoinSet::new();
        let (desk, hooks) = (Arc::clone(&self.desk), self.hooks.clone());
        tasks.spawn(spread(desk, hooks, stop.clone()));
        for hook in self.hooks {
            tasks.spawn(serve(Arc::clone(&self.desk), hook, stop.clone()));
        }
        let mut end = Ok(());
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                end = Err(Error::Broken(error));
                stop.cancel();
            }
        }
        end
    }
}

/// Makes deliveries of what is new.
async fn spread(desk: Arc<Desk>, hooks: Vec<Hook>, stop: CancellationToken) {
    let wanted: Vec<(&str, AlertKind)> = hooks
        .iter()
        .flat_map(|hook| hook.kinds.iter().map(|kind| (hook.name(), *kind)))
        .collect();
    let (seed, mut count) = (clock::chance(), 0);
    loop {
        let pause = match desk.alerts.spread(&wanted).await {
            Ok(new) => {
                desk.health.send_replace(None);
                if new > 0 {
                    tracing::info!(new, "alerts");
                }
                POLL
            }
            Err(error) => {
                let says = desk.store_away(&error);
                desk.health.send_replace(Some(says));
                STORE_AWAY
            }
        };
        count += 1;
        if !rest(&stop, chance::spread(seed, count, pause)).await {
            return;
        }
    }
}

/// Delivers to one hook.
async fn serve(desk: Arc<Desk>, hook: Hook, stop: CancellationToken) {
    let (seed, mut count) = (clock::chance(), 0);
    loop {
        count += 1;
        let pause = match desk.round(&hook, seed).await {
            // The pace counts from before the call.
            Ok(true) => hook.pace(),
            Ok(false) => chance::spread(seed, count, POLL),
            Err(error) => {
                desk.store_away(&error);
                chance::spread(seed, count, STORE_AWAY)
            }
        };
        if !rest(&stop, pause).await {
            return;
        }
    }
}

/// Sleeps; false when it is time to end.
async fn rest(stop: &CancellationToken, pause: Duration) -> bool {
    stop.run_until_cancelled(tokio::time::sleep(pause))
        .await
        .is_some()
}

impl Desk {
    /// One call of a hook, if anything is due. Whether there was.
    async fn round(&self, hook: &Hook, seed: u64) -> Result<bool, store::Error> {
        let lease = clock::nonce().0;
        let paced = store::Hook {
            name: hook.name(),
            pace: hook.pace(),
            lease: LEASE,
        };
        let most = hook.target.at_once();
        let taken = self.alerts.take(paced, most, lease).await?;
        let Some(attempts) = taken.iter().map(|taken| taken.attempts).max() else {
            return Ok(false);
        };
        let ids: Vec<Uuid> = taken.iter().map(|taken| taken.alert.id).collect();
        let messages: Vec<Message> = taken
            .iter()
            .map(|taken| Message::new(&taken.alert, hook.link.as_deref()))
            .collect();
        let (scope, name) = (self.alerts.scope(), hook.name());
        match http::send(&self.http, hook, &messages, clock::now().wall).await {
            Ok(()) => {
                self.alerts.delivered(name, &ids).await?;
                telemetry::count(scope, name, "delivered", ids.len());
                tracing::debug!(hook = name, alerts = ids.len(), "delivered");
            }
            Err(refused) => {
                let pause =
                    chance::pause(seed, attempts, hook.first_pause, LAST_PAUSE, chance::FLOOR);
                let failed = Failed {
                    alerts: &ids,
                    lease,
                    error: &refused.says,
                    again_after: pause.max(refused.hold.unwrap_or_default()),
                    attempts: hook.attempts,
                    hold: refused.hold,
                };
                let given_up = self.alerts.failed(name, failed).await?;
                telemetry::count(scope, name, "failed", ids.len());
                self.say_failed(hook, &refused.says, attempts, given_up);
            }
        }
        Ok(true)
    }

    fn say_failed(&self, hook: &Hook, error: &str, attempts: u32, given_up: u64) {
        let hook = hook.name();
        if given_up > 0 {
            let many = usize::try_from(given_up).unwrap_or(usize::MAX);
            telemetry::count(self.alerts.scope(), hook, "given_up", many);
            tracing::error!(
                hook,
                error,
                given_up,
                "alerts are given up: see `ringsaga alerts list`"
            );
        } else {
            tracing::warn!(
                hook,
                error,
                attempts,
                "an alert was not delivered, tried again later"
            );
        }
    }

    fn store_away(&self, error: &store::Error) -> String {
        let mut says = error.to_string();
        let mut next = std::error::Error::source(error);
        while let Some(cause) = next {
            says = format!("{says}: {cause}");
            next = cause.source();
        }
        tracing::warn!(error = says, "alerts can't be read from the store");
        says
    }
}
