//! One step of a saga: what it does, what undoes it, how often it is tried.
//!
//! Types are checked when the saga is written: a compensation gets what its own action returns.
//! They are erased here into JSON, which is all that the engine and the database see.

use std::{fmt, future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use ring_core::{
    id::{NameError, StepName, TargetName},
    saga::{Payload, PlannedStep, Recovery, Retry as Policy},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Context, Key, Retry, StepError};

/// How long one call may take unless a step says otherwise: long enough for a slow HTTP call,
/// short enough that a hanging one is noticed by a person who waits.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(30);

/// What a call gives: JSON of the result, or why there is none.
pub(crate) type Called = Pin<Box<dyn Future<Output = Result<Payload, StepError>> + Send>>;

/// An action, or a compensation (which also gets its action's result), with its types erased.
pub(crate) type Erased = Arc<dyn Fn(Context, Payload, Option<Payload>) -> Called + Send + Sync>;

/// A step of a saga over `I` whose action returns an `R`.
///
/// An action and a compensation are async functions; each may be called more than once with the
/// same [`Context::key`], so that what it calls must recognise a repetition.
pub struct Step<I, R = ()> {
    pub(crate) erased: ErasedStep,
    types: PhantomData<fn(I) -> R>,
}

/// A step without its types.
#[derive(Clone)]
pub(crate) struct ErasedStep {
    pub(crate) name: String,
    pub(crate) action: Erased,
    pub(crate) compensation: Option<Erased>,
    pub(crate) retry: Policy,
    pub(crate) compensation_retry: Policy,
    pub(crate) time_limit: Duration,
    pub(crate) recovery: Recovery,
    /// As given: a mistake in it is told with all others, when the saga is built.
    pub(crate) target: Option<Result<TargetName, NameError>>,
}

impl<I, R> Step<I, R>
where
    I: DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// A step with its action. The name is what the step log and the idempotency key hold: it
    /// stays when the code moves. Mistakes in it are reported by
    /// [`SagaBuilder::build`](crate::SagaBuilder::build).
    pub fn new<F, Fut>(name: impl Into<Key<R>>, action: F) -> Self
    where
        F: Fn(Context, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, StepError>> + Send + 'static,
    {
        let action: Erased = Arc::new(move |cx, input, _| match read("input", &input) {
            Ok(input) => {
                let call = action(cx, input);
                Box::pin(async move { write(&call.await?) })
            }
            Err(mistake) => Box::pin(std::future::ready(Err(mistake))),
        });
        Self {
            erased: ErasedStep {
                name: name.into().name().to_owned(),
                action,
                compensation: None,
                retry: Policy::ACTION,
                compensation_retry: Policy::COMPENSATION,
                time_limit: DEFAULT_TIME_LIMIT,
                recovery: Recovery::default(),
                target: None,
            },
            types: PhantomData,
        }
    }

    /// What undoes the action. It gets what the action returned, or `None` when nobody knows
    /// whether the action was applied: then it undoes what it finds under
    /// [`Context::action_key`] and leaves a mark that blocks a late action.
    ///
    /// A step without a compensation has nothing to undo. One that takes another type than its
    /// action returns does not compile:
    ///
    /// ```compile_fail
    /// # use orchestrator_lib::{Context, Step, StepError};
    /// async fn reserve(_: Context, _: u32) -> Result<String, StepError> { Ok("r-1".into()) }
    /// async fn release(_: Context, _: u32, _: Option<bool>) -> Result<(), StepError> { Ok(()) }
    /// let step = Step::new("reserve", reserve).compensate(release);
    /// ```
    #[must_use]
    pub fn compensate<F, Fut>(mut self, compensation: F) -> Self
    where
        F: Fn(Context, I, Option<R>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.erased.compensation = Some(Arc::new(move |cx, input, result| {
            let read = read("input", &input).and_then(|input| {
                let result = result.map(|r| read("result", &r)).transpose()?;
                Ok((input, result))
            });
            match read {
                Ok((input, result)) => {
                    let call = compensation(cx, input, result);
                    Box::pin(async move { call.await.map(|()| Payload::null()) })
                }
                Err(mistake) => Box::pin(std::future::ready(Err(mistake))),
            }
        }));
        self
    }

    /// How the action is retried. Default: [`Retry::default`].
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.erased.retry = retry.0;
        self
    }

    /// How the compensation is retried. Default: until the transaction's lifetime ends.
    #[must_use]
    pub fn retry_compensation(mut self, retry: Retry) -> Self {
        self.erased.compensation_retry = retry.0;
        self
    }

    /// How long one call may take; a call over it is dropped and counts as *unknown*. Default
    /// [`DEFAULT_TIME_LIMIT`].
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.erased.time_limit = limit;
        self
    }

    /// What a failed action leads to. Default [`Recovery::Hybrid`]: forward first, then backward.
    #[must_use]
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.erased.recovery = recovery;
        self
    }

    /// What the action and the compensation call: a service, a bank, a database. Steps of any saga
    /// that name the same target share one circuit breaker in each process. While it is open,
    /// transactions wait for the target and use up no attempts; a few calls probe it, and when it
    /// works again those that wait go on, oldest first, at a growing pace. Default: none, every
    /// transaction finds out by itself.
    ///
    /// Transient and unknown failures speak against the target; successes and refusals (business,
    /// persistent) show that it works.
    ///
    /// ```
    /// # use orchestrator_lib::{Context, Step, StepError};
    /// # async fn charge(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
    /// let step = Step::new("charge", charge).target("payment");
    /// ```
    #[must_use]
    pub fn target(mut self, name: impl AsRef<str>) -> Self {
        self.erased.target = Some(TargetName::new(name));
        self
    }
}

impl ErasedStep {
    /// What the machine knows of it.
    pub(crate) fn planned(&self, name: StepName) -> PlannedStep {
        PlannedStep {
            retry: self.retry,
            compensate: self.compensation.as_ref().map(|_| self.compensation_retry),
            time_limit: self.time_limit,
            recovery: self.recovery,
            ..PlannedStep::new(name)
        }
    }

    /// What it calls, when it says so.
    pub(crate) fn target(&self) -> Option<&TargetName> {
        self.target.as_ref()?.as_ref().ok()
    }
}

/// Reads stored JSON. A mismatch is the code's: the stored value does not change, so only another
/// version of the code can read it; retried, so that a deploy mends it.
fn read<T: DeserializeOwned>(what: &str, json: &Payload) -> Result<T, StepError> {
    serde_json::from_str(json.as_str()).map_err(|e| {
        let wanted = std::any::type_name::<T>();
        StepError::transient(format_args!("the stored {what} is no {wanted}")).because(e)
    })
}

/// Writes a result. One that can't be stored leaves an applied action without a record, so it is
/// in doubt.
fn write<R: Serialize>(result: &R) -> Result<Payload, StepError> {
    let json = serde_json::to_string(result)
        .map_err(|e| StepError::unknown("the step's result is no JSON").because(e))?;
    Payload::new(json).map_err(|e| StepError::unknown("the step's result can't be kept").because(e))
}

impl<I, R> fmt::Debug for Step<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.erased.fmt(f)
    }
}

impl fmt::Debug for ErasedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("name", &self.name)
            .field("compensated", &self.compensation.is_some())
            .field("retry", &self.retry)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}
