//! Telling a transaction something from outside: signals and cancels. Where it runs or waits does
//! not matter; the store keeps what was told.

use ring_core::{
    id::{StepName, TransactionId},
    saga::Payload,
};
use serde::Serialize;
use uuid::Uuid;

use super::Node;
use crate::{Error, Key, store::Woke};

/// What became of a signal or a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Kept with the transaction, which goes on with it.
    Kept,
    /// The same one was kept before.
    Before,
    /// There is no such transaction, or it has ended: nothing was kept.
    Ended,
}

impl Node {
    /// Signals a transaction: the value is the result of its
    /// [signal step](crate::Step::signal) of this name, whether that is reached already or not. Of
    /// several signals the first counts. `id` makes it safe to ask again: the same id is the same
    /// signal.
    ///
    /// ```no_run
    /// # use orchestrator_lib::{Key, Node, TransactionId};
    /// # async fn approve(node: &Node, expense: TransactionId, click: uuid::Uuid) -> Result<(), orchestrator_lib::Error> {
    /// const APPROVAL: Key<bool> = Key::new("approval");
    /// node.signal(click, expense, APPROVAL, &true).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::InputTooLarge`], [`Error::StepName`], [`Error::Store`]: then it
    /// may be kept or not.
    pub async fn signal<R: Serialize + Sync>(
        &self,
        id: Uuid,
        transaction: TransactionId,
        step: impl Into<Key<R>>,
        value: &R,
    ) -> Result<Heard, Error> {
        let name = step.into().name();
        let name = StepName::new(name).map_err(|e| Error::StepName(e.to_string()))?;
        let json = serde_json::to_string(value).map_err(Error::Input)?;
        let value = Payload::new(json).map_err(|e| Error::InputTooLarge(e.to_string()))?;
        let store = &self.0.engine.store;
        let woke = store.signal(id, transaction, &name, &value).await?;
        Ok(self.heard(transaction, woke))
    }

    /// Asks a transaction to undo itself. It does so at the next step's boundary: a call that is
    /// under way is waited for. A transaction that is being undone already, or has ended, is left
    /// alone.
    ///
    /// # Errors
    /// [`Error::InputTooLarge`], [`Error::Store`].
    pub async fn cancel(
        &self,
        transaction: TransactionId,
        actor: &str,
        reason: &str,
    ) -> Result<Heard, Error> {
        let store = &self.0.engine.store;
        let woke = store.cancel(Uuid::new_v4(), transaction, (actor, reason));
        let woke = woke.await?;
        Ok(self.heard(transaction, woke))
    }

    fn heard(&self, transaction: TransactionId, woke: Woke) -> Heard {
        match woke {
            Woke::Stored(wake_seq) => {
                self.0.engine.woken(transaction, wake_seq);
                Heard::Kept
            }
            Woke::Already => Heard::Before,
            Woke::NotOpen => Heard::Ended,
        }
    }
}
