//! Steps that call nobody: timers, signals, and sub-sagas, whose calls are the child's.

use std::{sync::Arc, time::Duration};

use ring_core::saga::{Kind, Payload};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Step,
    erased::{Erased, read, write},
};
use crate::{Context, Key, Saga, StepError};

impl<I> Step<I, ()>
where
    I: DeserializeOwned + Send + 'static,
{
    /// Waits so long from when the step is reached, across restarts and deploys, without holding
    /// anything. Exact to about a second.
    pub fn timer(name: &'static str, wait: Duration) -> Self {
        Self::of(Key::new(name), Kind::Timer(wait), uncalled())
    }
}

impl<I, R> Step<I, R>
where
    I: DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// Waits for the signal of this name ([`Node::signal`](crate::Node::signal)): an approval, a
    /// callback. Its value is the step's result. A signal that comes before the step is reached is
    /// kept for it; of several the first counts. Waits until the transaction's lifetime ends,
    /// unless [`within`](Self::within) says otherwise.
    ///
    /// ```
    /// # use orchestrator_lib::{Key, Saga, Step};
    /// # use std::time::Duration;
    /// const APPROVAL: Key<bool> = Key::new("approval");
    /// let saga = Saga::<u32>::new("expense", 1)
    ///     .step(Step::signal(APPROVAL).within(Duration::from_secs(2 * 24 * 3600)).otherwise(&false))
    ///     .lifetime(Duration::from_secs(7 * 24 * 3600))
    ///     .build()?;
    /// # Ok::<(), orchestrator_lib::Mistakes>(())
    /// ```
    pub fn signal(name: impl Into<Key<R>>) -> Self {
        let (within, otherwise) = (None, None);
        Self::of(name.into(), Kind::Signal { within, otherwise }, uncalled())
    }

    /// The deadline of a [signal](Self::signal), from when the step is reached. When it passes,
    /// the step counts as refused and compensation starts, unless there is a result
    /// [otherwise](Self::otherwise).
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        match &mut self.erased.kind {
            Kind::Signal { within, .. } => *within = Some(deadline),
            Kind::Action | Kind::Decide | Kind::Timer(_) | Kind::Saga => {
                self.erased
                    .misplaced
                    .push("a deadline (within) is for signals");
            }
        }
        self
    }

    /// The result when nobody signals in time.
    #[must_use]
    pub fn otherwise(mut self, result: &R) -> Self {
        match (&mut self.erased.kind, write(result)) {
            (Kind::Signal { otherwise, .. }, Ok(result)) => *otherwise = Some(result),
            (Kind::Signal { .. }, Err(_)) => {
                self.erased
                    .misplaced
                    .push("the result of otherwise can't be stored as JSON");
            }
            (Kind::Action | Kind::Decide | Kind::Timer(_) | Kind::Saga, _) => {
                self.erased
                    .misplaced
                    .push("a result without an answer (otherwise) is for signals");
            }
        }
        self
    }

    /// Runs another saga as a transaction of its own and waits for its end. Its result is what
    /// the child's last step returned. A child that was undone refuses this step; one that needs a
    /// person is waited for. When this step is compensated, a running child is cancelled and a
    /// completed one is undone, as a whole and in its own reverse order.
    ///
    /// The child is started once, whatever dies: its key is made of the parent and the step. It
    /// runs on any node of the service that knows the child's saga.
    ///
    /// ```
    /// # use orchestrator_lib::{Context, Saga, Step, StepError};
    /// # async fn pack(_: Context, _: u32) -> Result<String, StepError> { Ok("p".into()) }
    /// let parcel = Saga::<u32>::new("parcel", 1).step(Step::new("pack", pack)).build()?;
    /// let order = Saga::<String>::new("order", 1)
    ///     .step(Step::<String, String>::saga("ship", &parcel, |_, item| Ok(item.len() as u32)))
    ///     .build()?;
    /// # Ok::<(), orchestrator_lib::Mistakes>(())
    /// ```
    pub fn saga<C, F>(name: impl Into<Key<R>>, saga: &Saga<C>, input: F) -> Self
    where
        C: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(&Context, &I) -> Result<C, StepError> + Send + Sync + 'static,
    {
        let action: Erased = Arc::new(move |cx, own, _| {
            let child = read::<I>("input", &own)
                .and_then(|own| input(&cx, &own))
                .and_then(|child| write(&child));
            Box::pin(std::future::ready(child))
        });
        let mut step = Self::of(name.into(), Kind::Saga, action);
        step.erased.child = Some(Arc::clone(saga.definition()));
        step
    }
}

/// The action of a step that has none.
fn uncalled() -> Erased {
    Arc::new(|_, _, _| Box::pin(std::future::ready(Ok(Payload::null()))))
}
