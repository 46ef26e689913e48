//! Work in the worker's own Postgres, behind the barrier: exactly once.
//!
//! The function runs in the database transaction that holds the barrier's row. What it returns is
//! stored and committed with its effect; what it refuses is rolled back whole.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use deadpool_postgres::Pool;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio_postgres::{Error, Transaction};

use super::{
    Call, DEFAULT_TIME_LIMIT, Refusal, Work,
    carry::{Input, json, payload, result},
    refusal::chain,
};
use crate::{
    barrier::{self, Entered},
    wire::{Answer, Word},
};

/// Longest wait for another call of the same key: then the caller is asked to come again.
const LOCK_MS: u32 = 3_000;

/// When to come again after that.
const BUSY: Duration = Duration::from_secs(1);

/// Work whose effect is in the transaction that its function is given:
///
/// ```no_run
/// # use ring_participant::worker::{Call, Refusal, Transactional, Worker};
/// # use tokio_postgres::Transaction;
/// # #[derive(serde::Deserialize)] struct Charge { customer: String, cents: i64 }
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Receipt { id: i64 }
/// async fn charge(sql: &Transaction<'_>, _: Call, ask: Charge) -> Result<Receipt, Refusal> {
///     let take = "update account set cents = cents - $2 where customer = $1 and cents >= $2";
///     if sql.execute(take, &[&ask.customer, &ask.cents]).await? == 0 {
///         return Err(Refusal::business("not enough money"));
///     }
///     let row = sql.query_one("insert into entry … returning id", &[]).await?;
///     Ok(Receipt { id: row.try_get(0)? })
/// }
/// async fn refund(
///     sql: &Transaction<'_>, call: Call, ask: Charge, receipt: Option<Receipt>,
/// ) -> Result<(), Refusal> {
/// #   let _ = (sql, call, ask, receipt);
///     Ok(())
/// }
/// # fn example(pool: deadpool_postgres::Pool) -> Result<(), ring_participant::worker::Mistakes> {
/// let worker = Worker::builder()
///     .on("charge", Transactional::new(&pool, charge).compensate(refund))
///     .build()?;
/// # Ok(()) }
/// ```
///
/// The function sends no `commit`, and does nothing that a rollback does not undo: that is
/// [`Started`](super::Started)'s.
#[derive(Debug)]
pub struct Transactional<P, R> {
    work: Work,
    pool: Pool,
    types: PhantomData<fn(P) -> R>,
}

/// An async function over a borrowed transaction: `async fn(&Transaction<'_>, Call, P) -> …`.
pub trait Action<'a, P, R>: Send + Sync {
    /// What it returns when called.
    type Answers: Future<Output = Result<R, Refusal>> + Send + 'a;

    /// Calls it.
    fn call(&self, sql: &'a Transaction<'a>, call: Call, payload: P) -> Self::Answers;
}

/// As [`Action`], for what undoes one: it also gets the action's result.
pub trait Compensation<'a, P, R>: Send + Sync {
    /// What it returns when called.
    type Answers: Future<Output = Result<(), Refusal>> + Send + 'a;

    /// Calls it.
    fn call(
        &self,
        sql: &'a Transaction<'a>,
        call: Call,
        payload: P,
        result: Option<R>,
    ) -> Self::Answers;
}

impl<'a, P, R, F, Fut> Action<'a, P, R> for F
where
    F: Fn(&'a Transaction<'a>, Call, P) -> Fut + Send + Sync,
    Fut: Future<Output = Result<R, Refusal>> + Send + 'a,
{
    type Answers = Fut;

    fn call(&self, sql: &'a Transaction<'a>, call: Call, payload: P) -> Fut {
        self(sql, call, payload)
    }
}

impl<'a, P, R, F, Fut> Compensation<'a, P, R> for F
where
    F: Fn(&'a Transaction<'a>, Call, P, Option<R>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), Refusal>> + Send + 'a,
{
    type Answers = Fut;

    fn call(&self, sql: &'a Transaction<'a>, call: Call, payload: P, result: Option<R>) -> Fut {
        self(sql, call, payload, result)
    }
}

