//! Starting inside the caller's database transaction, and running it here after the commit.

use std::sync::Arc;

use ring_core::{id::TransactionId, saga::Payload, store::Started as Stored};
use tokio_postgres::Transaction;

use super::Engine;
use crate::{Error, Started, saga::Definition, store::Joined, telemetry::STARTED};

impl Engine {
    pub(crate) async fn start_in(
        &self,
        caller: &mut Transaction<'_>,
        definition: &Definition,
        key: String,
        input: Payload,
    ) -> Result<Started, Error> {
        self.check(definition, &key)?;
        let start = self.row(definition, key, input, None);
        let joined = self.store.start_in(caller, &start).await?;
        let (started, result) = match joined {
            Joined::Started(Stored::New(_)) => (Ok((start.id, true)), "new"),
            Joined::Started(Stored::Same(id)) => (Ok((id, false)), "same"),
            Joined::Started(Stored::Different(by)) => {
                (Err(Error::KeyUsed { key: start.key, by }), "refused")
            }
            Joined::Started(Stored::InProgress | Stored::NoLease) => {
                (Err(Error::InProgress { key: start.key }), "busy")
            }
            Joined::Started(Stored::Invalid(why)) => {
                (Err(Error::Invalid(why.as_str().to_owned())), "refused")
            }
            Joined::Elsewhere => (Err(Error::OtherDatabase), "refused"),
            Joined::Retry(cause) => (Err(Error::RetryTransaction(cause)), "busy"),
        };
        self.meter.count_as(STARTED, "result", result);
        let (id, is_new) = started?;
        Ok(Started { id, is_new })
    }

    /// Runs here what a caller committed, if nobody claimed it yet and there is room. Else it is
    /// left to whoever owns its token.
    pub(crate) async fn take_started(self: &Arc<Self>, id: TransactionId) {
        let room = self.in_flight.room(1);
        let (Some(incarnation), false) = (self.lease.incarnation(), room.is_empty()) else {
            return;
        };
        let pending = self.in_flight.pending();
        // Asked after the nonce is announced: a drain waits for those, and only for those.
        if self.lease.is_draining() || self.superseded.is_cancelled() {
            return;
        }
        let nonce = pending.nonce();
        match self.store.take_started(incarnation, nonce, id).await {
            Ok(claims) => self.launch_all(incarnation, claims.rows, room, "started"),
            Err(error) => tracing::debug!(%id, %error, "left to the ring"),
        }
        drop(pending);
    }
}
