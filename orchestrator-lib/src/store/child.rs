//! Sub-sagas: started under the parent's fence, undone by the parent alone. What a child's end
//! tells its parent is the database's own doing (`migrations/V3__open_intents.sql`).

use std::time::Duration;

use ring_core::{
    id::{SagaName, StepName, TransactionId},
    saga::State,
    store::{Fence, Start},
};
use uuid::Uuid;

use super::{
    Store,
    error::Error,
    row::{get, known},
    sql, wake, words,
};

const UNDO: &str = "undo a sub-saga";

/// Answer to the start of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildStarted {
    /// It is there, by this start or an earlier one of the same parent and step.
    There,
    /// It is there, but was started with another input.
    Different,
    /// The parent is somebody else's, or goes back: nothing was started.
    Lost,
}

impl Store {
    /// Starts a sub-saga for a step of a transaction that this claim runs. It is stored unowned
    /// and due: any node takes it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when it is not known whether it was stored, [`Error::Conflict`]
    /// when the parent's row was held until the limit; asking again is safe.
    pub async fn start_child(
        &self,
        (parent, fence): (TransactionId, Fence),
        step: &StepName,
        start: &Start,
    ) -> Result<ChildStarted, Error> {
        let capability = ring_core::store::Capability {
            saga: start.saga.clone(),
            version: start.version,
            digest: start.digest.clone(),
        };
        let definition = self.define(&capability).await?;
        let (region, cluster, service) = self.place();
        let (epoch, nonce) = (words::big(fence.epoch), fence.nonce.0);
        let (step, saga) = (step.as_str(), start.saga.as_str());
        let (key, input) = (start.key.as_str(), start.input.as_str());
        let lifetime = words::millis(start.lifetime);
        let asked = self.inner.claim.call("start a sub-saga", async |s| {
            let statement = s.prepare(sql::CHILD_START).await?;
            s.one(
                &statement,
                &[
                    &region,
                    &cluster,
                    &service,
                    &parent.0,
                    &epoch,
                    &nonce,
                    &step,
                    &start.id.0,
                    &start.token.0,
                    &saga,
                    &definition,
                    &key,
                    &input,
                    &lifetime,
                ],
            )
            .await
        });
        let row = asked.await?;
        let same: Option<bool> = get(&row, "same")?;
        Ok(match (get(&row, "ours")?, same) {
            (_, Some(true)) | (true, None) => ChildStarted::There,
            (_, Some(false)) => ChildStarted::Different,
            (false, None) => ChildStarted::Lost,
        })
    }

    /// Undoes the child that was started under this key: cancels it while it runs, sends it back
    /// when it is completed. Returns the state that it was found in; `None` when there is none.
    /// `again` is its lifetime from now, when it goes back.
    ///
    /// # Errors
    /// As for [`Store::start_child`].
    pub async fn undo_child(
        &self,
        saga: &SagaName,
        key: &str,
        again: Duration,
    ) -> Result<Option<State>, Error> {
        let (region, cluster, service) = self.place();
        let body = wake::cancel("its parent", "the parent transaction is undone")?;
        // The same for every repeat, so that one cancel is enough.
        let id = Uuid::from_u128(ring_shell::token::hash(key.as_bytes()));
        let (saga, body) = (saga.as_str(), body.as_str());
        let again = words::millis(again);
        // Again when the child ended while its row was waited for; an end is final, so once.
        for _ in 0..2 {
            let asked = self.inner.claim.call(UNDO, async |s| {
                s.rows(
                    sql::CHILD_UNDO,
                    &[
                        &id,
                        &wake::CANCEL,
                        &body,
                        &region,
                        &cluster,
                        &service,
                        &saga,
                        &key,
                        &again,
                    ],
                )
                .await
            });
            let rows = asked.await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            if !get::<bool>(row, "late")? {
                let state = State::parse(get(row, "state")?);
                return known(state, "an unknown state").map(Some);
            }
        }
        Err(Error::conflict(UNDO, "the child ended at that moment"))
    }
}
