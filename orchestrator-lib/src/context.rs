//! What a step sees of the transaction that it runs in.
//!
//! Hands out what the machine ordered; decides nothing.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::Arc,
    time::Duration,
};

use ring_core::{
    id::{SagaName, TransactionId},
    saga::{Call, Direction, IdempotencyKey},
};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::StepError;

/// A step's name together with the type of its result, so that later steps read it checked:
///
/// ```
/// # use orchestrator_lib::{Context, Key, StepError};
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Reservation;
/// const RESERVE: Key<Reservation> = Key::new("reserve");
/// // Step::new(RESERVE, reserve), and in a later step:
/// async fn ship(cx: Context, _order: u32) -> Result<(), StepError> {
///     let reserved = cx.result(RESERVE)?; // a Reservation
/// #   drop(reserved);
///     Ok(())
/// }
/// ```
///
/// A plain text does where a key isn't worth a constant: `cx.result::<Reservation>("reserve")`.
pub struct Key<R> {
    name: &'static str,
    result: PhantomData<fn() -> R>,
}

/// What a step's action or compensation is given. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    here: Here,
    call: Call,
    shared: Shared,
    beats: Arc<Notify>,
}

/// Which transaction a call belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    pub(crate) transaction: TransactionId,
    pub(crate) saga: SagaName,
}

/// What the node's builder was given for steps to use, by type.
#[derive(Clone, Default)]
pub(crate) struct Shared(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl<R> Key<R> {
    /// Names a step and the type of its result.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            result: PhantomData,
        }
    }

    /// The step's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl Context {
    pub(crate) fn new(here: Here, call: Call, shared: Shared) -> Self {
        Self(Arc::new(Inner {
            here,
            call,
            shared,
            beats: Arc::default(),
        }))
    }

    pub(crate) fn beats(&self) -> Arc<Notify> {
        Arc::clone(&self.0.beats)
    }

    /// Says that a long call is still at work: see
    /// [`Step::heartbeat_within`](crate::Step::heartbeat_within). Cheap; call it as often as you
    /// like.
    pub fn heartbeat(&self) {
        self.0.beats.notify_one();
    }

    /// The idempotency key of this call, `transaction/direction/step`: the same for every attempt,
    /// on whichever node. Send it to the participant.
    #[must_use]
    pub fn key(&self) -> &str {
        self.0.call.key.as_str()
    }

    /// The key that this step's action had: a compensation tells by it what to undo.
    #[must_use]
    pub fn action_key(&self) -> String {
        let Inner { here, call, .. } = &*self.0;
        let key = IdempotencyKey::new(here.transaction, Direction::Forward, &call.step);
        key.as_str().to_owned()
    }

    /// The transaction.
    #[must_use]
    pub fn transaction(&self) -> TransactionId {
        self.0.here.transaction
    }

    /// The saga's name.
    #[must_use]
    pub fn saga(&self) -> &str {
        self.0.here.saga.as_str()
    }

    /// The step's name.
    #[must_use]
    pub fn step(&self) -> &str {
        self.0.call.step.as_str()
    }

    /// Which attempt this is, from 1. For logs: nothing that a participant sees may depend on it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.call.attempt
    }

    /// How long this call may take, from its start; then it is dropped and counts as *unknown*.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.0.call.time_limit
    }

    /// The result of a step that may have been passed: none when it has no result here (another
    /// branch was taken, it comes later).
    ///
    /// # Errors
    /// *Persistent*: the result is of another type, which is a mistake in the saga, or in the
    /// signal that somebody sent.
    pub fn find<R: DeserializeOwned>(
        &self,
        step: impl Into<Key<R>>,
    ) -> Result<Option<R>, StepError> {
        let key = step.into();
        let done = self
            .0
            .call
            .results
            .iter()
            .any(|(n, _)| n.as_str() == key.name);
        done.then(|| self.result(key)).transpose()
    }

    /// The result of a step that is done.
    ///
    /// # Errors
    /// *Persistent*: that step has no result (it comes later, or there is none of that name), or
    /// the result is of another type. Both are mistakes in the saga.
    pub fn result<R: DeserializeOwned>(&self, step: impl Into<Key<R>>) -> Result<R, StepError> {
        let key = step.into();
        let results = &self.0.call.results;
        let found = results.iter().find(|(n, _)| n.as_str() == key.name);
        let Some((_, payload)) = found else {
            return Err(StepError::persistent(format_args!(
                "step {:?} has no result here: results are there of earlier steps that are done",
                key.name
            )));
        };
        serde_json::from_str(payload.as_str()).map_err(|e| {
            let wanted = type_name::<R>();
            let name = key.name;
            StepError::persistent(format_args!("the result of step {name:?} is no {wanted}"))
                .because(e)
        })
    }

    /// What [`NodeBuilder::provide`](crate::NodeBuilder::provide) was given of this type: an HTTP
    /// client, a pool.
    ///
    /// # Errors
    /// *Transient*, because the next deploy mends it: nothing of that type was provided.
    pub fn shared<T: Any + Send + Sync>(&self) -> Result<Arc<T>, StepError> {
        self.0.shared.find().ok_or_else(|| {
            let wanted = type_name::<T>();
            StepError::transient(format_args!(
                "no {wanted} was provided: call provide(…) on the node's builder"
            ))
        })
    }
}

