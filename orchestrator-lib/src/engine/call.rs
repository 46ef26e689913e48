//! One call of a user's code, in a task of its own: a panic, a passed time limit and a dropped
//! call become failures of that step, and nothing of it outlives whoever waits for it.

use std::{pin::Pin, sync::Arc, time::Duration};

use ring_core::saga::{Asked, Call, Class, Direction, Input, Outcome, Payload, Text};
use tokio::{sync::Notify, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use super::Engine;
use crate::{
    Context, StepError,
    context::{Here, Shared},
    failure::Classifier,
    saga::Definition,
    step::ErasedStep,
    telemetry::{CALL_SECONDS, CALLS},
};

/// What a call is made with.
pub(crate) struct Caller {
    pub(crate) definition: Arc<Definition>,
    pub(crate) here: Here,
    pub(crate) input: Payload,
    pub(crate) shared: Shared,
    pub(crate) children: Arc<dyn Children>,
}

/// What starts and undoes sub-sagas.
pub(crate) trait Children: Send + Sync {
    /// Starts the child of a step once; its end comes to the parent as a wake-up.
    fn start(&self, child: Arc<Definition>, call: Call, input: Payload) -> Answer<'_>;

    /// Undoes what the step started, if it did.
    fn undo(&self, child: Arc<Definition>, call: Call) -> Answer<'_>;
}

/// What a call gives in the end.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Result<Outcome, StepError>> + Send + 'a>>;

impl Caller {
    /// Makes the call; dropping the future aborts it.
    pub(crate) async fn make(self, call: Call) -> Input {
        Input::Returned {
            call: call.call,
            outcome: self.outcome(call).await,
        }
    }

    /// What the call gives, classified.
    pub(crate) async fn outcome(&self, call: Call) -> Outcome {
        match self.answer(call).await {
            Ok(outcome) => outcome,
            Err(error) => failed(&error, self.definition.classifier.as_ref()),
        }
    }

    async fn answer(&self, call: Call) -> Result<Outcome, StepError> {
        let Some(step) = self.definition.steps.get(&call.step) else {
            let name = call.step;
            return Err(StepError::persistent(format_args!(
                "the saga has no step {name}"
            )));
        };
        match (call.position.direction, &step.child) {
            (Direction::Forward, Some(child)) => {
                // The action of such a step gives the child's input.
                let Outcome::Done(input) = self.act(step, call.clone()).await? else {
                    return Err(StepError::persistent("the sub-saga has no input"));
                };
                self.children.start(Arc::clone(child), call, input).await
            }
            (Direction::Compensating, Some(child)) => {
                self.children.undo(Arc::clone(child), call).await
            }
            (_, None) if call.asked == Asked::Probe => self.probe(step, call).await,
            (_, None) => self.act(step, call).await,
        }
    }

    async fn act(&self, step: &ErasedStep, call: Call) -> Result<Outcome, StepError> {
        let function = match call.position.direction {
            Direction::Forward => Some(Arc::clone(&step.action)),
            Direction::Compensating => step.compensation.clone(),
        };
        let Some(function) = function else {
            return Ok(Outcome::Done(Payload::null()));
        };
        let limits = Limits::of(step, &call);
        let result_of_action = call.result_of_action.clone();
        let context = self.context(call);
        let beats = context.beats();
        let input = self.input.clone();
        // The function itself runs in the task, too: it may panic before its first await.
        let task = async move { function(context, input, result_of_action).await };
        limits.hold(beats, task).await.map(Outcome::Done)
    }

    async fn probe(&self, step: &ErasedStep, call: Call) -> Result<Outcome, StepError> {
        let Some(probe) = step.probe.clone() else {
            return Ok(Outcome::NotApplied);
        };
        let limits = Limits::of(step, &call);
        let context = self.context(call);
        let beats = context.beats();
        let input = self.input.clone();
        let task = async move { probe(context, input).await };
        let found = limits.hold(beats, task).await?;
        Ok(found.map_or(Outcome::NotApplied, Outcome::Done))
    }

    fn context(&self, call: Call) -> Context {
        Context::new(self.here.clone(), call, self.shared.clone())
    }
}

/// How long a call may take, and how long it may be silent.
struct Limits {
    whole: Duration,
    silence: Option<Duration>,
}

impl Limits {
    fn of(step: &ErasedStep, call: &Call) -> Self {
        Self {
            whole: call.time_limit,
            silence: step.heartbeat.filter(|_| {
                call.position.direction == Direction::Forward && call.asked == Asked::Act
            }),
        }
    }

    /// Runs the task in the background until it ends or a limit is over.
    async fn hold<T: Send + 'static>(
        &self,
        beats: Arc<Notify>,
        task: impl Future<Output = Result<T, StepError>> + Send + 'static,
    ) -> Result<T, StepError> {
        let task = AbortOnDropHandle::new(tokio::spawn(task));
        let Self { whole, silence } = *self;
        let ended = async {
            tokio::select! {
                biased;
                joined = task => Ok(joined),
                silent = silence_of(silence, beats) => Err(silent),
            }
        };
        match timeout(whole, ended).await {
            Ok(Ok(Ok(done))) => done,
            Ok(Ok(Err(join))) => match join.try_into_panic() {
                Ok(panic) => Err(StepError::panicked(&*panic)),
                Err(_) => Err(StepError::unknown("the runtime dropped the call")),
            },
            Ok(Err(silence)) => Err(StepError::unknown(format_args!(
                "no heartbeat within {silence:?}"
            ))),
            Err(_) => Err(StepError::unknown(format_args!(
                "no answer within {whole:?}"
            ))),
        }
    }
}

/// Completes when nothing was heard for so long.
async fn silence_of(limit: Option<Duration>, beats: Arc<Notify>) -> Duration {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    while timeout(limit, beats.notified()).await.is_ok() {}
    limit
}

/// What a failure is to the machine.
pub(crate) fn failed(error: &StepError, classifier: Option<&Classifier>) -> Outcome {
    let class = classifier
        .and_then(|classify| classify(error))
        .or_else(|| error.class())
        .unwrap_or(Class::Unknown);
    Outcome::Failed {
        class,
        error: Text::new(&error.to_string()),
        retry_after: error.asked_pause(),
    }
}

impl Engine {
    /// Counts what a call gave.
    pub(super) fn called(&self, input: &Input, took: Duration) {
        let Input::Returned { outcome, .. } = input else {
            return;
        };
        let result = match outcome {
            Outcome::Done(_) => "done",
            Outcome::Waits => "waits",
            Outcome::NotApplied => "not_applied",
            Outcome::Failed { class, .. } => class.as_str(),
        };
        self.called_so(result, took);
    }

    pub(super) fn called_so(&self, result: &'static str, took: Duration) {
        self.meter.count_as(CALLS, "result", result);
        self.meter.took(CALL_SECONDS, took);
    }
}
