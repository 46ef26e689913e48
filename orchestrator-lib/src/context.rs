//! What a step sees of the transaction that it runs in.
//!
//! Idempotency keys are built here and nowhere else: `transaction/direction/step`, never an epoch
//! or an attempt, so that every repetition of a call carries the same key (reliability 108).

use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, HashMap},
    fmt,
    marker::PhantomData,
    sync::Arc,
    time::Duration,
};

use ring_core::{
    id::{SagaName, StepName, TransactionId},
    saga::{Direction, Payload},
};
use serde::de::DeserializeOwned;

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
pub struct Context(Arc<Call>);

/// One call, as the engine sets it up.
pub(crate) struct Call {
    pub(crate) transaction: TransactionId,
    pub(crate) saga: SagaName,
    pub(crate) step: StepName,
    pub(crate) direction: Direction,
    pub(crate) attempt: u32,
    pub(crate) time_limit: Duration,
    pub(crate) results: BTreeMap<StepName, Payload>,
    pub(crate) shared: Shared,
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
    pub(crate) fn new(call: Call) -> Self {
        Self(Arc::new(call))
    }

    /// The idempotency key of this call, `transaction/direction/step`: the same for every attempt,
    /// on whichever node. Send it to the participant.
    #[must_use]
    pub fn key(&self) -> String {
        self.key_of(self.0.direction)
    }

    /// The key that this step's action had: a compensation tells by it what to undo.
    #[must_use]
    pub fn action_key(&self) -> String {
        self.key_of(Direction::Forward)
    }

    /// The transaction.
    #[must_use]
    pub fn transaction(&self) -> TransactionId {
        self.0.transaction
    }

    /// The saga's name.
    #[must_use]
    pub fn saga(&self) -> &str {
        self.0.saga.as_str()
    }

    /// The step's name.
    #[must_use]
    pub fn step(&self) -> &str {
        self.0.step.as_str()
    }

    /// Which attempt this is, from 1. For logs: nothing that a participant sees may depend on it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// How long this call may take, from its start; then it is dropped and counts as *unknown*.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.0.time_limit
    }

    /// The result of a step that is done.
    ///
    /// # Errors
    /// *Persistent*: that step has no result (it comes later, or there is none of that name), or
    /// the result is of another type. Both are mistakes in the saga.
    pub fn result<R: DeserializeOwned>(&self, step: impl Into<Key<R>>) -> Result<R, StepError> {
        let key = step.into();
        let found = self.0.results.iter().find(|(n, _)| n.as_str() == key.name);
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

    fn key_of(&self, direction: Direction) -> String {
        let way = match direction {
            Direction::Forward => "forward",
            Direction::Compensating => "compensate",
        };
        format!("{}/{way}/{}", self.0.transaction, self.0.step)
    }
}

impl Shared {
    pub(crate) fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
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
        write!(f, "Context({}, attempt {})", self.key(), self.0.attempt)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} values)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use ring_core::time::Wall;

    use super::*;

    fn context(attempt: u32) -> Context {
        let id = TransactionId::compose(Wall(1), Default::default(), 1);
        let mut shared = Shared::default();
        shared.put(7_u32);
        Context::new(Call {
            transaction: id,
            saga: SagaName::new("s").unwrap(),
            step: StepName::new("charge").unwrap(),
            direction: Direction::Compensating,
            attempt,
            time_limit: Duration::from_secs(1),
            results: [(
                StepName::new("reserve").unwrap(),
                Payload::new("[1]").unwrap(),
            )]
            .into(),
            shared,
        })
    }

    #[test]
    fn the_key_is_the_same_for_every_attempt() {
        let (first, later) = (context(1), context(9));
        assert_eq!(first.key(), later.key());
        assert!(first.key().ends_with("/compensate/charge"));
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
