//! How steps follow each other: in sequence, side by side, or as a decision says.
//!
//! Collects; what makes sense is checked when the saga is built. A decision is a step of its own:
//! what it decided is recorded before anything acts on it, so a retry never decides anew.

use std::{fmt, marker::PhantomData, sync::Arc};

use ring_core::saga::Kind;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Context, Key, Step, StepError,
    step::{
        ErasedStep,
        erased::{Erased, read, write},
    },
};

/// Steps in sequence: a saga, or one case of a [branch](Flow::branch).
pub struct Flow<I> {
    pub(crate) nodes: Vec<Node>,
    /// The cases of each decision.
    pub(crate) cases: Vec<(String, Vec<String>)>,
    input: PhantomData<fn(I)>,
}

/// Steps side by side: see [`Flow::parallel`].
pub struct Group<I> {
    steps: Vec<ErasedStep>,
    input: PhantomData<fn(I)>,
}

/// The cases of a decision: see [`Flow::branch`].
pub struct Branch<I> {
    cases: Vec<(String, Flow<I>)>,
}

/// One step where it stands.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) step: ErasedStep,
    /// Decisions that must have come out so: name and case.
    pub(crate) guards: Vec<(String, String)>,
    /// The first step of its group.
    pub(crate) group: Option<String>,
}

impl<I> Flow<I>
where
    I: Serialize + DeserializeOwned + Send + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            cases: Vec::new(),
            input: PhantomData,
        }
    }

    /// Adds a step; steps run in this order and are undone in the reverse one.
    #[must_use]
    pub fn step<R>(mut self, step: Step<I, R>) -> Self {
        self.push(step.erased, None);
        self
    }

    /// Runs steps side by side and goes on when all are done. When one fails for good, none that
    /// has not begun is begun, those under way are waited for, and what may have been applied is
    /// undone one by one, in the reverse of the order given here.
    ///
    /// ```
    /// # use orchestrator_lib::{Context, Group, Saga, Step, StepError};
    /// # async fn act(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
    /// let saga = Saga::<u32>::new("trip", 1)
    ///     .parallel(Group::new().step(Step::new("flight", act)).step(Step::new("hotel", act)))
    ///     .step(Step::new("charge", act))
    ///     .build()?;
    /// # Ok::<(), orchestrator_lib::Mistakes>(())
    /// ```
    #[must_use]
    pub fn parallel(mut self, group: Group<I>) -> Self {
        let first = group.steps.first().map(|s| s.name.clone());
        for step in group.steps {
            self.push(step, first.clone());
        }
        self
    }

    /// Goes on with the steps of one case. The decision is a step with a name of its own; it
    /// looks at the input and at earlier results, calls nobody, and names a case. A name that is
    /// no case is a mistake in the saga and starts compensation.
    ///
    /// ```
    /// # use orchestrator_lib::{Context, Saga, Step, StepError};
    /// # async fn act(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
    /// let saga = Saga::<u32>::new("parcel", 1)
    ///     .branch(
    ///         "route",
    ///         |_, weight| Ok(if *weight > 30 { "freight" } else { "post" }),
    ///         |cases| {
    ///             cases
    ///                 .case("freight", |flow| flow.step(Step::new("book", act)))
    ///                 .case("post", |flow| flow.step(Step::new("stamp", act)))
    ///         },
    ///     )
    ///     .build()?;
    /// # Ok::<(), orchestrator_lib::Mistakes>(())
    /// ```
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
        let Branch { cases } = cases(Branch { cases: Vec::new() });
        let known: Vec<String> = cases.iter().map(|(case, _)| case.clone()).collect();
        self.cases.push((name.to_owned(), known.clone()));
        self.decide(name, move |cx, input| {
            let case = decide(cx, input)?.into();
            if known.contains(&case) {
                return Ok(case);
            }
            Err(StepError::persistent(format_args!(
                "{name} decides {case:?}, which is none of its cases: {}",
                known.join(", ")
            )))
        });
        for (case, flow) in cases {
            self.cases.extend(flow.cases);
            for mut node in flow.nodes {
                node.guards.insert(0, (name.to_owned(), case.clone()));
                self.nodes.push(node);
            }
        }
        self
    }

    /// Runs steps only when the condition holds: a [branch](Self::branch) with nothing otherwise.
    ///
    /// ```
    /// # use orchestrator_lib::{Context, Saga, Step, StepError};
    /// # async fn act(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
    /// let saga = Saga::<u32>::new("order", 1)
    ///     .when("insured", |_, cents| Ok(*cents > 50_000), |flow| {
    ///         flow.step(Step::new("insure", act))
    ///     })
    ///     .step(Step::new("ship", act))
    ///     .build()?;
    /// # Ok::<(), orchestrator_lib::Mistakes>(())
    /// ```
    #[must_use]
    pub fn when<F>(self, name: &'static str, condition: F, then: impl FnOnce(Self) -> Self) -> Self
    where
        F: Fn(&Context, &I) -> Result<bool, StepError> + Send + Sync + 'static,
    {
        let decide = move |cx: &Context, input: &I| {
            condition(cx, input).map(|holds| if holds { "yes" } else { "no" })
        };
        self.branch(name, decide, |cases| {
            cases.case("yes", then).case("no", |flow| flow)
        })
    }

    fn decide<F>(&mut self, name: &'static str, decide: F)
    where
        F: Fn(&Context, &I) -> Result<String, StepError> + Send + Sync + 'static,
    {
        let action: Erased = Arc::new(move |cx, input, _| {
            let case = read::<I>("input", &input)
                .and_then(|input| decide(&cx, &input))
                .and_then(|case| write(&case));
            Box::pin(std::future::ready(case))
        });
        let step = Step::<I, String>::of(Key::new(name), Kind::Decide, action);
        self.push(step.erased, None);
    }

    fn push(&mut self, step: ErasedStep, group: Option<String>) {
        let guards = Vec::new();
        self.nodes.push(Node {
            step,
            guards,
            group,
        });
    }
}

impl<I> Group<I>
where
    I: Serialize + DeserializeOwned + Send + 'static,
{
    /// A group without steps yet.
    #[must_use]
    pub fn new() -> Self {
        let (steps, input) = (Vec::new(), PhantomData);
        Self { steps, input }
    }

    /// Adds a step to run beside the others.
    #[must_use]
    pub fn step<R>(mut self, step: Step<I, R>) -> Self {
        self.steps.push(step.erased);
        self
    }
}

impl<I> Branch<I>
where
    I: Serialize + DeserializeOwned + Send + 'static,
{
    /// What is done in this case; nothing when the flow stays empty.
    #[must_use]
    pub fn case(mut self, case: impl Into<String>, flow: impl FnOnce(Flow<I>) -> Flow<I>) -> Self {
        self.cases.push((case.into(), flow(Flow::new())));
        self
    }
}

impl<I> Default for Group<I>
where
    I: Serialize + DeserializeOwned + Send + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<I> fmt::Debug for Flow<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.nodes.iter().map(|n| &n.step.name);
        f.debug_list().entries(names).finish()
    }
}

impl<I> fmt::Debug for Group<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.steps).finish()
    }
}

impl<I> fmt::Debug for Branch<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.cases).finish()
    }
}
