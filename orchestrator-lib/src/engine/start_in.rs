//! Starting inside the caller's database transaction, and running it here after the commit.

use std::sync::Arc;

use ring_core::{
    id::{SagaName, TransactionId},
    saga::Payload,
    store::Started as Stored,
};
use tokio_postgres::Transaction;

use super::Engine;
use crate::{Error, Started, saga::Definition, store::Joined};

impl Engine {
    pub(crate) async fn start_in(
        &self,
        caller: &mut Transaction<'_>,
        definition: &Definition,
        key: String,
        input: Payload,
    ) -> Result<Started, Error> {
        let answer = self.try_start_in(caller, definition, key, input).await;
        self.counted(answer)
    }

    async fn try_start_in(
        &self,
        caller: &mut Transaction<'_>,
        definition: &Definition,
        key: String,
        input: Payload,
    ) -> Result<Started, Error> {
        self.check(definition, &key)?;
        let start = self.row(definition, key, input, None);
        let (id, is_new) = match self.store.start_in(caller, &start).await? {
            Joined::Started(Stored::New(_)) => (start.id, true),
            Joined::Started(Stored::Same(id)) => (id, false),
            Joined::Started(Stored::Different(by)) => {
                return Err(Error::KeyUsed { key: start.key, by });
            }
            Joined::Started(Stored::InProgress | Stored::NoLease) => {
                return Err(Error::InProgress { key: start.key });
            }
            Joined::Started(Stored::Invalid(why)) => {
                return Err(Error::Invalid(why.as_str().to_owned()));
            }
            Joined::Elsewhere => return Err(Error::OtherDatabase),
            Joined::Retry(cause) => return Err(Error::RetryTransaction(cause)),
        };
        Ok(Started { id, is_new })
    }

    /// Runs here what a caller committed, if nobody claimed it yet, there is room, and its saga has
    /// not its share already. Else it is left to whoever owns its token.
    pub(crate) async fn take_started(self: &Arc<Self>, saga: &SagaName, id: TransactionId) {
        if self.config.retry_node && self.in_flight.has_its_share(saga) {
            return;
        }
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
