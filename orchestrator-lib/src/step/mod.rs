//! One step of a saga: what it does, what undoes it, how often it is tried.
//!
//! Types are checked when the saga is written: a compensation gets what its own action returns.
//! They are erased into JSON ([`erased`]), which is all that the engine and the database see.

pub(crate) mod erased;
pub(crate) mod transactional;
mod wait;

use std::{fmt, future::Future, marker::PhantomData, sync::Arc, time::Duration};

use ring_core::{
    id::TargetName,
    saga::{Kind, Payload, Recovery, Repeat, Retry as Policy},
};
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use self::erased::ErasedStep;
use self::erased::{Erased, ErasedProbe, read, write};
use crate::{Context, Key, Retry, StepError};

/// How long one call may take unless a step says otherwise: long enough for a slow HTTP call,
/// short enough that a hanging one is noticed by a person who waits.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(30);

/// A step of a saga over `I` whose action returns an `R`.
///
/// An action and a compensation are async functions; each may be called more than once with the
/// same [`Context::key`], so that what it calls must recognise a repetition.
pub struct Step<I, R = ()> {
    pub(crate) erased: ErasedStep,
    types: PhantomData<fn(I) -> R>,
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
        Self::of(name.into(), Kind::Action, action)
    }

    pub(crate) fn of(name: Key<R>, kind: Kind, action: Erased) -> Self {
        Self {
            erased: ErasedStep {
                name: name.name().to_owned(),
                kind,
                action,
                atomic: false,
                atomic_compensation: false,
                compensation: None,
                probe: None,
                child: None,
                retry: Policy::ACTION,
                compensation_retry: Policy::COMPENSATION,
                time_limit: DEFAULT_TIME_LIMIT,
                heartbeat: None,
                recovery: Recovery::default(),
                repeat: Repeat::Key,
                target: None,
                misplaced: Vec::new(),
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
        self.erased.atomic_compensation = false;
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

    /// A long action must say [`Context::heartbeat`] at least this often: a call that falls silent
    /// is dropped and counts as *unknown*, long before its [time limit](Self::time_limit).
    #[must_use]
    pub fn heartbeat_within(mut self, silence: Duration) -> Self {
        self.erased.heartbeat = Some(silence);
        self
    }

    /// Asks whether the action was applied, before one that is in doubt is called again. It gets
    /// the same [`Context::key`] as the action and changes nothing.
    ///
    /// [`Probe::Applied`] completes the step with that result. [`Probe::NotApplied`] lets the
    /// action be called again, and the step stays in doubt all the same: a call that is still
    /// under way may arrive later. An [irreversible](Recovery::Irreversible) step with a probe is
    /// asked about instead of going to a person at once.
    #[must_use]
    pub fn probe<F, Fut>(mut self, probe: F) -> Self
    where
        F: Fn(Context, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Probe<R>, StepError>> + Send + 'static,
    {
        let probe: ErasedProbe = Arc::new(move |cx, input| match read("input", &input) {
            Ok(input) => {
                let call = probe(cx, input);
                Box::pin(async move {
                    match call.await? {
                        Probe::Applied(result) => write(&result).map(Some),
                        Probe::NotApplied => Ok(None),
                    }
                })
            }
            Err(mistake) => Box::pin(std::future::ready(Err(mistake))),
        });
        self.erased.probe = Some(probe);
        self.erased.repeat = Repeat::Probe;
        self
    }

    /// The participant can't recognise a repetition, and nobody can ask it: an action that may
    /// have been applied is never called again, and the transaction goes to a person
    /// (`terminated`), who says what happened.
    #[must_use]
    pub fn not_idempotent(mut self) -> Self {
        self.erased.repeat = Repeat::Never;
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

/// What a step's [probe](Step::probe) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe<R> {
    /// The action was applied, and this is its result.
    Applied(R),
    /// It was not applied so far.
    NotApplied,
}

impl<I, R> fmt::Debug for Step<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.erased.fmt(f)
    }
}
