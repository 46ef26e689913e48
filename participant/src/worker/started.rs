//! Work outside the database, with a row that remembers that it was begun.
//!
//! Decides when work is begun, taken up again, or waited for; its effect is at least once, so the
//! function passes the key on to whatever it calls.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use deadpool_postgres::Pool;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    Call, DEFAULT_TIME_LIMIT, Refusal, Work,
    carry::{Input, json, payload, result},
    refusal::chain,
    transactional::{away, standing},
};
use crate::{
    Key,
    barrier::{self, Entered},
    wire::{Answer, Word},
};

/// How much longer than the work its row is held: for storing the answer.
const MARGIN: Duration = Duration::from_secs(5);

/// Work that is done elsewhere: a card is charged, a parcel is ordered, a mail is sent.
///
/// ```no_run
/// # use ring_participant::worker::{Call, Refusal, Started, Worker};
/// # async fn charge(_: Call, _: u32) -> Result<String, Refusal> { Ok(String::new()) }
/// # async fn refund(_: Call, _: u32, _: Option<String>) -> Result<(), Refusal> { Ok(()) }
/// # fn example(pool: deadpool_postgres::Pool) -> Result<(), ring_participant::worker::Mistakes> {
/// let worker = Worker::builder()
///     .on("charge", Started::new(&pool, charge).compensate(refund))
///     .build()?;
/// # Ok(()) }
/// ```
///
/// While a call is being carried out, others of its key and its compensation are told to come
/// again. When the worker dies with it, that lasts for the time limit and a few seconds.
#[derive(Debug)]
pub struct Started<P, R> {
    action: Function,
    compensation: Option<Function>,
    pool: Pool,
    limit: Duration,
    types: PhantomData<fn(P) -> R>,
}

type Outside = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Failed>> + Send>>;

/// The function, its types erased: call, what came, what the action answered.
#[derive(Clone)]
struct Function(Arc<dyn Fn(Call, Input, Option<String>) -> Outside + Send + Sync>);

/// Work without a result.
struct Failed {
    answer: Answer,
    /// It may have had its effect.
    applied: bool,
}

impl<P, R> Started<P, R>
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// Work by this function; the database has the [barrier](barrier::install).
    pub fn new<F, Fut>(pool: &Pool, action: F) -> Self
    where
        F: Fn(Call, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Refusal>> + Send + 'static,
    {
        let action = Function(Arc::new(move |call, input: Input, _| {
            match payload(&call, &input) {
                Ok(given) => outside(action(call, given)),
                Err(answer) => unread(answer),
            }
        }));
        Self {
            action,
            compensation: None,
            pool: pool.clone(),
            limit: DEFAULT_TIME_LIMIT,
            types: PhantomData,
        }
    }

    /// What undoes it. It gets what the action returned, or `None` when the action was begun and
    /// nobody knows more; it is not called when the action never came.
    #[must_use]
    pub fn compensate<F, Fut>(mut self, compensation: F) -> Self
    where
        F: Fn(Call, P, Option<R>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        let function = move |call: Call, input: Input, stored: Option<String>| {
            let read = payload(&call, &input)
                .and_then(|given| Ok((given, result(&input, stored.as_deref())?)));
            match read {
                Ok((given, returned)) => outside(compensation(call, given, returned)),
                Err(answer) => unread(answer),
            }
        };
        self.compensation = Some(Function(Arc::new(function)));
        self
    }

    /// How long a call may take; default [`DEFAULT_TIME_LIMIT`].
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl<P, R> From<Started<P, R>> for Work {
    fn from(started: Started<P, R>) -> Self {
        let Started {
            action,
            compensation,
            pool,
            limit,
            types: _,
        } = started;
        let erased = |function: Function| -> super::carry::Erased {
            let pool = pool.clone();
            Arc::new(move |call, input| {
                let (pool, function) = (pool.clone(), function.clone());
                Box::pin(async move {
                    carry_out(&pool, &function, limit, call, input)
                        .await
                        .unwrap_or_else(|answer| answer)
                })
            })
        };
        Self {
            compensation: compensation.map(&erased),
            action: erased(action),
            // The work's own limit comes first: it frees the row.
            limit: limit.saturating_add(MARGIN),
        }
    }
}

async fn carry_out(
    pool: &Pool,
    function: &Function,
    limit: Duration,
    call: Call,
    input: Input,
) -> Result<Answer, Answer> {
    let hold = limit.saturating_add(MARGIN);
    let key = call.key().clone();
    let action = {
        let client = pool.get().await.map_err(|e| away(&e))?;
        match barrier::begin(&client, &key, hold)
            .await
            .map_err(|e| away(&e))?
        {
            Entered::First { action } => action,
            entered @ (Entered::Again(_)
            | Entered::Nothing
            | Entered::Compensated
            | Entered::InProgress(_)) => return Ok(standing(entered)),
        }
    };
    // No connection is kept while the work goes on.
    let over = |_| {
        Err(Failed {
            answer: Answer::Unknown(format!("not done within {limit:?}")),
            applied: true,
        })
    };
    let work = tokio::time::timeout(limit, (function.0)(call, input, action));
    match work.await.unwrap_or_else(over) {
        Ok(result) => finish(pool, &key, result).await,
        Err(failed) => {
            leave(pool, &key, failed.applied).await;
            Err(failed.answer)
        }
    }
}

async fn finish(pool: &Pool, key: &Key, result: Box<RawValue>) -> Result<Answer, Answer> {
    let unstored = |error: &dyn std::error::Error| {
        Answer::Unknown(format!(
            "done, but its answer could not be stored: {}",
            chain(error)
        ))
    };
    let client = pool.get().await.map_err(|e| unstored(&e))?;
    let stored = barrier::finish(&client, key, result.get())
        .await
        .map_err(|e| unstored(&e))?;
    match stored {
        Some(stored) => Ok(standing(Entered::Again(stored))),
        None => {
            // The hold was over and the compensation went ahead: a person may have to look.
            tracing::warn!(%key, "done after it was compensated");
            Ok(Answer::Compensated)
        }
    }
}

/// Should this fail, the row is free when its hold is over.
async fn leave(pool: &Pool, key: &Key, applied: bool) {
    let Ok(client) = pool.get().await else {
        return;
    };
    if let Err(error) = barrier::leave(&client, key, applied).await {
        tracing::debug!(%key, "started work waits for the end of its hold: {error}");
    }
}

fn outside<R, Fut>(work: Fut) -> Outside
where
    R: Serialize + 'static,
    Fut: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    Box::pin(async move {
        let returned = work.await.map_err(|refusal| Failed {
            applied: refusal.may_be_applied(),
            answer: refusal.answer(Word::Unknown),
        })?;
        json(&returned).map_err(|says| Failed {
            answer: Answer::Unknown(says),
            applied: true,
        })
    })
}

/// What came could not be read: nothing was begun.
fn unread(answer: Answer) -> Outside {
    let failed = Failed {
        answer,
        applied: false,
    };
    Box::pin(std::future::ready(Err(failed)))
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Function")
    }
}
