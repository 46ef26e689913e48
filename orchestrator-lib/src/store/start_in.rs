//! A start in somebody else's database transaction, and taking the row after its commit. Decides
//! what may go wrong there without harm to the caller: everything but the connection itself is
//! undone to a savepoint, so that the caller's own work goes on.

use ring_core::{
    id::{Nonce, TransactionId},
    store::{Capability, Incarnation, Start, Started, Taken},
};
use tokio_postgres::{
    Transaction,
    error::SqlState,
    types::{ToSql, Type},
};
use uuid::Uuid;

use super::{
    Claims, Store,
    error::{Error, Reason, Verdict},
    sql, start,
};

const START: &str = "start in the caller's transaction";

/// Looks for a key that came and went.
const TRIES: u32 = 3;

/// Nested in the caller's transaction under this name.
const SAVEPOINT: &str = "ringsaga_start";

/// The lock limit belongs to the caller: it is changed for the start and put back.
const LIMIT: &str = "with before as materialized (select pg_catalog.current_setting('lock_timeout') as v) \
     select v, pg_catalog.set_config('lock_timeout', $1, true) from before";

/// What became of a start in the caller's transaction. It holds when the caller commits.
#[derive(Clone, Debug)]
pub enum Joined {
    /// As for any start.
    Started(Started),
    /// The caller's connection leads to another database than this store.
    Elsewhere,
    /// A serialization failure or a deadlock: the caller repeats its whole transaction.
    Retry(Error),
}

impl Store {
    /// Stores a new transaction with the caller's commit, or finds the one that the key belongs
    /// to. `start.claim` must be none: the row is taken after the commit.
    ///
    /// # Errors
    /// Those of the caller's connection, and of the own one when the definition is new. The
    /// caller's transaction can go on unless its connection broke.
    pub async fn start_in(
        &self,
        caller: &mut Transaction<'_>,
        start: &Start,
    ) -> Result<Joined, Error> {
        if let Some(refused) = start::refuse(start) {
            return Ok(Joined::Started(Started::Invalid(refused)));
        }
        let capability = Capability {
            saga: start.saga.clone(),
            version: start.version,
            digest: start.digest.clone(),
        };
        // Both on the own connection: neither belongs into what the caller may roll back.
        let definition = self.define(&capability).await?;
        let store = self.id().await?;
        // Dropped, it rolls back to where it began.
        let savepoint = caller.savepoint(SAVEPOINT).await.map_err(said)?;
        match self.join(&savepoint, store, definition, start).await {
            Ok(joined) => {
                savepoint.commit().await.map_err(said)?;
                Ok(joined)
            }
            Err(error) => {
                if !error.is_closed() {
                    savepoint.rollback().await.map_err(said)?;
                }
                explain(error)
            }
        }
    }

    async fn join(
        &self,
        savepoint: &Transaction<'_>,
        store: Uuid,
        definition: i32,
        start: &Start,
    ) -> Result<Joined, tokio_postgres::Error> {
        let limit = self.inner.config.lock_timeout.as_millis().to_string();
        let before: String = limited(savepoint, &limit).await?;
        let joined = self.store(savepoint, store, definition, start).await?;
        limited(savepoint, &before).await?;
        Ok(joined)
    }

