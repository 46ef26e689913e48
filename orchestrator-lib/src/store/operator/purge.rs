//! Removing what ended well and is old. Decides nothing about single rows: the statement does.

use std::time::Duration;

use ring_core::id::{SagaName, Service};
use uuid::Uuid;

use super::{
    super::{
        error::Error,
        row::{self, get},
        sql, words,
    },
    Operator,
    list::FIRST_ID,
    verb::By,
};

/// Rows that one statement looks at: some hundred milliseconds when all of them go.
const BATCH: i64 = 2_000;

/// What is removed.
#[derive(Clone, Debug)]
pub struct Purge {
    /// Only this service's.
    pub service: Option<Service>,
    /// Only this saga's, every version of it.
    pub saga: Option<SagaName>,
    /// What ended longer ago than this, and longer ago than its own whole lifetime. Until then a
    /// caller's repeat of the same key finds it.
    pub retention: Duration,
}

/// What a batch removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Transactions that are gone, with payload, steps, key and wake-ups.
    pub transactions: u64,
    /// Where the next batch begins; none when every row was looked at.
    pub next: Option<Uuid>,
}

impl Operator {
    /// Removes a batch of completed and compensated transactions; never others. Call it until
    /// `next` is none. Audited as one deed a batch; the audit log itself stays.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away; asking again is safe.
    pub async fn purge(
        &self,
        purge: &Purge,
        after: Option<Uuid>,
        by: &By,
    ) -> Result<Purged, Error> {
        let (region, cluster) = self.place();
        let service = purge.service.as_ref().map(Service::as_str);
        let saga = purge.saga.as_ref().map(SagaName::as_str);
        let retention = words::millis(purge.retention);
        let after = after.unwrap_or(FIRST_ID);
        let asked = self.link.call("purge old transactions", async |s| {
            s.rows(
                sql::OP_PURGE,
                &[
                    &region,
                    &cluster,
                    &service,
                    &retention,
                    &after,
                    &BATCH,
                    &by.actor(),
                    &by.reason(),
                    &saga,
                ],
            )
            .await
        });
        let rows = asked.await?;
        let Some(row) = rows.first() else {
            return Ok(Purged {
                transactions: 0,
                next: None,
            });
        };
        let full = get::<i64>(row, "looked")? >= BATCH;
        let last: Option<Uuid> = get(row, "last")?;
        Ok(Purged {
            transactions: row::count(row, "purged")?,
            next: last.filter(|_| full),
        })
    }
}
