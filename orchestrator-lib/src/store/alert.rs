//! What a person must hear of: the outbox that a commit fills by itself (`migrations/V4`), what
//! the engine adds to it, and what a notifier takes out.
//!
//! Decides how often one fact is raised and what delivered, failed and given up mean. Refuses to
//! know what a hook is: it has a name, a pace and wishes.

mod outbox;

use std::time::Duration;

use ring_core::{id::TransactionId, store::Missing, time::Wall};
use tokio_postgres::Row;
use uuid::Uuid;

pub use self::outbox::{Alerts, Delivery, Failed, Hook, Listed, Taken};
use super::{
    Store,
    error::Error,
    row::{self, get},
    sql, words,
};

/// Most transactions that one look raises for compensations that fail: a page a person can read.
const MOST_COMPENSATING: i64 = 100;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What an alert is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum AlertKind {
            $($(#[$doc])* $name,)*
        }

        impl AlertKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As it is stored, sent and configured.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The kind of a word.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A compensation failed for good: the transaction stands still half undone.
    Terminated = "terminated",
    /// A step that can't be undone, or not be repeated while in doubt, failed: it stands still
    /// half done.
    IrreversibleFailed = "irreversible-failed",
    /// It outlived its lifetime.
    Disabled = "disabled",
    /// It was the only suspect when its processes died.
    Quarantined = "quarantined",
    /// Transactions wait for code that no live process has.
    ExecutorMissing = "executor-missing",
    /// A compensation has stood at one step for too long; it is still retried.
    CompensationFailing = "compensation-failing",
    /// A person put a transaction back.
    Restored = "restored",
}

/// An alert. Never a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The same at every delivery: receivers know a repeat by it.
    pub id: Uuid,
    /// When it became true, by the database's clock.
    pub at: Wall,
    /// What it is about.
    pub kind: AlertKind,
    /// The region.
    pub region: String,
    /// The cluster.
    pub cluster: String,
    /// The service.
    pub service: String,
    /// The transaction, when it is about one.
    pub transaction: Option<TransactionId>,
    /// The saga.
    pub saga: Option<String>,
    /// Its version.
    pub version: Option<u32>,
    /// The step that it stands at.
    pub step: Option<String>,
    /// What happened, in a sentence of at most 500 characters.
    pub text: String,
}

impl Store {
    /// Raises an alert for each saga version that nobody can run, at most once a day each,
    /// whichever node sees it. How many were new.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn raise_missing(&self, missing: &[Missing]) -> Result<u64, Error> {
        if missing.is_empty() {
            return Ok(0);
        }
        let (region, cluster, service) = self.place();
        let sagas: Vec<&str> = missing.iter().map(|m| m.saga.as_str()).collect();
        let versions: Vec<i64> = missing.iter().map(|m| i64::from(m.version)).collect();
        let texts: Vec<String> = missing.iter().map(in_words).collect();
        let asked = self.inner.claim.call("raise alerts", async |s| {
            s.execute(
                sql::ALERT_RAISE_MISSING,
                &[&region, &cluster, &service, &sagas, &versions, &texts],
            )
            .await
        });
        asked.await
    }

    /// Raises an alert for each transaction whose compensation has stood at one step for longer
    /// than `limit`, at most once a day each. How many were new, at most 100 a call.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn raise_compensating(&self, limit: Duration) -> Result<u64, Error> {
        let (region, cluster, service) = self.place();
        let limit = words::millis(limit);
        let asked = self.inner.claim.call("raise alerts", async |s| {
            s.execute(
                sql::ALERT_RAISE_COMPENSATING,
                &[&region, &cluster, &service, &limit, &MOST_COMPENSATING],
            )
            .await
        });
        asked.await
    }

    /// Alerts of this service that nobody has counted yet; each is given to one caller, once.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn untold_alerts(&self, most: u32) -> Result<Vec<Alert>, Error> {
        let (region, cluster, service) = self.place();
        let most = i64::from(most);
        let asked = self.inner.claim.call("read alerts", async |s| {
            s.rows(sql::ALERT_TELL, &[&region, &cluster, &service, &most])
                .await
        });
        let alerts = asked.await?;
        Ok(alerts
            .iter()
            .map(alert)
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Removes alerts of the region and cluster older than `age`, delivered or not. How many.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn forget_alerts(&self, age: Duration) -> Result<u64, Error> {
        let (region, cluster, _) = self.place();
        let age = words::millis(age);
        let asked = self.inner.claim.call("remove old alerts", async |s| {
            let statement = s.prepare(sql::ALERT_FORGET).await?;
            s.one(&statement, &[&region, &cluster, &age]).await
        });
        row::count(&asked.await?, "alerts")
    }
}

fn in_words(missing: &Missing) -> String {
    let Missing {
        saga,
        version,
        transactions,
        first_expires_at,
    } = missing;
    format!(
        "executor {saga} v{version} missing: {transactions} transactions wait, the first until {}",
        first_expires_at.rfc3339()
    )
}

/// An alert; none when a newer binary wrote a kind that this one does not know.
fn alert(row: &Row) -> Result<Option<Alert>, Error> {
    let Some(kind) = AlertKind::parse(get(row, "kind")?) else {
        return Ok(None);
    };
    let version: Option<i64> = get(row, "version")?;
    let transaction: Option<Uuid> = get(row, "transaction")?;
    Ok(Some(Alert {
        id: get(row, "id")?,
        at: words::wall(get(row, "at")?),
        kind,
        region: get(row, "region")?,
        cluster: get(row, "cluster")?,
        service: get(row, "service")?,
        transaction: transaction.map(TransactionId),
        saga: get(row, "saga")?,
        version: version.and_then(|v| u32::try_from(v).ok()),
        step: get(row, "step")?,
        text: get(row, "text")?,
    }))
}
