//! Callers that wait for the end of a transaction.
//!
//! Ends of transactions that ran here are told at once; all others are looked up in the store with
//! a growing pause, so that a lost notification costs a moment and never an end.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ring_core::id::TransactionId;
use tokio::sync::watch;

use crate::Ended;

type Told = watch::Sender<Option<Option<Ended>>>;

/// Who waits for what.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<BTreeMap<TransactionId, Told>>);

/// A caller that waits; forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    waits: &'a Waits,
    id: TransactionId,
    /// There until the drop, which gives it up under the lock.
    told: Option<watch::Receiver<Option<Option<Ended>>>>,
}

impl Waits {
    pub(super) fn wait(&self, id: TransactionId) -> Wait<'_> {
        let told = self.lock().entry(id).or_default().subscribe();
        Wait {
            waits: self,
            id,
            told: Some(told),
        }
    }

    /// It ended here; how, where that is known without the store.
    pub(super) fn ended(&self, id: TransactionId, how: Option<Ended>) {
        if let Some(told) = self.lock().get(&id) {
            told.send_replace(Some(how));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TransactionId, Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait<'_> {
    /// Completes when it ended here.
    pub(crate) async fn ended(&mut self) -> Option<Ended> {
        if let Some(told) = &mut self.told
            && told.changed().await.is_ok()
        {
            return told.borrow_and_update().clone().flatten();
        }
        std::future::pending().await
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut map = self.waits.lock();
        // Given up under the lock: of two that are dropped together the later one finds nobody.
        self.told = None;
        if map
            .get(&self.id)
            .is_some_and(|told| told.receiver_count() == 0)
        {
            map.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use uuid::Uuid;

    use super::*;

    #[test]
    fn waiters_that_go_together_leave_nothing_behind() {
        let waits = Waits::default();
        let id = TransactionId(Uuid::nil());
        for _ in 0..2_000 {
            let together = Barrier::new(2);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let wait = waits.wait(id);
                        together.wait();
                        drop(wait);
                    });
                }
            });
            assert!(waits.lock().is_empty());
        }
    }
}
