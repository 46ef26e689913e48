//! The notifier's side of the outbox: spread, take, delivered, failed; and what people ask.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use ring_core::{id::Scope, time::Wall};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Alert, AlertKind, alert};
use crate::store::{
    config::Config,
    connect::{Link, Purpose},
    error::Error,
    row::{self, get},
    sql, words,
};

/// New alerts that are spread at once: a burst is worked off in pages.
const SPREAD_AT_ONCE: i64 = 1_000;

/// The alerts of a region and cluster on their way to hooks. Several notifiers may work at once:
/// each delivery is leased to one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Alerts {
    link: Link,
    scope: Scope,
}

/// What the outbox knows of a hook.
#[derive(Clone, Copy, Debug)]
pub struct Hook<'a> {
    /// Its name; deliveries are kept under it.
    pub name: &'a str,
    /// Least time between two of its calls, over all notifiers.
    pub pace: Duration,
    /// How long a call may be under way until another notifier tries the same.
    pub lease: Duration,
}

/// An alert to be delivered now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What.
    pub alert: Alert,
    /// Attempts, this one included.
    pub attempts: u32,
}

/// Deliveries that did not work.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// Which.
    pub alerts: &'a [Uuid],
    /// The lease under which they were taken.
    pub lease: Uuid,
    /// Why, for people; no secret.
    pub error: &'a str,
    /// Tried again after this.
    pub again_after: Duration,
    /// Given up when so many attempts have failed.
    pub attempts: u32,
    /// The receiver asked that nothing be sent for this long.
    pub hold: Option<Duration>,
}

/// A line of the list: an alert and one of its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What.
    pub alert: Alert,
    /// To whom; none when no notifier has seen it.
    pub delivery: Option<Delivery>,
}

/// How a delivery stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The hook.
    pub hook: String,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is tried next, or the end of the attempt's lease.
    pub due_at: Wall,
    /// When it was delivered.
    pub delivered_at: Option<Wall>,
    /// When it was given up.
    pub given_up_at: Option<Wall>,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

impl Alerts {
    /// Prepares connections; makes none yet.
    ///
    /// # Errors
    /// [`Error::Permanent`] when the address can't be read or TLS can't be set up.
    pub fn new(config: &Config, scope: Scope) -> Result<Self, Error> {
        let link = Link::new(config, Purpose::Admin, &Arc::new(AtomicU64::new(0)))?;
        Ok(Self { link, scope })
    }

    /// Whose alerts.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    fn place(&self) -> (&str, &str) {
        (self.scope.region.as_str(), self.scope.cluster.as_str())
    }

    /// Makes the deliveries of new alerts: one for each pair of hook and kind. Kinds that this
    /// binary does not know are left to a newer one. How many alerts were new.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn spread(&self, wanted: &[(&str, AlertKind)]) -> Result<u64, Error> {
        let (region, cluster) = self.place();
        let hooks: Vec<&str> = wanted.iter().map(|(hook, _)| *hook).collect();
        let kinds: Vec<&str> = wanted.iter().map(|(_, kind)| kind.as_str()).collect();
        let known: Vec<&str> = AlertKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let asked = self.link.call("spread alerts", async |s| {
            s.execute(
                sql::ALERT_SPREAD,
                &[&region, &cluster, &SPREAD_AT_ONCE, &hooks, &kinds, &known],
            )
            .await
        });
        asked.await
    }

    /// What is due for a hook, oldest first; nothing while its pace forbids a call.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn take(&self, hook: Hook<'_>, most: u32, lease: Uuid) -> Result<Vec<Taken>, Error> {
        let (region, cluster) = self.place();
        let (most, name) = (i64::from(most), hook.name);
        let (length, pace) = (words::millis(hook.lease), words::millis(hook.pace));
        let asked = self.link.call("take alerts", async |s| {
            s.rows(
                sql::ALERT_TAKE,
                &[&region, &cluster, &name, &most, &lease, &length, &pace],
            )
            .await
        });
        let rows = asked.await?;
        let taken = rows.iter().map(|row| {
            let attempts = attempts(row)?;
            Ok(alert(row)?.map(|alert| Taken { alert, attempts }))
        });
        taken.filter_map(Result::transpose).collect()
    }

    /// The hook has these. How many were not known to be delivered yet.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away: they will be delivered again.
    pub async fn delivered(&self, hook: &str, alerts: &[Uuid]) -> Result<u64, Error> {
        let asked = self.link.call("mark alerts as delivered", async |s| {
            s.execute(sql::ALERT_DELIVERED, &[&hook, &alerts]).await
        });
        asked.await
    }

    /// The hook does not have these. How many are given up with this.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away: their lease ends by itself.
    pub async fn failed(&self, hook: &str, failed: Failed<'_>) -> Result<u64, Error> {
        let (region, cluster) = self.place();
        let Failed { alerts, lease, .. } = failed;
        let again = words::millis(failed.again_after);
        let limit = i32::try_from(failed.attempts).unwrap_or(i32::MAX);
        let hold = failed.hold.map(words::millis);
        let error = failed.error;
        let asked = self.link.call("mark alerts as failed", async |s| {
            let statement = s.prepare(sql::ALERT_FAILED).await?;
            s.one(
                &statement,
                &[
                    &region, &cluster, &hook, &alerts, &lease, &error, &again, &limit, &hold,
                ],
            )
            .await
        });
        row::count(&asked.await?, "given_up")
    }

    /// Alerts with their deliveries, newest first: those that are not delivered, or `all`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn list(&self, all: bool, most: u32) -> Result<Vec<Listed>, Error> {
        let (region, cluster) = self.place();
        let most = i64::from(most);
        let asked = self.link.call("list alerts", async |s| {
            s.rows(sql::ALERT_LIST, &[&region, &cluster, &all, &most])
                .await
        });
        let rows = asked.await?;
        let lines = rows.iter().map(|row| {
            let delivery = delivery(row)?;
            Ok(alert(row)?.map(|alert| Listed { alert, delivery }))
        });
        lines.filter_map(Result::transpose).collect()
    }

    /// What was given up for a hook is tried again, from the first attempt. How many.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn try_again(&self, hook: &str) -> Result<u64, Error> {
        let (region, cluster) = self.place();
        let asked = self.link.call("try alerts again", async |s| {
            s.execute(sql::ALERT_AGAIN, &[&region, &cluster, &hook])
                .await
        });
        asked.await
    }
}

fn attempts(row: &Row) -> Result<u32, Error> {
    let n: i32 = get(row, "attempts")?;
    Ok(u32::try_from(n).unwrap_or(0))
}

fn delivery(row: &Row) -> Result<Option<Delivery>, Error> {
    let Some(hook) = get::<Option<String>>(row, "hook")? else {
        return Ok(None);
    };
    let time = |column| {
        let at: Option<chrono::DateTime<chrono::Utc>> = get(row, column)?;
        Ok::<_, Error>(at.map(words::wall))
    };
    Ok(Some(Delivery {
        hook,
        attempts: attempts(row)?,
        due_at: words::wall(get(row, "due_at")?),
        delivered_at: time("delivered_at")?,
        given_up_at: time("given_up_at")?,
        error: get(row, "error")?,
    }))
}
