//! Sagas: definitions, checked whole when they are built.
//!
//! What a sound definition is decides [`definition`]. Knows neither transactions nor how steps are run.

mod definition;
mod diagram;

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use ring_core::saga::Class;
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use self::definition::Definition;
use self::definition::Draft;
pub use self::definition::{Mistake, Mistakes};
use crate::{Branch, Context, Flow, Group, Step, StepError, failure::Classifier};

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
    flow: Flow<I>,
    lifetime: Duration,
    idle: Option<Duration>,
    retention: Option<Duration>,
    classifier: Option<Classifier>,
    input: PhantomData<fn(I)>,
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
            flow: Flow::new(),
            lifetime: DEFAULT_LIFETIME,
            idle: None,
            retention: None,
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

    /// The definition as a Mermaid flow chart, for documents and pages.
    #[must_use]
    pub fn mermaid(&self) -> String {
        diagram::mermaid(&self.definition)
    }

    /// The definition as JSON: steps in order with kind, retries, limits, guards and groups.
    /// Durations are milliseconds.
    #[must_use]
    pub fn json(&self) -> String {
        diagram::json(&self.definition)
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
        self.flow = self.flow.step(step);
        self
    }

    /// Runs steps side by side: see [`Flow::parallel`].
    #[must_use]
    pub fn parallel(mut self, group: Group<I>) -> Self {
        self.flow = self.flow.parallel(group);
        self
    }

    /// Goes on with the steps of one case: see [`Flow::branch`].
    #[must_use]
    pub fn branch<C, F>(
        mut self,
        name: &'static str,
        decide: F,
        cases: impl FnOnce(Branch<I>) -> Branch<I>,
    ) -> Self
    where
        C: Into<String>,
        F: Fn(&Context, &I) -> Result<C, StepError> + Send + Sync + 'static,
    {
        self.flow = self.flow.branch(name, decide, cases);
        self
    }

    /// Runs steps only when the condition holds: see [`Flow::when`].
    #[must_use]
    pub fn when<F>(
        mut self,
        name: &'static str,
        condition: F,
        then: impl FnOnce(Flow<I>) -> Flow<I>,
    ) -> Self
    where
        F: Fn(&Context, &I) -> Result<bool, StepError> + Send + Sync + 'static,
    {
        self.flow = self.flow.when(name, condition, then);
        self
    }

    /// How long a transaction may live, pauses included; then it is disabled and a person decides.
    /// Default one day.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// How long a transaction may be without progress; then it is disabled. Progress is a recorded
    /// outcome of a step. Time that it spends waiting for a timer, a signal or a sub-saga does not
    /// count. Default: no limit but the lifetime.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = Some(limit);
        self
    }

    /// How long completed and undone transactions are kept, with their idempotency keys; at least
    /// the lifetime. A retry node forgets older ones about once an hour; what needs a person is
    /// never forgotten. Default: until somebody purges them.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
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
        let draft = Draft {
            name: self.name,
            version: self.version,
            nodes: self.flow.nodes,
            cases: self.flow.cases,
            lifetime: self.lifetime,
            idle: self.idle,
            retention: self.retention,
            classifier: self.classifier,
        };
        let definition = Arc::new(draft.check()?);
        let input = PhantomData;
        Ok(Saga { definition, input })
    }
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
            self.name, self.version, self.flow
        )
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
    fn settings_that_mean_nothing_are_mistakes() {
        let found = Saga::<u32>::new("s", 1)
            .step(Step::new("a", act).within(Duration::from_secs(1)))
            .step(
                Step::<u32, String>::signal("b")
                    .otherwise(&String::new())
                    .compensate(undo),
            )
            .parallel(Group::new().step(Step::new("c", act)))
            .branch(
                "d",
                |_, _| Ok("x"),
                |cases| cases.case("y", |f| f).case("y", |f| f),
            )
            .retention(Duration::from_secs(60))
            .idle(DEFAULT_LIFETIME)
            .build()
            .unwrap_err();
        let told = found.to_string();
        for said in [
            "signals",
            "calls nobody",
            "\"c\"",
            "cases of \"d\"",
            "retention",
            "idle",
        ] {
            assert!(told.contains(said), "{said}: {told}");
        }
    }

    fn forked() -> Saga<u32> {
        Saga::<u32>::new("forked", 1)
            .step(Step::new("a", act).compensate(undo))
            .branch(
                "way",
                |_, _| Ok("left"),
                |cases| {
                    cases
                        .case("left", |flow| flow.step(Step::new("l", act)))
                        .case("right", |flow| flow.step(Step::new("r", act)))
                },
            )
            .parallel(
                Group::new()
                    .step(Step::new("p", act))
                    .step(Step::new("q", act)),
            )
            .build()
            .unwrap()
    }

    #[test]
    fn a_diagram_shows_every_way_through() {
        let expected = "flowchart TD\n  start([start])\n  s0[[\"a\"]]\n  s1{\"way?\"}\n  \
            s2[\"l\"]\n  s3[\"r\"]\n  s4[\"p\"]\n  s5[\"q\"]\n  done([done])\n  \
            start --> s0\n  s0 --> s1\n  s1 -- left --> s2\n  s1 -- right --> s3\n  \
            s2 --> s4\n  s3 --> s4\n  s2 --> s5\n  s3 --> s5\n  s4 --> done\n  s5 --> done\n";
        assert_eq!(forked().mermaid(), expected);
    }

    #[test]
    fn the_json_names_kinds_guards_and_groups() {
        let json: serde_json::Value = serde_json::from_str(&forked().json()).unwrap();
        assert_eq!(json["steps"][1]["kind"], "decide");
        assert_eq!(json["steps"][3]["guards"][0]["case"], "right");
        assert_eq!(json["steps"][5]["beside"], "p");
        assert_eq!(
            json["steps"][0]["compensation"]["attempts"],
            serde_json::Value::Null
        );
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
