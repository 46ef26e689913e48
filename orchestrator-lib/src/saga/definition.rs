//! What makes a sound definition, and what it is without its types.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use ring_core::{
    id::{NameError, SagaName, StepName},
    saga::{Guard, Kind, Payload, Plan, PlanError, PlannedStep, Repeat},
    store::Capability,
};
use ring_shell::token::hash;

use crate::{failure::Classifier, flow::Node, step::ErasedStep};

/// Longest lifetime: the store keeps transactions that long.
const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// A saga without its types: the plan is what the machine knows, the functions stay here.
pub(crate) struct Definition {
    pub(crate) plan: Arc<Plan>,
    pub(crate) lifetime: Duration,
    pub(crate) retention: Option<Duration>,
    pub(crate) steps: BTreeMap<StepName, ErasedStep>,
    pub(crate) classifier: Option<Classifier>,
    /// The cases of each decision.
    pub(crate) cases: BTreeMap<String, Vec<String>>,
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
    /// A setting that means nothing for this kind of step.
    #[error("step {step:?}: {what}")]
    Misplaced {
        /// The step.
        step: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The same case twice, or a decision without a case.
    #[error("the cases of {0:?} must be at least one, and each once")]
    Cases(String),
    /// A group of fewer than two steps runs nothing side by side.
    #[error("the parallel group of {0:?} has only one step")]
    Lonely(String),
    /// What is forgotten before it ends could be started twice.
    #[error("the retention must not be shorter than the lifetime")]
    Retention,
    /// An idle limit of zero disables everything.
    #[error("an idle limit must be above zero and below the lifetime")]
    Idle,
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

/// A definition that is not checked yet.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) nodes: Vec<Node>,
    pub(super) cases: Vec<(String, Vec<String>)>,
    pub(super) lifetime: Duration,
    pub(super) idle: Option<Duration>,
    pub(super) retention: Option<Duration>,
    pub(super) classifier: Option<Classifier>,
}

impl Draft {
    /// Checks everything and reports all mistakes at once.
    pub(super) fn check(self) -> Result<Definition, Mistakes> {
        let mut mistakes = self.limits();
        // The steps are checked under a bad name, too.
        let name = SagaName::new(&self.name)
            .map_err(|e| mistakes.push(e.into()))
            .or_else(|()| SagaName::new("unnamed"));
        let planned = self.planned(&mut mistakes);
        let plan = name.ok().and_then(|saga| {
            let runs = Capability {
                digest: digest(&saga, self.version, &planned, &self.nodes),
                version: self.version,
                saga,
            };
            Plan::new(runs, planned)
                .map_err(|e| mistakes.push(e.into()))
                .ok()
        });
        let named = |n: Node| Some((StepName::new(&n.step.name).ok()?, n.step));
        match plan {
            Some(plan) if mistakes.is_empty() => Ok(Definition {
                plan: Arc::new(plan.idle(self.idle)),
                lifetime: self.lifetime,
                retention: self.retention,
                steps: self.nodes.into_iter().filter_map(named).collect(),
                classifier: self.classifier,
                cases: self.cases.into_iter().collect(),
            }),
            _ => Err(Mistakes {
                saga: self.name,
                mistakes,
            }),
        }
    }

    fn limits(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut say = |wrong: bool, mistake| {
            if wrong {
                mistakes.push(mistake);
            }
        };
        say(self.version == 0, Mistake::Version);
        say(self.nodes.is_empty(), Mistake::NoSteps);
        let lifetime = self.lifetime;
        say(lifetime.is_zero() || lifetime > YEAR, Mistake::Lifetime);
        say(
            self.retention.is_some_and(|r| r < lifetime),
            Mistake::Retention,
        );
        let idle = |limit: Duration| limit.is_zero() || limit >= lifetime;
        say(self.idle.is_some_and(idle), Mistake::Idle);
        mistakes
    }