impl<P, R> Transactional<P, R>
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// Work by this function, in a database that has the [barrier](barrier::install).
    pub fn new<F>(pool: &Pool, action: F) -> Self
    where
        F: for<'a> Action<'a, P, R> + 'static,
    {
        let action = Arc::new(action);
        let function: Function = Arc::new(move |sql, call, input, _| {
            let action = Arc::clone(&action);
            Box::pin(async move {
                let given = payload(&call, &input)?;
                done(action.call(sql, call, given).await)
            })
        });
        Self {
            work: Work {
                action: erased(pool.clone(), function),
                compensation: None,
                limit: DEFAULT_TIME_LIMIT,
            },
            pool: pool.clone(),
            types: PhantomData,
        }
    }

    /// What undoes it. It is not called when the action never came.
    #[must_use]
    pub fn compensate<F>(mut self, compensation: F) -> Self
    where
        F: for<'a> Compensation<'a, P, R> + 'static,
    {
        let compensation = Arc::new(compensation);
        let function: Function = Arc::new(move |sql, call, input, action| {
            let compensation = Arc::clone(&compensation);
            Box::pin(async move {
                let given = payload(&call, &input)?;
                let returned = result(&input, action.as_deref())?;
                done(compensation.call(sql, call, given, returned).await)
            })
        });
        self.work.compensation = Some(erased(self.pool.clone(), function));
        self
    }

    /// How long a call may take; default [`DEFAULT_TIME_LIMIT`]. Over it, it is rolled back.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.work.limit = limit;
        self
    }
}

impl<P, R> From<Transactional<P, R>> for Work {
    fn from(transactional: Transactional<P, R>) -> Self {
        transactional.work
    }
}

type Inside<'a> = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Answer>> + Send + 'a>>;

/// The function, its types erased: transaction, call, what came, what the action answered.
type Function = Arc<
    dyn for<'a> Fn(&'a Transaction<'a>, Call, Input, Option<String>) -> Inside<'a> + Send + Sync,
>;

fn done<R: Serialize>(answered: Result<R, Refusal>) -> Result<Box<RawValue>, Answer> {
    // It is rolled back, whatever the error was: not applied.
    let returned = answered.map_err(|refusal| refusal.answer(Word::Transient))?;
    json(&returned).map_err(Answer::Persistent)
}

fn erased(pool: Pool, function: Function) -> super::carry::Erased {
    Arc::new(move |call, input| {
        let (pool, function) = (pool.clone(), Arc::clone(&function));
        Box::pin(async move {
            carry_out(&pool, &function, call, input)
                .await
                .unwrap_or_else(|answer| answer)
        })
    })
}

/// Everything until the commit can be repeated; only the commit itself leaves a doubt.
async fn carry_out(
    pool: &Pool,
    function: &Function,
    call: Call,
    input: Input,
) -> Result<Answer, Answer> {
    let mut client = pool.get().await.map_err(|error| away(&error))?;
    let sql = client.transaction().await.map_err(|e| away(&e))?;
    let key = call.key().clone();
    let limit = format!("set local lock_timeout = {LOCK_MS}");
    // Sent together: no round trip more.
    let (_, entered) = tokio::try_join!(sql.batch_execute(&limit), barrier::enter(&sql, &key))
        .map_err(|error| failed(&error))?;
    let result = match entered {
        Entered::First { action } => {
            let result = function(&sql, call, input, action).await?;
            let stored = barrier::answer(&sql, &key, result.get()).await;
            stored.map_err(|e| failed(&e))?;
            Answer::Done {
                result,
                again: false,
            }
        }
        Entered::InProgress(pause) => return Err(Answer::InProgress(pause)),
        Entered::Again(_) | Entered::Nothing | Entered::Compensated => standing(entered),
    };
    sql.commit()
        .await
        .map_err(|e| Answer::Unknown(format!("the commit failed: {}", chain(&e))))?;
    Ok(result)
}

/// The answer of a call that has nothing to bring about.
pub(super) fn standing(entered: Entered) -> Answer {
    let done = |json: String, again| Answer::Done {
        result: RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        again,
    };
    match entered {
        Entered::Again(stored) => done(stored, true),
        Entered::Nothing => done("null".to_owned(), false),
        Entered::Compensated => Answer::Compensated,
        Entered::InProgress(pause) => Answer::InProgress(pause),
        // Never asked: a first call has its effect to bring about.
        Entered::First { .. } => Answer::InProgress(Duration::ZERO),
    }
}

pub(super) fn away(error: &dyn std::error::Error) -> Answer {
    Answer::Transient {
        says: format!("the worker's database can't be used: {}", chain(error)),
        retry_after: None,
    }
}

fn failed(error: &Error) -> Answer {
    if barrier::is_busy(error) {
        Answer::InProgress(BUSY)
    } else {
        away(error)
    }
}
