//! What a worker's function is told of the call that it carries out.

use std::{
    any::{Any, TypeId, type_name},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

use uuid::Uuid;

use super::Refusal;
use crate::{Direction, Key};

/// A call. Cheap to clone.
#[derive(Clone)]
pub struct Call {
    key: Key,
    attempt: u32,
    shared: Shared,
}

/// What the worker's builder was given for functions to use, by type.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Call {
    pub(super) fn new(key: Key, attempt: u32, shared: Shared) -> Self {
        Self {
            key,
            attempt,
            shared,
        }
    }

    /// What [`WorkerBuilder::provide`](super::WorkerBuilder::provide) was given of this type: an
    /// HTTP client, a setting.
    ///
    /// # Errors
    /// *Transient*, because the next deploy mends it: nothing of that type was provided.
    pub fn shared<T: Any + Send + Sync>(&self) -> Result<Arc<T>, Refusal> {
        let found = self.shared.0.get(&TypeId::of::<T>());
        let found = found.and_then(|any| Arc::clone(any).downcast().ok());
        found.ok_or_else(|| {
            let wanted = type_name::<T>();
            Refusal::transient(format_args!(
                "no {wanted} was provided: call provide(…) on the worker's builder"
            ))
        })
    }

    /// The idempotency key: the same for every attempt.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Of a compensation: the key that its action had.
    #[must_use]
    pub fn action_key(&self) -> Key {
        Key {
            direction: Direction::Forward,
            ..self.key.clone()
        }
    }

    /// The caller's transaction.
    #[must_use]
    pub fn transaction(&self) -> Uuid {
        self.key.transaction
    }

    /// The step.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.key.step
    }

    /// Which attempt the caller says this is, from 1. For logs: nothing may depend on it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl Shared {
    pub(super) fn put<T: Any + Send + Sync>(&mut self, value: T) {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), Arc::new(value));
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}, attempt {})", self.key, self.attempt)
    }
}
