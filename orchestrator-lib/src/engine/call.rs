//! One call of a user's code, in a task of its own: a panic, a passed time limit and a dropped
//! call become failures of that step, and nothing of it outlives whoever waits for it.

use std::{sync::Arc, time::Duration};

use ring_core::saga::{Call, Class, Direction, Input, Outcome, Payload, Text};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Context, StepError,
    context::{Here, Shared},
    failure::Classifier,
    saga::Definition,
};

/// What a call is made with.
pub(crate) struct Caller {
    pub(crate) definition: Arc<Definition>,
    pub(crate) here: Here,
    pub(crate) input: Payload,
    pub(crate) shared: Shared,
}

impl Caller {
    /// Makes the call; dropping the future aborts it.
    pub(crate) async fn make(self, call: Call) -> Input {
        let number = call.call;
        let outcome = match self.done(call).await {
            Ok(result) => Outcome::Done(result),
            Err(error) => failed(&error, self.definition.classifier.as_ref()),
        };
        Input::Returned {
            call: number,
            outcome,
        }
    }

    async fn done(&self, call: Call) -> Result<Payload, StepError> {
        let limit = call.time_limit;
        let Some(step) = self.definition.steps.get(&call.step) else {
            let name = call.step;
            return Err(StepError::persistent(format_args!(
                "the saga has no step {name}"
            )));
        };
        let function = match call.position.direction {
            Direction::Forward => Some(Arc::clone(&step.action)),
            Direction::Compensating => step.compensation.clone(),
        };
        let Some(function) = function else {
            return Ok(Payload::null());
        };
        let result_of_action = call.result_of_action.clone();
        let context = Context::new(self.here.clone(), call, self.shared.clone());
        let input = self.input.clone();
        // The function itself runs in the task, too: it may panic before its first await.
        let task = async move { function(context, input, result_of_action).await };
        limited(limit, AbortOnDropHandle::new(tokio::spawn(task))).await
    }
}

async fn limited(
    limit: Duration,
    task: AbortOnDropHandle<Result<Payload, StepError>>,
) -> Result<Payload, StepError> {
    match tokio::time::timeout(limit, task).await {
        Ok(Ok(done)) => done,
        Ok(Err(join)) => match join.try_into_panic() {
            Ok(panic) => Err(StepError::panicked(&*panic)),
            Err(_) => Err(StepError::unknown("the runtime dropped the call")),
        },
        Err(_) => Err(StepError::unknown(format_args!(
            "no answer within {limit:?}"
        ))),
    }
}

fn failed(error: &StepError, classifier: Option<&Classifier>) -> Outcome {
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
