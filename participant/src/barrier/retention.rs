//! How long the barrier's rows are kept, and their removal, a bounded piece at a time.

use std::time::Duration;

use tokio_postgres::{Client, Error, types::Type};

/// How long a row is kept at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Retention(Duration);

impl Retention {
    /// Long enough for every call that can still come: `lifetime` is the longest of the sagas that
    /// call here (24 h unless they say otherwise), `restore` the time after its end in which people
    /// restore transactions that were disabled or terminated.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use ring_participant::barrier::Retention;
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// assert_eq!(Retention::covering(day, 30 * day).as_duration(), 31 * day);
    /// ```
    #[must_use]
    pub const fn covering(lifetime: Duration, restore: Duration) -> Self {
        Self(lifetime.saturating_add(restore))
    }

    /// The time.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        self.0
    }
}

/// Removes about `most` rows that are older than `retention`, oldest first, an action and its
/// compensation together, and tells how many went. Call it now and then until it gives 0.
///
/// # Errors
/// The database's.
pub async fn purge(client: &Client, retention: Retention, most: u32) -> Result<u64, Error> {
    let millis = i64::try_from(retention.0.as_millis()).unwrap_or(i64::MAX);
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    let sql = "select barrier_purge($1::bigint * interval '1 millisecond', $2)";
    let rows = client
        .query_typed(sql, &[(&millis, Type::INT8), (&most, Type::INT4)])
        .await?;
    let gone: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(u64::try_from(gone).unwrap_or(0))
}
