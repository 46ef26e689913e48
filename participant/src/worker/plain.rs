//! Work without a barrier: the function itself recognises a repetition by its key.

use std::{future::Future, marker::PhantomData, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    Call, DEFAULT_TIME_LIMIT, Refusal, Work,
    carry::{Carried, Erased, Input, json, payload, result},
};
use crate::wire::{Answer, Word};

/// Work whose function is called each time a call comes. `P` is what the step is given, `R` what it
/// returns.
#[derive(Debug)]
pub struct Plain<P, R> {
    work: Work,
    types: PhantomData<fn(P) -> R>,
}

impl<P, R> Plain<P, R>
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// Work by this function.
    pub fn new<F, Fut>(action: F) -> Self
    where
        F: Fn(Call, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Refusal>> + Send + 'static,
    {
        let action: Erased = Arc::new(move |call, input: Input| match payload(&call, &input) {
            Ok(given) => carried(action(call, given)),
            Err(answer) => Box::pin(std::future::ready(answer)),
        });
        Self {
            work: Work {
                action,
                compensation: None,
                limit: DEFAULT_TIME_LIMIT,
            },
            types: PhantomData,
        }
    }

    /// What undoes it. It gets what the action returned, or `None` when nobody knows; an action
    /// that comes after it must find a mark and be refused.
    #[must_use]
    pub fn compensate<F, Fut>(mut self, compensation: F) -> Self
    where
        F: Fn(Call, P, Option<R>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        self.work.compensation = Some(Arc::new(move |call, input: Input| {
            let read = payload(&call, &input).and_then(|p| Ok((p, result(&input, None)?)));
            match read {
                Ok((given, done)) => carried(compensation(call, given, done)),
                Err(answer) => Box::pin(std::future::ready(answer)),
            }
        }));
        self
    }

    /// How long a call may take; default [`DEFAULT_TIME_LIMIT`]. Over it, it is dropped and
    /// answered *unknown*.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.work.limit = limit;
        self
    }
}

impl<P, R> From<Plain<P, R>> for Work {
    fn from(plain: Plain<P, R>) -> Self {
        plain.work
    }
}

fn carried<R, Fut>(call: Fut) -> Carried
where
    R: Serialize + 'static,
    Fut: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    Box::pin(async move {
        let done = match call.await {
            Ok(done) => done,
            Err(refusal) => return refusal.answer(Word::Unknown),
        };
        match json(&done) {
            Ok(result) => Answer::Done {
                result,
                again: false,
            },
            Err(says) => Answer::Unknown(says),
        }
    })
}
