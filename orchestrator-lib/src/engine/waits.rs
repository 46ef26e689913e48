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
    told: watch::Receiver<Option<Option<Ended>>>,
}

impl Waits {
    pub(super) fn wait(&self, id: TransactionId) -> Wait<'_> {
        let told = self.lock().entry(id).or_default().subscribe();
        Wait {
            waits: self,
            id,
            told,
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
        match self.told.changed().await {
            Ok(()) => self.told.borrow_and_update().clone().flatten(),
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut map = self.waits.lock();
        // The own receiver is still counted.
        if map
            .get(&self.id)
            .is_some_and(|told| told.receiver_count() <= 1)
        {
            map.remove(&self.id);
        }
    }
}
