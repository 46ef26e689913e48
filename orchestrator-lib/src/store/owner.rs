//! One lease a process. Decides nothing about time: who may be called dead, and when to ask, is
//! the caller's; whether somebody *is* dead is Postgres'.

use std::{sync::Arc, time::Duration};

use ring_core::{
    id::{BootId, NodeId, Nonce, TransactionId},
    store::{Capability, Fence, Incarnation, Renewed},
};
use uuid::Uuid;

use super::{
    Store,
    error::Error,
    lock,
    row::{self, get},
    sql, words,
};

/// A process that wants to run transactions.
#[derive(Clone, Debug)]
pub struct Process {
    /// This start of it.
    pub boot: BootId,
    /// Its id.
    pub instance: NodeId,
    /// Whether it retries others' transactions.
    pub retry_node: bool,
    /// What it can run.
    pub capabilities: Vec<Capability>,
}

/// A process whose death was just written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buried {
    /// The incarnation that died.
    pub incarnation: Incarnation,
    /// Which start of the process.
    pub boot: BootId,
    /// Its id, as stored.
    pub instance: String,
}

impl Store {
    /// Tells the names of a definition's steps in their order, for people and for operators'
    /// orders. The first one who tells them counts.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn describe(&self, of: &Capability, steps: &[String]) -> Result<(), Error> {
        self.define(of).await?;
        let (saga, version) = (of.saga.as_str(), i64::from(of.version));
        let asked = self.inner.claim.call("describe a saga", async |s| {
            s.execute(sql::DESCRIBE, &[&saga, &version, &of.digest, &steps])
                .await
        });
        asked.await.map(drop)
    }

    /// Opens a new incarnation with a lease, counted from when this was *sent*. One store is for
    /// one process: every incarnation of it can run the same.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away; an incarnation that was opened without
    /// our knowing holds nothing and dies with its lease.
    pub async fn open(&self, process: &Process, lease: Duration) -> Result<Incarnation, Error> {
        let mut definitions = Vec::with_capacity(process.capabilities.len());
        for capability in &process.capabilities {
            definitions.push(self.define(capability).await?);
        }
        let (region, cluster, service) = self.place();
        let (boot, instance) = (process.boot.0, process.instance.as_str());
        // It connects first, and there is no second try: a third of the lease for one.
        let limit = self.inner.config.renew_timeout * 2;
        let lease = words::millis(lease);
        let link = &self.inner.lease;
        let asked = link.call_within(limit, "open a lease", async |s| {
            let statement = s.prepare(sql::OWNER_OPEN).await?;
            s.one(
                &statement,
                &[
                    &boot,
                    &instance,
                    &region,
                    &cluster,
                    &service,
                    &process.retry_node,
                    &definitions,
                    &lease,
                ],
            )
            .await
        });
        let incarnation = Incarnation(get(&asked.await?, "incarnation")?);
        *lock(&self.inner.tenure) = Some(definitions.into());
        Ok(incarnation)
    }

    /// Holds the lease on the reserved connection, and says what the store thinks runs here.
    ///
    /// # Errors
    /// [`Error::Unreachable`] after two tries, the second on a fresh connection; both together take
    /// a third of the lease at most ([`Config::for_lease`](super::Config::for_lease)). The lease
    /// holds until it is over all the same.
    pub async fn renew(&self, me: Incarnation, lease: Duration) -> Result<Renewed, Error> {
        match self.renew_once(me, lease).await {
            Err(error) if error.is_unreachable() => self.renew_once(me, lease).await,
            answer => answer,
        }
    }

    async fn renew_once(&self, me: Incarnation, lease: Duration) -> Result<Renewed, Error> {
        let lease = words::millis(lease);
        let asked = self.inner.lease.call("renew the lease", async |s| {
            let renewed = s.rows(sql::OWNER_RENEW, &[&me.0, &lease]).await?;
            let running = s.rows(sql::OWNER_RUNNING, &[&me.0]).await?;
            Ok((renewed, running))
        });
        let (renewed, running) = asked.await?;
        let Some(renewed) = renewed.first() else {
            return Ok(Renewed::Dead);
        };
        let woken = running
            .iter()
            .map(|row| Ok((TransactionId(get(row, "id")?), row::count(row, "wake_seq")?)));
        let woken = woken.filter(|row: &Result<_, Error>| !matches!(row, Ok((_, 0))));
        let woken = woken.collect::<Result<_, Error>>()?;
        let running = running.iter().map(|row| {
            let nonce: Option<Uuid> = get(row, "nonce")?;
            let fence = Fence {
                epoch: row::count(row, "epoch")?,
                nonce: Nonce(nonce.unwrap_or_default()),
            };
            Ok((TransactionId(get(row, "id")?), fence))
        });
        Ok(Renewed::Held {
            clock: words::wall(get(renewed, "clock")?),
            running: running.collect::<Result<_, Error>>()?,
            woken,
        })
    }

    /// Writes the death of every process of this service whose lease is over. Ask only after one
    /// whole lease of unbroken contact with the database: after its restart everybody is late.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn declare_dead(&self, me: Incarnation) -> Result<Vec<Buried>, Error> {
        let (region, cluster, service) = self.place();
        let asked = self.inner.claim.call("declare the late dead", async |s| {
            s.rows(sql::OWNER_BURY, &[&region, &cluster, &service, &me.0])
                .await
        });
        asked
            .await?
            .iter()
            .map(|row| {
                Ok(Buried {
                    incarnation: Incarnation(get(row, "incarnation")?),
                    boot: BootId(get(row, "boot")?),
                    instance: get(row, "instance")?,
                })
            })
            .collect()
    }

    /// Removes owners that died over a day ago and that no row names; how many.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn forget_dead(&self) -> Result<u64, Error> {
        let (region, cluster, service) = self.place();
        let asked = self.inner.claim.call("forget the dead", async |s| {
            s.execute(sql::OWNER_FORGET, &[&region, &cluster, &service])
                .await
        });
        asked.await
    }

    /// Hands strays back: rows stored as run by this incarnation that nothing here runs. Returns
    /// those that went back; others had moved on.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn hand_back(
        &self,
        me: Incarnation,
        strays: &[(TransactionId, Fence)],
    ) -> Result<Vec<TransactionId>, Error> {
        let ids: Vec<Uuid> = strays.iter().map(|(id, _)| id.0).collect();
        let epochs: Vec<i64> = strays.iter().map(|(_, f)| words::big(f.epoch)).collect();
        let nonces: Vec<Uuid> = strays.iter().map(|(_, f)| f.nonce.0).collect();
        let asked = self.inner.claim.call("hand strays back", async |s| {
            s.rows(sql::HAND_BACK, &[&me.0, &ids, &epochs, &nonces])
                .await
        });
        let rows = asked.await?;
        let ids = rows.iter().map(|row| Ok(TransactionId(get(row, "id")?)));
        ids.collect()
    }

    /// The orderly end: what is still stored as running here goes back to anyone, in doubt and due
    /// at once, and the lease ends. Returns how many went back.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away; then the lease runs out by itself.
    pub async fn close_lease(&self, me: Incarnation) -> Result<u64, Error> {
        *lock(&self.inner.tenure) = None;
        let asked = self.inner.claim.call("close the lease", async |s| {
            let released = s.execute(sql::OWNER_RELEASE, &[&me.0]).await?;
            s.execute(sql::OWNER_CLOSE, &[&me.0]).await?;
            Ok(released)
        });
        asked.await
    }

    /// What this process can run; none before its first lease and after its end.
    pub(super) fn tenure(&self) -> Option<Arc<[i32]>> {
        lock(&self.inner.tenure).clone()
    }
}
