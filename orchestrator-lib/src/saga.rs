//! Sagas: definitions, checked whole when they are built.
//!
//! Decides what a sound definition is. Knows neither transactions nor how steps are run.

use std::{collections::BTreeMap, fmt, marker::PhantomData, sync::Arc, time::Duration};

use ring_core::{
    id::{NameError, SagaName, StepName},
    saga::{Class, Plan, PlanError, PlannedStep},
    store::Capability,
};
use ring_shell::token::hash;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Step, StepError, failure::Classifier, step::ErasedStep};

/// How long a transaction may live unless its saga says otherwise (`design.md` section 3).
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A saga over an input `I`: a checked definition. Cheap to clone; the handle by which
/// transactions are [started](crate::Node::start), so that the input's type is checked.
pub struct Saga<I> {
    definition: Arc<Definition>,
    input: PhantomData<fn(I)>,
}

/// A saga that is being written; [`build`](Self::build) checks it.
pub struct SagaBuilder<I> {
    name: String,
    version: u32,
    steps: Vec<ErasedStep>,
    lifetime: Duration,
    classifier: Option<Classifier>,
    input: PhantomData<fn(I)>,
}

/// A saga without its types: the plan is what the machine knows, the functions stay here.
pub(crate) struct Definition {
    pub(crate) plan: Arc<Plan>,
    pub(crate) lifetime: Duration,
    pub(crate) steps: BTreeMap<StepName, ErasedStep>,
    pub(crate) classifier: Option<Classifier>,
}

/// One mistake in a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// A name breaks its rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Versions count from 1.
    #[error("versions count from 1")]
    Version,
    /// A saga does something.
    #[error("there is no step")]
    NoSteps,
    /// The steps make no plan: a name is there twice, or there are too many.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A call needs time.
    #[error("step {0:?} has a time limit of zero")]
    NoTime(String),
    /// A retry policy that makes no attempt, or pauses shorter than 10 ms.
    #[error("step {step:?}: {rule}")]
    Retry {
        /// The step.
        step: String,
        /// What must hold.
        rule: &'static str,
    },
    /// A lifetime of zero, or of over a year: the store keeps transactions that long.
    #[error("a lifetime must be above zero and at most a year")]
    Lifetime,
}

/// Everything that is wrong with a definition, at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("saga {saga:?} can't be built: {}", list(.mistakes))]
pub struct Mistakes {
    /// The saga's name as given.
    pub saga: String,
    /// What is wrong.
    pub mistakes: Vec<Mistake>,
}

impl<I> Saga<I>
where
    I: Serialize + DeserializeOwned + Send + 'static,
{
    /// Begins a definition. Transactions keep the name and version they were started with: raise
    /// the version when steps are added, removed, renamed or change their meaning.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a definition is checked as a whole when it is built"
    )]
    #[must_use]
    pub fn new(name: impl Into<String>, version: u32) -> SagaBuilder<I> {
        SagaBuilder {
            name: name.into(),
            version,
            steps: Vec::new(),
            lifetime: DEFAULT_LIFETIME,
            classifier: None,
            input: PhantomData,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.definition.plan.runs().saga.as_str()
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.definition.plan.runs().version
    }

    /// The digest of its name, version and steps: what tells a definition that was changed under
    /// the same version.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.definition.plan.runs().digest
    }

    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }
}

impl<I> SagaBuilder<I>
where
    I: Serialize + DeserializeOwned + Send + 'static,
{
    /// Adds a step; steps run in this order and are undone in the reverse one.
    #[must_use]
    pub fn step<R>(mut self, step: Step<I, R>) -> Self {
        self.steps.push(step.erased);
        self
    }

    /// How long a transaction may live, pauses included; then it is disabled and a person decides.
    /// Default one day.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Classifies errors of all steps; `None` leaves the class as the step gave it.
    #[must_use]
    pub fn classify<F>(mut self, classifier: F) -> Self
    where
        F: Fn(&StepError) -> Option<Class> + Send + Sync + 'static,
    {
        self.classifier = Some(Arc::new(classifier));
        self
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// [`Mistakes`]: all of them at once.
    pub fn build(self) -> Result<Saga<I>, Mistakes> {
        let mut mistakes = self.mistakes();
        // The steps are checked under a bad name, too.
        let name = SagaName::new(&self.name)
            .map_err(|e| mistakes.push(e.into()))
            .or_else(|()| SagaName::new("unnamed"));
        let mut planned = Vec::new();
        let mut steps = BTreeMap::new();
        for step in self.steps {
            check_step(&step, &mut mistakes);
            match StepName::new(&step.name) {
                Ok(name) => {
                    planned.push(step.planned(name.clone()));
                    steps.insert(name, step);
                }
                Err(e) => mistakes.push(e.into()),
            }
        }
        let plan = name.ok().and_then(|saga| {
            let runs = Capability {
                digest: digest(&saga, self.version, &planned),
                version: self.version,
                saga,
            };
            Plan::new(runs, planned)
                .map_err(|e| mistakes.push(e.into()))
                .ok()
        });
        match plan {
            Some(plan) if mistakes.is_empty() => Ok(Saga {
                definition: Arc::new(Definition {
                    plan: Arc::new(plan),
                    lifetime: self.lifetime,
                    steps,
                    classifier: self.classifier,
                }),
                input: PhantomData,
            }),
            _ => Err(Mistakes {
                saga: self.name,
                mistakes,
            }),
        }
    }

    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.version == 0 {
            mistakes.push(Mistake::Version);
        }
        if self.steps.is_empty() {
            mistakes.push(Mistake::NoSteps);
        }
        let year = Duration::from_secs(366 * 24 * 3600);
        if self.lifetime.is_zero() || self.lifetime > year {
            mistakes.push(Mistake::Lifetime);
        }
        mistakes
    }
}

