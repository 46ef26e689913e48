//! A service as the target of a saga's steps.

use std::{sync::Arc, time::Duration};

use orchestrator_lib::{Context, Key, Step, StepError};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    Ask, Client, Node,
    http::{self, Failed},
    rotation::Rotation,
};
use crate::{Direction, wire::excerpt};

/// Most nodes that one call tries: each may take a connection's time limit.
const MOST_NODES: usize = 3;

/// A service. Cheap to clone; clones share whose turn it is.
#[derive(Clone, Debug)]
pub struct Target {
    client: Client,
    service: Arc<str>,
    rotation: Arc<Rotation>,
}

impl Target {
    pub(super) fn new(client: Client, service: String) -> Self {
        Self {
            client,
            service: service.into(),
            rotation: Arc::default(),
        }
    }

    /// The service's name.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// A step whose action and compensation are this service's. `payload` says what the participant
    /// needs of the saga's input and of earlier results; the compensation gets the same payload,
    /// and what the action returned.
    pub fn step<I, R, P, F>(&self, name: impl Into<Key<R>>, payload: F) -> Step<I, R>
    where
        I: DeserializeOwned + Send + 'static,
        R: Serialize + DeserializeOwned + Send + 'static,
        P: Serialize,
        F: Fn(&I, &Context) -> Result<P, StepError> + Send + Sync + 'static,
    {
        let payload = Arc::new(payload);
        let (target, undo) = (self.clone(), Arc::clone(&payload));
        self.action(name, move |input: &I, cx: &Context| payload(input, cx))
            .compensate(move |cx: Context, input: I, result: Option<R>| {
                let target = target.clone();
                let ready = undo(&input, &cx).and_then(|given| {
                    let result = result.as_ref().map(json).transpose()?;
                    Ok((json(&given)?, result))
                });
                async move {
                    let (given, result) = ready?;
                    target.undone(&cx, &given, result.as_deref()).await
                }
            })
    }

    /// A step whose action is this service's, and that nothing undoes.
    pub fn action<I, R, P, F>(&self, name: impl Into<Key<R>>, payload: F) -> Step<I, R>
    where
        I: DeserializeOwned + Send + 'static,
        R: Serialize + DeserializeOwned + Send + 'static,
        P: Serialize,
        F: Fn(&I, &Context) -> Result<P, StepError> + Send + Sync + 'static,
    {
        let target = self.clone();
        let act = move |cx: Context, input: I| {
            let target = target.clone();
            let given = payload(&input, &cx).and_then(|given| json(&given));
            async move { target.done(&cx, &given?).await }
        };
        Step::new(name, act).target(&*self.service)
    }

    /// Carries out the step that `cx` is of: for an action of one's own that does more than call.
    ///
    /// # Errors
    /// What the answer means, see [`wire`](crate::wire).
    pub async fn execute<R: DeserializeOwned>(
        &self,
        cx: &Context,
        payload: &impl Serialize,
    ) -> Result<R, StepError> {
        let payload = json(payload)?;
        self.done(cx, &payload).await
    }

    /// Undoes the step that `cx` is of; `result` is what the action returned, if anybody knows.
    ///
    /// # Errors
    /// What the answer means, see [`wire`](crate::wire).
    pub async fn compensate(
        &self,
        cx: &Context,
        payload: &impl Serialize,
        result: Option<&impl Serialize>,
    ) -> Result<(), StepError> {
        let (payload, result) = (json(payload)?, result.map(json).transpose()?);
        self.undone(cx, &payload, result.as_deref()).await
    }

    async fn done<R: DeserializeOwned>(
        &self,
        cx: &Context,
        payload: &RawValue,
    ) -> Result<R, StepError> {
        let ask = asked(cx, Direction::Forward, payload, None);
        let result = self.ask(&ask).await?;
        serde_json::from_str(result.get()).map_err(|error| {
            // It was carried out: whoever can't read the answer must not take it for refused.
            StepError::unknown(format_args!(
                "{} {}: the result is no {}: {}",
                self.service,
                cx.step(),
                std::any::type_name::<R>(),
                excerpt(result.get().as_bytes())
            ))
            .because(error)
        })
    }

