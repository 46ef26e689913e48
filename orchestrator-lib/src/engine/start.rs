//! Starting a transaction: stored and claimed in one write, so that it runs here at once.
//!
//! Without room or lease it is stored unowned and due: whoever owns its token takes it.

use std::{sync::Arc, time::Duration};

use ring_core::{
    id::{SagaName, TransactionId},
    saga::{Payload, Transaction},
    store::{Incarnation, Start, Started as Stored},
};
use ring_shell::{clock, token::token_of};

use super::{
    Engine, Life,
    inflight::{Entering, Room},
};
use crate::{Error, MAX_KEY_BYTES, Started, context::Here, saga::Definition, telemetry::STARTED};

/// How long a start waits for room and a lease before it is left to any retry node: longer than
/// a look keeps room for itself, shorter than a caller's patience.
const PATIENCE: Duration = Duration::from_secs(1);

/// The same on a node that retries nothing, which then refuses: what it can't run itself may find
/// nobody else.
const LONG_PATIENCE: Duration = Duration::from_secs(5);

/// How long the store may take for a start: a healthy one takes milliseconds, and callers of a
/// service wait seconds. The store itself goes on trying for longer.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

impl Engine {
    pub(crate) async fn start(
        self: &Arc<Self>,
        definition: &Arc<Definition>,
        key: String,
        input: Payload,
    ) -> Result<Started, Error> {
        let answer = self.try_start(definition, key, input).await;
        self.counted(answer)
    }

    /// The answer to a start, counted by its kind.
    pub(super) fn counted(&self, answer: Result<Started, Error>) -> Result<Started, Error> {
        let result = match &answer {
            Ok(started) if started.is_new => "new",
            Ok(_) => "same",
            Err(
                Error::InProgress { .. }
                | Error::NotTaking(_)
                | Error::RetryTransaction(_)
                | Error::Store(_)
                | Error::Unanswered { .. },
            ) => "busy",
            Err(_) => "refused",
        };
        self.meter.count_as(STARTED, "result", result);
        answer
    }

    async fn try_start(
        self: &Arc<Self>,
        definition: &Arc<Definition>,
        key: String,
        input: Payload,
    ) -> Result<Started, Error> {
        self.check(definition, &key)?;
        let claim = self.right_to_claim(&definition.plan.runs().saga).await?;
        let pending = claim.as_ref().map(|_| self.in_flight.pending());
        // Asked again after the nonce is announced: a drain waits for those, and only for those.
        self.is_up()?;
        let start = self.row(definition, key, input, pending.as_ref().map(|p| p.nonce()));
        let incarnation = claim.as_ref().map(|(of, _)| *of);
        let mut stored = self.store_start(incarnation, start.clone()).await?;
        if stored == Stored::NoLease {
            // Declared dead at this moment: whoever lives runs it.
            let unowned = Start {
                claim: None,
                ..start.clone()
            };
            stored = self.store_start(None, unowned).await?;
        }
        let (id, is_new) = match stored {
            Stored::New(fence) => {
                if let (Some(fence), Some((incarnation, room))) = (fence, claim) {
                    let nonce = fence.nonce;
                    let entering = Entering {
                        id: start.id,
                        saga: start.saga.clone(),
                        nonce,
                        incarnation,
                        suspect: false,
                    };
                    let slot = self.in_flight.enter(entering, room);
                    let plan = Arc::clone(&definition.plan);
                    let machine = Transaction::started(plan, &start, fence, clock::now());
                    let here = Here {
                        transaction: start.id,
                        saga: start.saga.clone(),
                    };
                    let definition = Some(Arc::clone(definition));
                    self.launch(definition, start.version, machine, here, slot);
                }
                (start.id, true)
            }
            Stored::Same(id) => (id, false),
            Stored::Different(by) => return Err(Error::KeyUsed { key: start.key, by }),
            Stored::InProgress => return Err(Error::InProgress { key: start.key }),
            Stored::NoLease => return Err(Error::NotTaking("it has no lease".into())),
            Stored::Invalid(why) => return Err(Error::Invalid(why.as_str().to_owned())),
        };
        drop(pending);
        Ok(Started { id, is_new })
    }

    /// Stores, for as long as a caller should wait. A row that is stored all the same, claimed for
    /// this node, is a stray here and goes back to anyone.
    async fn store_start(&self, of: Option<Incarnation>, start: Start) -> Result<Stored, Error> {
        let key = start.key.clone();
        match tokio::time::timeout(STORE_PATIENCE, self.store.start(of, start)).await {
            Ok(stored) => Ok(stored?),
            Err(_) => Err(Error::Unanswered { key }),
        }
    }

    pub(super) fn check(&self, definition: &Definition, key: &str) -> Result<(), Error> {
        if self.superseded.is_cancelled() {
            return Err(Error::Superseded(self.config.instance.to_string()));
        }
        self.is_up()?;
        if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(Error::Key { bytes: key.len() });
        }
        let runs = definition.plan.runs();
        let here = self.definition(&runs.saga, runs.version);
        if here.is_some_and(|here| here.plan.runs() == runs) {
            return Ok(());
        }
        let known: Vec<String> = self
            .sagas
            .keys()
            .map(|(s, v)| format!("{s} v{v}"))
            .collect();
        Err(Error::UnknownSaga {
            saga: runs.saga.to_string(),
            version: runs.version,
            known: if known.is_empty() {
                "none".into()
            } else {
                known.join(", ")
            },
        })
    }

    fn is_up(&self) -> Result<(), Error> {
        if *self.life.borrow() == Life::Up {
            return Ok(());
        }
        Err(Error::NotTaking("it leaves".into()))
    }

    /// Room and lease for running it here; none when a retry node, perhaps this one, takes it.
    async fn right_to_claim(&self, saga: &SagaName) -> Result<Option<(Incarnation, Room)>, Error> {
        if self.config.retry_node && self.in_flight.has_its_share(saga) {
            return Ok(None);
        }
        let now = self.in_flight.room(1).pop();
        if let (Some(of), Some(room)) = (self.lease.incarnation(), now) {
            return Ok(Some((of, room)));
        }
        let retries = self.config.retry_node;
        let both = async {
            let room = self.in_flight.wait_for_room().await?;
            let mut changes = self.lease.changes();
            while self.lease.incarnation().is_none() {
                changes.changed().await.ok()?;
            }
            Some((self.lease.incarnation()?, room))
        };
        let patience = if retries { PATIENCE } else { LONG_PATIENCE };
        match tokio::time::timeout(patience, both).await {
            Ok(Some(right)) => Ok(Some(right)),
            Ok(None) | Err(_) if retries => Ok(None),
            Ok(None) | Err(_) => {
                let mut reasons = self.unready();
                reasons.extend(self.full().map(str::to_owned));
                Err(Error::NotTaking(reasons.join("; ")))
            }
        }
    }

    pub(super) fn row(
        &self,
        definition: &Definition,
        key: String,
        input: Payload,
        claim: Option<ring_core::id::Nonce>,
    ) -> Start {
        let runs = definition.plan.runs();
        let code = self.config.code();
        let id = TransactionId::compose(clock::now().wall, code, clock::chance());
        Start {
            id,
            token: token_of(id),
            saga: runs.saga.clone(),
            version: runs.version,
            digest: runs.digest.clone(),
            key,
            input,
            lifetime: definition.lifetime,
            claim,
        }
    }
}