    async fn store(
        &self,
        savepoint: &Transaction<'_>,
        store: Uuid,
        definition: i32,
        start: &Start,
    ) -> Result<Joined, tokio_postgres::Error> {
        let (region, cluster, service) = self.place();
        let (saga, key, input) = (start.saga.as_str(), &start.key, start.input.as_str());
        let lifetime = super::words::millis(start.lifetime);
        let new: [(&(dyn ToSql + Sync), Type); 11] = [
            (&store, Type::UUID),
            (&region, Type::TEXT),
            (&cluster, Type::TEXT),
            (&service, Type::TEXT),
            (&start.id.0, Type::UUID),
            (&start.token.0, Type::INT8),
            (&saga, Type::TEXT),
            (&definition, Type::INT4),
            (key, Type::TEXT),
            (&input, Type::TEXT),
            (&lifetime, Type::INT8),
        ];
        let (sagas, keys, inputs) = (vec![saga], vec![key.as_str()], vec![input]);
        let known: [(&(dyn ToSql + Sync), Type); 6] = [
            (&region, Type::TEXT),
            (&cluster, Type::TEXT),
            (&service, Type::TEXT),
            (&sagas, Type::TEXT_ARRAY),
            (&keys, Type::TEXT_ARRAY),
            (&inputs, Type::TEXT_ARRAY),
        ];
        for _ in 0..TRIES {
            let row = savepoint.query_typed_one(sql::START_IN, &new).await?;
            if !row.try_get::<_, bool>("here")? {
                return Ok(Joined::Elsewhere);
            }
            if row.try_get::<_, bool>("new")? {
                return Ok(Joined::Started(Started::New(None)));
            }
            let rows = savepoint.query_typed(sql::START_READ, &known).await?;
            if let Some(row) = rows.first() {
                let id = TransactionId(row.try_get("transaction")?);
                let same: bool = row.try_get("same")?;
                return Ok(Joined::Started(if same {
                    Started::Same(id)
                } else {
                    Started::Different(id)
                }));
            }
        }
        Ok(Joined::Started(Started::InProgress))
    }

    /// Which store this is, asked once.
    async fn id(&self) -> Result<Uuid, Error> {
        let asked = self.inner.id.get_or_try_init(async || {
            let standing = self.standing().await?;
            Ok::<_, Error>(standing.store_id)
        });
        asked.await.copied()
    }

    /// Takes a transaction that was started in its caller's transaction and that nobody claimed
    /// yet; empty when there is none such.
    ///
    /// # Errors
    /// As for [`Store::claim`].
    pub async fn take_started(
        &self,
        me: Incarnation,
        nonce: Nonce,
        id: TransactionId,
    ) -> Result<Claims, Error> {
        let no_lease = || Error::permanent("claim", Reason("no lease was opened"));
        let definitions = self.tenure().ok_or_else(no_lease)?;
        let (region, cluster, service) = self.place();
        let before = self.unconfirmed_commits();
        let asked = self.inner.claim.call("take what was started", async |s| {
            let values: [&(dyn ToSql + Sync); 7] = [
                &me.0,
                &region,
                &cluster,
                &service,
                &&*definitions,
                &nonce.0,
                &id.0,
            ];
            s.rows(sql::TAKE_STARTED, &values).await
        });
        let rows = match asked.await {
            Err(error) if error.is_unreachable() => self.adopt(me, &[nonce.0]).await?,
            answer => answer?,
        };
        if self.unconfirmed_commits() != before {
            let reason = "no standby confirmed the commit";
            return Err(Error::unreachable("take what was started", reason));
        }
        self.sort_out(rows, Taken::Due).await
    }
}

/// Sets the lock limit until the savepoint or the transaction ends; the one before it.
async fn limited(
    savepoint: &Transaction<'_>,
    limit: &str,
) -> Result<String, tokio_postgres::Error> {
    let value: (&(dyn ToSql + Sync), Type) = (&limit, Type::TEXT);
    let row = savepoint.query_typed_one(LIMIT, &[value]).await?;
    row.try_get("v")
}

/// What an error means after the savepoint was undone.
fn explain(error: tokio_postgres::Error) -> Result<Joined, Error> {
    let code = error.code().cloned();
    let repeat = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    let (error, _): (Error, Verdict) = Error::classify(START, error);
    if error.lock_limit() {
        return Ok(Joined::Started(Started::InProgress));
    }
    if error.lacks_schema() {
        return Ok(Joined::Elsewhere);
    }
    if code.is_some_and(|code| repeat.contains(&code)) {
        return Ok(Joined::Retry(error));
    }
    Err(error)
}

fn said(error: tokio_postgres::Error) -> Error {
    Error::classify(START, error).0
}
