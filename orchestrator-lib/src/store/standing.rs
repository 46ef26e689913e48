//! What the database promises, asked once at start: does it take writes, does a commit survive the
//! loss of a machine, is the session ours. Decides the words of the warnings.

use std::time::Duration;

use ring_core::chance;
use ring_shell::clock;
use uuid::Uuid;

use super::{
    Store,
    error::{Error, Reason},
    row::get,
    sql,
};
use crate::error::chain;

/// First pause between tries to reach a database that is down at start, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The oldest server that is supported: generated columns, hashed `any`, `cardinality` and the
/// behaviour of locked re-checks were tried on 15.
const OLDEST_SERVER: i32 = 150_000;

/// What the store stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Identity of the store.
    pub store_id: Uuid,
    /// Whether a commit waits for a synchronous standby.
    pub synchronous: bool,
    /// Server version, as `server_version_num`.
    pub version: i32,
    /// Sentences for the log; `durability` is the first word of one about lost commits.
    pub warnings: Vec<String>,
}

/// Asks until the database answers, however long that takes, and says so at each try. Pauses
/// have jitter: a fleet that waits for one database does not come back in step.
pub(crate) async fn patiently<T, Asked>(ask: impl Fn() -> Asked) -> Result<T, Error>
where
    Asked: Future<Output = Result<T, Error>>,
{
    let seed = clock::chance();
    let mut tries = 0_u32;
    loop {
        match ask().await {
            Err(error) if error.is_unreachable() || error.is_conflict() => {
                tries = tries.saturating_add(1);
                let pause = chance::pause(seed, tries, FIRST_PAUSE, LONGEST_PAUSE, chance::FLOOR);
                let cause = chain(&error);
                tracing::warn!(cause, again_in = ?pause, "waiting for the database");
                tokio::time::sleep(pause).await;
            }
            answer => return answer,
        }
    }
}

impl Store {
    /// Waits until the database answers, however long that takes, saying so at each try; then asks
    /// what it promises.
    ///
    /// # Errors
    /// [`Error::Permanent`] when waiting would not help: the schema is missing (`ringsaga
    /// migrate`), the password is wrong, the server is too old, or connections go through a pooler
    /// in transaction mode.
    pub async fn ready(&self) -> Result<Standing, Error> {
        patiently(|| self.standing()).await
    }

    /// Asks once what the database promises.
    ///
    /// # Errors
    /// As for [`Store::ready`], and [`Error::Unreachable`] when the database is away.
    pub async fn standing(&self) -> Result<Standing, Error> {
        let operation = "ask what the database promises";
        let asked = self.inner.claim.call(operation, async |s| {
            let statement = s.prepare(sql::STANDING).await?;
            s.one(&statement, &[]).await
        });
        let row = match asked.await {
            Err(error) if error.lacks_schema() => {
                let reason = Reason("the database has no store yet: run `ringsaga migrate`");
                return Err(Error::permanent(operation, reason));
            }
            answer => answer?,
        };
        if get::<bool>(&row, "standby")? {
            return Err(Error::unreachable(
                operation,
                "the server is a standby and takes no writes",
            ));
        }
        let version: i32 = get(&row, "version")?;
        if version < OLDEST_SERVER {
            let reason = Reason("the server is older than PostgreSQL 15");
            return Err(Error::permanent(operation, reason));
        }
        self.probe_session().await?;
        let synchronous: bool = get(&row, "synchronous")?;
        let fsync: bool = get(&row, "fsync")?;
        let mut warnings = Vec::new();
        if !synchronous {
            warnings.push(
                "durability=async: commits don't wait for a synchronous standby, so a failover \
                 may lose transactions that were acknowledged"
                    .to_owned(),
            );
        }
        if !fsync {
            warnings.push(
                "durability=none: fsync is off, so a crash of the server may lose everything"
                    .to_owned(),
            );
        }
        Ok(Standing {
            store_id: get(&row, "store_id")?,
            synchronous,
            version,
            warnings,
        })
    }

    /// Session state must survive two round trips, or plans are not pinned and limits don't hold:
    /// a pooler in transaction mode hands the session to others between them.
    async fn probe_session(&self) -> Result<(), Error> {
        let operation = "check that the session is our own";
        let mark = Uuid::new_v4().to_string();
        let asked = self.inner.claim.call(operation, async |s| {
            let setting = s.prepare(sql::PROBE_SET).await?;
            s.one(&setting, &[&mark]).await?;
            let reading = s.prepare(sql::PROBE_READ).await?;
            s.one(&reading, &[]).await
        });
        let mixed = || {
            let reason = Reason(
                "connections go through a pooler in transaction mode: connect directly, or use \
                 session mode",
            );
            Error::permanent(operation, reason)
        };
        match asked.await {
            Ok(row) if get::<&str>(&row, "mark")? == mark => Ok(()),
            Ok(_) => Err(mixed()),
            // A prepared statement that is gone a moment later is the same finding.
            Err(Error::Permanent { .. }) => Err(mixed()),
            Err(error) => Err(error),
        }
    }
}
