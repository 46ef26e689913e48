//! A step without its types: functions over JSON text.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use ring_core::{
    id::{NameError, StepName, TargetName},
    saga::{Kind, Payload, PlannedStep, Recovery, Repeat, Retry as Policy},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Context, StepError, saga::Definition};

/// What a call gives: JSON of the result, or why there is none.
pub(crate) type Called = Pin<Box<dyn Future<Output = Result<Payload, StepError>> + Send>>;

/// An action, or a compensation (which also gets its action's result), with its types erased.
pub(crate) type Erased = Arc<dyn Fn(Context, Payload, Option<Payload>) -> Called + Send + Sync>;

/// A probe: the result of an action that was applied.
pub(crate) type ErasedProbe = Arc<dyn Fn(Context, Payload) -> Probed + Send + Sync>;

/// What a probe gives.
pub(crate) type Probed = Pin<Box<dyn Future<Output = Result<Option<Payload>, StepError>> + Send>>;

/// A step without its types.
#[derive(Clone)]
pub(crate) struct ErasedStep {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Of a sub-saga: gives the child's input. Of a timer or a signal: never called.
    pub(crate) action: Erased,
    /// Whether the action, and the compensation, is SQL in the store's own database.
    pub(crate) atomic: bool,
    pub(crate) atomic_compensation: bool,
    pub(crate) compensation: Option<Erased>,
    pub(crate) probe: Option<ErasedProbe>,
    /// What a sub-saga runs.
    pub(crate) child: Option<Arc<Definition>>,
    pub(crate) retry: Policy,
    pub(crate) compensation_retry: Policy,
    pub(crate) time_limit: Duration,
    /// Longest silence of an action.
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) recovery: Recovery,
    pub(crate) repeat: Repeat,
    /// As given: a mistake in it is told with all others, when the saga is built.
    pub(crate) target: Option<Result<TargetName, NameError>>,
    /// Settings that make no sense for this kind of step: told when the saga is built.
    pub(crate) misplaced: Vec<&'static str>,
}

impl ErasedStep {
    /// Whether something undoes it: a sub-saga undoes itself.
    pub(crate) fn is_undone(&self) -> bool {
        self.compensation.is_some() || self.child.is_some()
    }

    /// What it calls, when it says so.
    pub(crate) fn target(&self) -> Option<&TargetName> {
        self.target.as_ref()?.as_ref().ok()
    }

    /// What the machine knows of it.
    pub(crate) fn planned(&self, name: StepName) -> PlannedStep {
        PlannedStep {
            retry: self.retry,
            compensate: self.is_undone().then_some(self.compensation_retry),
            time_limit: self.time_limit,
            recovery: self.recovery,
            kind: self.kind.clone(),
            repeat: self.repeat,
            atomic: self.atomic,
            ..PlannedStep::new(name)
        }
    }
}

/// Reads stored JSON. A mismatch is the code's: the stored value does not change, so only another
/// version of the code can read it; retried, so that a deploy mends it.
pub(crate) fn read<T: DeserializeOwned>(what: &str, json: &Payload) -> Result<T, StepError> {
    serde_json::from_str(json.as_str()).map_err(|e| {
        let wanted = std::any::type_name::<T>();
        StepError::transient(format_args!("the stored {what} is no {wanted}")).because(e)
    })
}

/// Writes a result. One that can't be stored leaves an applied action without a record, so it is
/// in doubt.
pub(crate) fn write<R: Serialize>(result: &R) -> Result<Payload, StepError> {
    let json = serde_json::to_string(result)
        .map_err(|e| StepError::unknown("the step's result is no JSON").because(e))?;
    Payload::new(json).map_err(|e| StepError::unknown("the step's result can't be kept").because(e))
}

impl fmt::Debug for ErasedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("name", &self.name)
            .field("compensated", &self.is_undone())
            .field("retry", &self.retry)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}