fn check_step(step: &ErasedStep, mistakes: &mut Vec<Mistake>) {
    if step.time_limit.is_zero() {
        mistakes.push(Mistake::NoTime(step.name.clone()));
    }
    if let Some(Err(e)) = &step.target {
        mistakes.push(e.clone().into());
    }
    for retry in [step.retry, step.compensation_retry] {
        let rule = if retry.attempts == Some(0) {
            "a retry policy makes at least one attempt"
        } else if retry.base < Duration::from_millis(10) || retry.cap < retry.base {
            "pauses are at least 10 ms, and the cap is not below the first"
        } else {
            continue;
        };
        mistakes.push(Mistake::Retry {
            step: step.name.clone(),
            rule,
        });
    }
}

/// What decides the meaning of stored transactions: which steps there are, in which order, and
/// which can be undone. Policies may be tuned without a new version.
fn digest(saga: &SagaName, version: u32, steps: &[PlannedStep]) -> String {
    let mut text = format!("{saga}\n{version}\n");
    for step in steps {
        let undone = if step.compensate.is_some() { "+" } else { "-" };
        text.push_str(undone);
        text.push_str(step.name.as_str());
        text.push('\n');
    }
    format!("{:032x}", hash(text.as_bytes()))
}

fn list(mistakes: &[Mistake]) -> String {
    let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    all.join("; ")
}

impl<I> Clone for Saga<I> {
    fn clone(&self) -> Self {
        Self {
            definition: Arc::clone(&self.definition),
            input: PhantomData,
        }
    }
}

impl<I> fmt::Debug for Saga<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

impl<I> fmt::Debug for SagaBuilder<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SagaBuilder({} v{}, {:?})",
            self.name, self.version, self.steps
        )
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Capability {
            saga,
            version,
            digest,
        } = self.plan.runs();
        write!(f, "Saga({saga} v{version} {digest})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Retry};

    async fn act(_: Context, _: u32) -> Result<String, StepError> {
        Ok("done".into())
    }

    async fn undo(_: Context, _: u32, _: Option<String>) -> Result<(), StepError> {
        Ok(())
    }

    #[test]
    fn all_mistakes_of_a_definition_are_reported_at_once() {
        let found = Saga::<u32>::new("bad name", 0)
            .step(Step::new("a", act).time_limit(Duration::ZERO))
            .step(Step::new("a", act).retry(Retry::never().attempts(0)))
            .step(Step::new("", act).target("no such name"))
            .lifetime(Duration::ZERO)
            .build()
            .unwrap_err();
        assert_eq!(found.mistakes.len(), 8, "{found}");
        assert!(Saga::<u32>::new("empty", 1).build().is_err());
    }

    #[test]
    fn the_digest_tells_steps_apart_and_not_policies() {
        let plain = |retry| {
            Saga::<u32>::new("s", 1)
                .step(Step::new("a", act).retry(retry))
                .build()
                .unwrap()
        };
        let undone = Saga::<u32>::new("s", 1)
            .step(Step::new("a", act).compensate(undo))
            .build()
            .unwrap();
        assert_eq!(
            plain(Retry::never()).digest(),
            plain(Retry::default()).digest()
        );
        assert_ne!(plain(Retry::never()).digest(), undone.digest());
    }

    /// Stored with every transaction: another value would leave all of them without executor.
    #[test]
    fn the_digest_of_a_definition_never_changes() {
        let saga = Saga::<u32>::new("order", 3)
            .step(Step::new("reserve", act).compensate(undo))
            .step(Step::new("pay", act))
            .build()
            .unwrap();
        assert_eq!(saga.digest(), "8233ac47fcb5cb2508f55380705b6159");
    }
}