    async fn undone(
        &self,
        cx: &Context,
        payload: &RawValue,
        result: Option<&RawValue>,
    ) -> Result<(), StepError> {
        let ask = asked(cx, Direction::Compensating, payload, result);
        self.ask(&ask).await.map(drop)
    }

    /// Calls the service: one node, and the next ones while they can't be reached.
    ///
    /// # Errors
    /// What the answer means, see [`wire`](crate::wire), or that there was none in `ask.limit`.
    pub async fn ask(&self, ask: &Ask<'_>) -> Result<Box<RawValue>, StepError> {
        let limit = ask.limit.min(self.client.0.settings.answer_within);
        let over = |_| {
            let (service, step) = (&self.service, ask.step);
            Err(StepError::unknown(format!(
                "{service} {step}: no answer within {limit:?}"
            )))
        };
        let ask = Ask { limit, ..*ask };
        // Whatever the transports' own limits leave open ends here.
        let called = tokio::time::timeout(limit, self.through_nodes(&ask));
        called.await.unwrap_or_else(over)
    }

    async fn through_nodes(&self, ask: &Ask<'_>) -> Result<Box<RawValue>, StepError> {
        let inner = &self.client.0;
        let nodes = inner.registry.nodes(&self.service).await.map_err(|error| {
            StepError::transient(format_args!("{} {}", self.service, ask.step)).because(error)
        })?;
        let mut last = None;
        for node in self
            .rotation
            .order(nodes, mono())
            .into_iter()
            .take(MOST_NODES)
        {
            match self.call(&node, ask).await {
                Ok(result) => return Ok(result),
                Err(Failed::Answered(error)) => return Err(error),
                Err(Failed::Unreached(error)) => {
                    self.rotation.refused(&node, mono());
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| {
            StepError::transient(format_args!("{}: the registry knows no node", self.service))
        }))
    }

    async fn call(&self, node: &Node, ask: &Ask<'_>) -> Result<Box<RawValue>, Failed> {
        let inner = &self.client.0;
        let from = format!("{} {} at {node}", self.service, ask.step);
        let signer = inner.settings.signer.as_ref();
        let token = signer.map(|s| s.token(&self.service, crate::token::unix_now()));
        match node {
            Node::Http(base) => {
                http::call(&inner.http, &inner.settings, base, &from, token, ask).await
            }
            #[cfg(feature = "nats")]
            Node::Nats(prefix) => {
                let Some(nats) = &inner.nats else {
                    return Err(no_way(&from));
                };
                let most = inner.settings.answer_bytes;
                super::nats::call(nats, prefix, most, &from, token, ask).await
            }
            #[cfg(not(feature = "nats"))]
            Node::Nats(_) => Err(no_way(&from)),
        }
    }
}

/// A deploy mends it.
fn no_way(from: &str) -> Failed {
    let says = format!("{from}: this client was made without NATS, see Client::with_nats");
    Failed::Unreached(StepError::transient(says))
}

fn asked<'a>(
    cx: &'a Context,
    direction: Direction,
    payload: &'a RawValue,
    action_result: Option<&'a RawValue>,
) -> Ask<'a> {
    Ask {
        direction,
        step: cx.step(),
        key: cx.key(),
        attempt: cx.attempt(),
        payload,
        action_result,
        limit: before(cx.time_limit()),
    }
}

/// A little before the step's own limit, so that it is this client that says what happened.
fn before(limit: Duration) -> Duration {
    limit.saturating_sub((limit / 10).min(Duration::from_secs(1)))
}

/// Milliseconds of the clock for time limits.
fn mono() -> u64 {
    ring_shell::clock::now().mono.0
}

/// Nothing was sent yet, so a value that is no JSON refuses the step for good.
fn json(value: &impl Serialize) -> Result<Box<RawValue>, StepError> {
    to_raw_value(value).map_err(|e| StepError::persistent("the payload is no JSON").because(e))
}
