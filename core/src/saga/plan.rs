//! What a saga's definition tells the machine: its steps in order and how each recovers.
//!
//! Functions, payload types and targets stay with who calls the steps. Intents are numbered, and
//! today intent and step are the same number; a group of parallel steps would be several intents.

use alloc::{collections::BTreeSet, vec::Vec};
use core::time::Duration;

use thiserror::Error;

use crate::{id::StepName, store::Capability};

/// Most steps of one saga: far beyond anything that people still understand, and a log of that
/// many records is still claimed in one read.
pub const MAX_STEPS: usize = 500;

/// A saga's definition as the machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    runs: Capability,
    steps: Vec<PlannedStep>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// Its name, unique within the saga.
    pub name: StepName,
    /// How often and how fast the action is retried.
    pub retry: Retry,
    /// The same for the compensation; `None` when there is nothing to undo.
    pub compensate: Option<Retry>,
    /// How long one call may take; afterwards its outcome is unknown.
    pub time_limit: Duration,
    /// What a failed action leads to.
    pub recovery: Recovery,
}

/// What a failed action leads to (F1, F4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Forward first, then backward: transient and unknown failures are retried up to the limit,
    /// a refusal or the limit starts compensation.
    #[default]
    Hybrid,
    /// Retried whatever the failure, until it succeeds or the lifetime ends (`DISABLED`); never
    /// starts compensation.
    ForwardOnly,
    /// Not worth a retry: the first failure starts compensation.
    BackwardFirst,
    /// Neither repeated when it may have happened, nor undone: such a failure ends in
    /// `TERMINATED`, and so does a compensation that arrives at it. Transient failures (not
    /// applied for certain) are retried up to the limit.
    Irreversible,
}

/// A policy of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Retries of *transient* failures without letting go of the transaction, each claim.
    pub inline: u32,
    /// Pause before the first of them, doubling.
    pub inline_pause: Duration,
    /// Most calls in all. For an action: before compensation starts; for a compensation: before
    /// `TERMINATED`. `None`: until the lifetime ends.
    pub attempts: Option<u32>,
    /// First pause, doubling.
    pub base: Duration,
    /// Longest pause.
    pub cap: Duration,
    /// Shortest pause, jitter included.
    pub floor: Duration,
}

/// Why steps make no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Two steps of one name.
    #[error("the step name {0} is used twice: results and idempotency keys are kept by name")]
    SameName(StepName),
    /// Too many.
    #[error("{0} steps, at most {MAX_STEPS} make a saga: start other sagas from it")]
    TooMany(usize),
}

impl Plan {
    /// Checks the steps.
    ///
    /// # Errors
    /// [`PlanError`] when a name is used twice or there are more than [`MAX_STEPS`].
    pub fn new(runs: Capability, steps: Vec<PlannedStep>) -> Result<Self, PlanError> {
        if steps.len() > MAX_STEPS {
            return Err(PlanError::TooMany(steps.len()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = steps.iter().find(|s| !names.insert(&s.name)) {
            return Err(PlanError::SameName(twice.name.clone()));
        }
        Ok(Self { runs, steps })
    }

    /// Which saga, version and digest this is.
    #[must_use]
    pub fn runs(&self) -> &Capability {
        &self.runs
    }

    /// The steps in order.
    #[must_use]
    pub fn steps(&self) -> &[PlannedStep] {
        &self.steps
    }

    /// The step of an intent.
    #[must_use]
    pub fn step(&self, seq: u32) -> Option<&PlannedStep> {
        self.steps.get(usize::try_from(seq).ok()?)
    }
}

impl Retry {
    /// For actions: two inline retries, ten calls in all, pauses from 1 s to 15 min.
    pub const ACTION: Self = Self {
        inline: 2,
        inline_pause: Duration::from_millis(50),
        attempts: Some(10),
        base: Duration::from_secs(1),
        cap: Duration::from_secs(15 * 60),
        floor: Duration::from_millis(100),
    };

    /// For compensations: the same, but without a limit.
    pub const COMPENSATION: Self = Self {
        attempts: None,
        ..Self::ACTION
    };
}

impl PlannedStep {
    /// A step with the default policies, 30 s a call, and a compensation.
    #[must_use]
    pub fn new(name: StepName) -> Self {
        Self {
            name,
            retry: Retry::ACTION,
            compensate: Some(Retry::COMPENSATION),
            time_limit: Duration::from_secs(30),
            recovery: Recovery::Hybrid,
        }
    }
}