impl Shared {
    pub(crate) fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// As [`Shared::put`], for a value that somebody else keeps looking at.
    pub(crate) fn put_shared<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.0.insert(TypeId::of::<T>(), value);
    }

    fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let any = Arc::clone(self.0.get(&TypeId::of::<T>())?);
        any.downcast().ok()
    }
}

impl<R> From<&'static str> for Key<R> {
    fn from(name: &'static str) -> Self {
        Self::new(name)
    }
}

impl<R> Clone for Key<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Key<R> {}

impl<R> fmt::Debug for Key<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?}: {})", self.name, type_name::<R>())
    }
}

impl fmt::Debug for Context {
    /// Without payloads: they are the users' data and stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, attempt {})", self.key(), self.attempt())
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} values)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use ring_core::{
        id::{RegionCode, StepName},
        saga::{Payload, Position},
        time::Wall,
    };

    use super::*;

    fn context(attempt: u32) -> Context {
        let transaction = TransactionId::compose(Wall(1), RegionCode::default(), 1);
        let step = StepName::new("charge").unwrap();
        let mut shared = Shared::default();
        shared.put(7_u32);
        let call = Call {
            call: attempt,
            position: Position {
                direction: Direction::Compensating,
                seq: 1,
            },
            key: IdempotencyKey::new(transaction, Direction::Compensating, &step),
            step,
            asked: ring_core::saga::Asked::Act,
            attempt,
            result_of_action: None,
            results: vec![(
                StepName::new("reserve").unwrap(),
                Payload::new("[1]").unwrap(),
            )],
            time_limit: Duration::from_secs(1),
        };
        let saga = SagaName::new("s").unwrap();
        Context::new(Here { transaction, saga }, call, shared)
    }

    #[test]
    fn the_key_is_the_same_for_every_attempt() {
        let (first, later) = (context(1), context(9));
        assert_eq!(first.key(), later.key());
        assert!(first.key().ends_with("/compensating/charge"));
        assert!(first.action_key().ends_with("/forward/charge"));
    }

    #[test]
    fn a_result_is_read_by_name_and_checked() {
        let cx = context(1);
        assert_eq!(cx.result::<Vec<u8>>("reserve").unwrap(), [1]);
        let wrong = cx.result::<String>("reserve").unwrap_err();
        assert!(wrong.to_string().contains("is no"), "{wrong}");
        assert!(cx.result::<Vec<u8>>("later").is_err());
        assert_eq!(*cx.shared::<u32>().unwrap(), 7);
        assert!(cx.shared::<u64>().is_err());
    }
}
