//! Sub-sagas of a transaction that runs here: started and undone in the store. Their ends come as
//! wake-ups.

use std::sync::Arc;

use ring_core::{
    id::TransactionId,
    saga::{Call, Direction, IdempotencyKey, Outcome, Payload, State},
    store::Fence,
};

use super::{
    Engine,
    call::{Answer, Children},
};
use crate::{StepError, error::chain, saga::Definition, store::ChildStarted};

/// What starts the children of one claim of one transaction.
pub(super) struct Nursery {
    engine: Arc<Engine>,
    parent: TransactionId,
    fence: Fence,
}

impl Nursery {
    pub(super) fn new(engine: Arc<Engine>, parent: TransactionId, fence: Fence) -> Self {
        Self {
            engine,
            parent,
            fence,
        }
    }

    /// The child's key: the same for every claim of the parent.
    fn key(&self, call: &Call) -> String {
        let key = IdempotencyKey::new(self.parent, Direction::Forward, &call.step);
        key.as_str().to_owned()
    }
}

impl Children for Nursery {
    fn start(&self, child: Arc<Definition>, call: Call, input: Payload) -> Answer<'_> {
        Box::pin(async move {
            let start = self.engine.row(&child, self.key(&call), input, None);
            let parent = (self.parent, self.fence);
            let store = &self.engine.store;
            match store.start_child(parent, &call.step, &start).await {
                Ok(ChildStarted::There) => Ok(Outcome::Waits),
                Ok(ChildStarted::Different) => Err(StepError::persistent(
                    "the sub-saga was started with another input: its input must not change",
                )),
                // The next write says the same.
                Ok(ChildStarted::Lost) => Err(StepError::transient("the transaction was lost")),
                Err(error) => Err(unanswered(&error)),
            }
        })
    }

    fn undo(&self, child: Arc<Definition>, call: Call) -> Answer<'_> {
        Box::pin(async move {
            let saga = &child.plan.runs().saga;
            let key = self.key(&call);
            let undone = self.engine.store.undo_child(saga, &key, child.lifetime);
            match undone.await {
                Ok(None | Some(State::Compensated)) => Ok(Outcome::Done(Payload::null())),
                Ok(Some(
                    State::Running
                    | State::Paused
                    | State::Completed
                    | State::Terminated
                    | State::Disabled
                    | State::Quarantined,
                )) => Ok(Outcome::Waits),
                Err(error) => Err(unanswered(&error)),
            }
        })
    }
}

/// Asking again is safe, so nothing is in doubt.
fn unanswered(error: &crate::store::Error) -> StepError {
    StepError::transient(format_args!("the store: {}", chain(error)))
}
