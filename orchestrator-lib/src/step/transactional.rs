//! Steps whose effect is in the saga store's own database: their SQL and their record are one
//! commit, so the effect happens exactly once.

use std::{
    future::ready,
    sync::{Arc, Mutex, PoisonError},
};

use ring_core::saga::{Class, Kind, Payload};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Step,
    erased::{Erased, read, write},
};
use crate::{Context, Key, StepError, store::StoreTransaction};

/// The transaction on its way from the engine to the step, among what the step can use.
pub(crate) struct Lent(Mutex<Option<StoreTransaction>>);

impl Lent {
    pub(crate) fn new(tx: StoreTransaction) -> Self {
        Self(Mutex::new(Some(tx)))
    }

    fn take(cx: &Context) -> Result<StoreTransaction, StepError> {
        let lent = cx.shared::<Self>().ok();
        let tx = lent.and_then(|l| l.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        tx.ok_or_else(|| {
            StepError::persistent(
                "a transactional step runs in the saga store's database: it needs a node, not a trial",
            )
        })
    }
}

impl<I, R> Step<I, R>
where
    I: DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// A step whose action is SQL in the saga store's own database. What it does over its
    /// [`StoreTransaction`] is committed together with the step's record, or not at all: *exactly
    /// once*, whatever dies when, without idempotency key or barrier. So it is never in doubt, and
    /// every error, panic or passed time limit means that nothing was applied: *unknown* counts as
    /// *transient*. That holds for the SQL alone; a mail that the step sends is sent again.
    ///
    /// ```
    /// # use orchestrator_lib::{Context, Step, StepError, StoreTransaction};
    /// async fn debit(_: Context, cents: i64, tx: StoreTransaction) -> Result<(), StepError> {
    ///     let sql = "update account set cents = cents - $1 where name = 'alice' and cents >= $1";
    ///     match tx.execute(sql, &[&cents]).await? {
    ///         0 => Err(StepError::business("not enough money")),
    ///         _ => Ok(()),
    ///     }
    /// }
    /// let step = Step::transactional("debit", debit);
    /// ```
    ///
    /// An error of Postgres that comes by `?` is *persistent* when it is about the data (a
    /// constraint), else *transient*; a saga's [classifier](crate::SagaBuilder::classify) is asked
    /// first.
    pub fn transactional<F, Fut>(name: impl Into<Key<R>>, action: F) -> Self
    where
        F: Fn(Context, I, StoreTransaction) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, StepError>> + Send + 'static,
    {
        let action: Erased = Arc::new(move |cx, input, _| {
            let given = read("input", &input).and_then(|input| Ok((input, Lent::take(&cx)?)));
            match given {
                Ok((input, tx)) => {
                    let call = action(cx, input, tx);
                    Box::pin(async move { write(&call.await.map_err(classed)?) })
                }
                Err(mistake) => Box::pin(ready(Err(mistake))),
            }
        });
        let mut step = Self::of(name.into(), Kind::Action, action);
        step.erased.atomic = true;
        step
    }

    /// As [`compensate`](Self::compensate), in the saga store's own database: the undoing is
    /// committed together with its record, so it is done exactly once. The action may be of either
    /// kind; after a transactional one the result is always there.
    #[must_use]
    pub fn compensate_transactional<F, Fut>(mut self, compensation: F) -> Self
    where
        F: Fn(Context, I, Option<R>, StoreTransaction) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.erased.atomic_compensation = true;
        self.erased.compensation = Some(Arc::new(move |cx, input, result| {
            let given = read("input", &input).and_then(|input| {
                let result = result.map(|r| read("result", &r)).transpose()?;
                Ok((input, result, Lent::take(&cx)?))
            });
            match given {
                Ok((input, result, tx)) => {
                    let call = compensation(cx, input, result, tx);
                    Box::pin(async move { call.await.map(|()| Payload::null()).map_err(classed) })
                }
                Err(mistake) => Box::pin(ready(Err(mistake))),
            }
        }));
        self
    }
}

/// The class of an error that nobody classified: all of it is rolled back.
fn classed(error: StepError) -> StepError {
    if error.class().is_some() {
        return error;
    }
    let refused = error
        .cause::<tokio_postgres::Error>()
        .and_then(tokio_postgres::Error::code)
        .is_some_and(|code| ["22", "23"].iter().any(|p| code.code().starts_with(p)));
    error.classed(if refused {
        Class::Persistent
    } else {
        Class::Transient
    })
}