    fn planned(&self, mistakes: &mut Vec<Mistake>) -> Vec<PlannedStep> {
        let place = |name: &str| {
            let at = self.nodes.iter().position(|n| n.step.name == name);
            at.and_then(|at| u32::try_from(at).ok()).unwrap_or(u32::MAX)
        };
        let mut planned = Vec::new();
        for node in &self.nodes {
            check_step(&node.step, mistakes);
            match StepName::new(&node.step.name) {
                Ok(name) => {
                    let mut step = node.step.planned(name);
                    step.group = node.group.as_deref().map(place);
                    let guard = |(decision, case): &(String, String)| Guard {
                        decision: place(decision),
                        case: quoted(case),
                    };
                    step.guards = node.guards.iter().map(guard).collect();
                    planned.push(step);
                }
                Err(e) => mistakes.push(e.into()),
            }
        }
        self.groups(mistakes);
        planned
    }

    fn groups(&self, mistakes: &mut Vec<Mistake>) {
        for (decision, cases) in &self.cases {
            let different: BTreeSet<&String> = cases.iter().collect();
            if cases.is_empty() || different.len() < cases.len() {
                mistakes.push(Mistake::Cases(decision.clone()));
            }
        }
        let first: BTreeSet<&String> = self.nodes.iter().filter_map(|n| n.group.as_ref()).collect();
        for name in first {
            let same = |n: &&Node| n.group.as_ref() == Some(name);
            if self.nodes.iter().filter(same).count() < 2 {
                mistakes.push(Mistake::Lonely(name.clone()));
            }
        }
    }
}

/// A case as a decision's result is stored.
fn quoted(case: &str) -> Payload {
    let json = serde_json::Value::from(case).to_string();
    // A case that is too long to be stored is no case that a decision can name.
    Payload::new(json).unwrap_or_else(|_| Payload::null())
}

fn check_step(step: &ErasedStep, mistakes: &mut Vec<Mistake>) {
    if step.time_limit.is_zero() {
        mistakes.push(Mistake::NoTime(step.name.clone()));
    }
    if let Some(Err(e)) = &step.target {
        mistakes.push(e.clone().into());
    }
    for what in &step.misplaced {
        mistakes.push(Mistake::Misplaced {
            step: step.name.clone(),
            what,
        });
    }
    let waits = matches!(step.kind, Kind::Timer(_) | Kind::Signal { .. });
    let called = step.compensation.is_some() || step.probe.is_some() || step.heartbeat.is_some();
    if waits && called {
        mistakes.push(Mistake::Misplaced {
            step: step.name.clone(),
            what: "a timer or signal calls nobody: no compensation, probe or heartbeat",
        });
    }
    if step.child.is_some() && (step.compensation.is_some() || step.repeat != Repeat::Key) {
        mistakes.push(Mistake::Misplaced {
            step: step.name.clone(),
            what: "a sub-saga undoes itself and is started once by its key",
        });
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

/// What decides the meaning of stored transactions: which steps there are, in which order, on
/// which decisions, and which can be undone. Policies may be tuned without a new version.
fn digest(saga: &SagaName, version: u32, steps: &[PlannedStep], nodes: &[Node]) -> String {
    let mut text = format!("{saga}\n{version}\n");
    for (step, node) in steps.iter().zip(nodes) {
        let undone = if step.compensate.is_some() { "+" } else { "-" };
        text.push_str(undone);
        text.push_str(step.name.as_str());
        match &step.kind {
            Kind::Action if step.atomic => text.push_str(" commits"),
            Kind::Action => {}
            Kind::Decide => text.push_str(" decides"),
            Kind::Timer(_) => text.push_str(" waits"),
            Kind::Signal { .. } => text.push_str(" is signalled"),
            Kind::Saga => {
                let child = node.step.child.as_ref().map(|d| d.plan.runs().saga.clone());
                let child = child.map_or_else(String::new, |saga| saga.to_string());
                text.push_str(&format!(" runs {child}"));
            }
        }
        for (decision, case) in &node.guards {
            text.push_str(&format!(" if {decision}={case:?}"));
        }
        if let Some(group) = &node.group {
            text.push_str(&format!(" beside {group}"));
        }
        text.push('\n');
    }
    format!("{:032x}", hash(text.as_bytes()))
}

fn list(mistakes: &[Mistake]) -> String {
    let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    all.join("; ")
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
