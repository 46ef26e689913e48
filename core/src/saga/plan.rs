//! What a saga's definition tells the machine: its steps in order and how each recovers.
//!
//! Functions, payload types and targets stay with who calls the steps. A plan is a flat list: a
//! step's place in it is its sequence number for ever. Branches are decisions whose recorded
//! result opens or closes the steps that are guarded by it; a group is a run of steps that are
//! open together; a step by itself is a group of one.

use alloc::{collections::BTreeSet, vec::Vec};
use core::{ops::Range, time::Duration};

use thiserror::Error;

use super::{Direction, Payload, Retry};
use crate::{id::StepName, store::Capability};

/// Most steps of one saga: far beyond anything that people still understand, and a log of that
/// many records is still claimed in one read.
pub const MAX_STEPS: usize = 500;

/// A saga's definition as the machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    runs: Capability,
    steps: Vec<PlannedStep>,
    idle: Option<Duration>,
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
    /// What its action is.
    pub kind: Kind,
    /// Decisions that must have come out so, or the step is passed.
    pub guards: Vec<Guard>,
    /// The group it belongs to: neighbours with the same number are open together.
    pub group: Option<u32>,
    /// How an action that may have been applied is settled.
    pub repeat: Repeat,
    /// Whether the action's effect and its record are one commit: without a record it was not
    /// applied, so it is never in doubt.
    pub atomic: bool,
}

/// What a step's action is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A call of a participant.
    #[default]
    Action,
    /// A pure function of input and results. Its result is recorded before anything acts on it,
    /// so that a replay never decides anew. Nothing to undo.
    Decide,
    /// Waits so long from when it was reached. Nothing to undo.
    Timer(Duration),
    /// Waits for the signal that has the step's name. Nothing to undo.
    Signal {
        /// How long from when it was reached; `None`: until the lifetime ends.
        within: Option<Duration>,
        /// The result when nobody signals in time; without it that is a refusal.
        otherwise: Option<Payload>,
    },
    /// A transaction of its own, started by the call; its end is this step's outcome, and its
    /// compensation is its own.
    Saga,
}

/// A step runs only when this decision came out so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Sequence number of the decision.
    pub decision: u32,
    /// Its result, as JSON text.
    pub case: Payload,
}

/// What is done with an action that may have been applied (X11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// Called again: its idempotency key makes that harmless.
    #[default]
    Key,
    /// Asked first; called again when it was not applied.
    Probe,
    /// Never called again: a person decides.
    Never,
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

/// Why steps make no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Two steps of one name.
    #[error("the step name {0} is used twice: results and idempotency keys are kept by name")]
    SameName(StepName),
    /// Too many.
    #[error("{0} steps, at most {MAX_STEPS} make a saga: start other sagas from it")]
    TooMany(usize),
    /// A guard that no decision before it can open.
    #[error("step {0} can't be reached: what it depends on is no decision before it")]
    Unreachable(StepName),
    /// A decision inside a group.
    #[error("step {0} decides inside a parallel group: decide before it")]
    DecidesInGroup(StepName),
}

impl Plan {
    /// Checks the steps.
    ///
    /// # Errors
    /// [`PlanError`] when a name is used twice, a guard or a group makes no sense, or there are
    /// more than [`MAX_STEPS`].
    pub fn new(runs: Capability, steps: Vec<PlannedStep>) -> Result<Self, PlanError> {
        if steps.len() > MAX_STEPS {
            return Err(PlanError::TooMany(steps.len()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = steps.iter().find(|s| !names.insert(&s.name)) {
            return Err(PlanError::SameName(twice.name.clone()));
        }
        for (step, seq) in steps.iter().zip(0..) {
            let decides = |guard: &Guard| {
                let before = usize::try_from(guard.decision)
                    .ok()
                    .filter(|_| guard.decision < seq);
                before.is_some_and(|i| steps[i].kind == Kind::Decide)
            };
            if !step.guards.iter().all(decides) {
                return Err(PlanError::Unreachable(step.name.clone()));
            }
            if step.kind == Kind::Decide && step.group.is_some() {
                return Err(PlanError::DecidesInGroup(step.name.clone()));
            }
        }
        let idle = None;
        Ok(Self { runs, steps, idle })
    }

    /// A transaction without progress for so long is disabled; time that it spends waiting for a
    /// timer, a signal or another transaction does not count.
    #[must_use]
    pub fn idle(mut self, limit: Option<Duration>) -> Self {
        self.idle = limit;
        self
    }

    /// How long it may be without progress.
    #[must_use]
    pub fn idle_limit(&self) -> Option<Duration> {
        self.idle
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

    /// The sequence numbers of the steps that are open together with this one.
    #[must_use]
    pub fn group(&self, seq: u32) -> Range<u32> {
        let alone = seq..seq.saturating_add(1);
        let Some(group) = self.step(seq).map(|s| s.group) else {
            return seq..seq;
        };
        if group.is_none() {
            return alone;
        }
        let same = |at: &u32| self.step(*at).is_some_and(|s| s.group == group);
        let first = (0..seq).rev().take_while(same).last().unwrap_or(seq);
        let last = (seq..).take_while(same).last().unwrap_or(seq);
        first..last.saturating_add(1)
    }
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
            kind: Kind::Action,
            guards: Vec::new(),
            group: None,
            repeat: Repeat::Key,
            atomic: false,
        }
    }

    /// Whether an action that ends without success stops the transaction instead of sending it
    /// back.
    #[must_use]
    pub fn stops(&self) -> bool {
        match self.recovery {
            Recovery::ForwardOnly | Recovery::Irreversible => true,
            Recovery::Hybrid | Recovery::BackwardFirst => false,
        }
    }

    /// The same for one that ended in doubt, or for certain: what must not be repeated goes to a
    /// person.
    #[must_use]
    pub fn stops_when(&self, doubt: bool) -> bool {
        self.stops() || (doubt && self.repeat == Repeat::Never)
    }

    /// Whether it has effects: what has none is passed in silence on the way back.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        match self.kind {
            Kind::Action | Kind::Saga => true,
            Kind::Decide | Kind::Timer(_) | Kind::Signal { .. } => false,
        }
    }

    /// Whether a call of it that left no record may have been applied.
    #[must_use]
    pub fn leaves_doubt(&self, direction: Direction) -> bool {
        self.has_effects() && !(self.atomic && direction == Direction::Forward)
    }
}
