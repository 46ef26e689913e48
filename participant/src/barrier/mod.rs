//! The barrier in Postgres: a call takes effect once, whatever the network does with it.
//!
//! | what comes | what it gets |
//! |---|---|
//! | a call for the first time | the right to its effect ([`Entered::First`]) |
//! | the same call again | the stored answer ([`Entered::Again`]) |
//! | both at once | one waits for the other, then gets its answer |
//! | a compensation whose action never came | done, and the action is blocked ([`Entered::Nothing`]) |
//! | an action after its compensation | [`Entered::Compensated`]: never "done" |
//! | a call that was refused, again | judged anew: refusals are not stored |
//!
//! The row and the effect are one database transaction: [`enter`], the effect, [`answer`], commit.
//! [`Worker`](crate::worker::Worker) does that around a function; the functions here are for code
//! that has a database transaction of its own, and `sql/barrier.sql` ([`SQL`]) for other languages.
//!
//! ```no_run
//! # use ring_participant::{Key, barrier::{self, Entered}};
//! # async fn example(client: &mut tokio_postgres::Client, key: Key) -> Result<(), Box<dyn std::error::Error>> {
//! let sql = client.transaction().await?;
//! if let Entered::First { .. } = barrier::enter(&sql, &key).await? {
//!     sql.execute("update account set cents = cents - 700", &[]).await?;
//!     barrier::answer(&sql, &key, r#"{"receipt":1}"#).await?;
//! }
//! sql.commit().await?;
//! # Ok(()) }
//! ```
//!
//! # Work outside the database
//!
//! A card that is charged elsewhere does not roll back with the row. [`begin`] therefore stores
//! "started" in a transaction of its own before the work, so that a compensation runs for real
//! although no answer was stored (seata#6374), and waits while the work goes on. Such work happens
//! at least once, always under its key.
//!
//! # How long rows are kept
//!
//! A row that is gone lets a late repetition take effect again. So rows outlive every call that can
//! still come: the saga's lifetime and the time in which people restore its transactions
//! ([`Retention::covering`]), and [`purge`] takes nothing younger.

mod retention;

use std::time::Duration;

use tokio_postgres::{
    Client, Error, Row, Transaction,
    error::SqlState,
    types::{ToSql, Type},
};

pub use self::retention::{Retention, purge};
use crate::{Direction, Key};

/// The table and the functions, to be run by whoever owns the schema; again without harm.
pub const SQL: &str = include_str!("../../sql/barrier.sql");

/// Any process that installs the barrier takes this lock: two at once would collide.
const INSTALL_LOCK: i64 = 0x7269_6e67_6261_7272;

/// What a call finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It is the first: bring about the effect, then [`answer`].
    First {
        /// Of a compensation: what its action answered; none when nobody knows.
        action: Option<String>,
    },
    /// It was here before; the answer it got, as JSON.
    Again(String),
    /// A compensation whose action never came: done, there is nothing to undo.
    Nothing,
    /// An action that was undone before it came, or came again after it was undone.
    Compensated,
    /// Another call of the same key, or the action to be undone, is being carried out. Roll back
    /// and ask again after this time.
    InProgress(Duration),
}

/// Makes the table and the functions, or does nothing.
///
/// # Errors
/// The database's.
pub async fn install(client: &mut Client) -> Result<(), Error> {
    let sql = client.transaction().await?;
    sql.execute("select pg_advisory_xact_lock($1)", &[&INSTALL_LOCK])
        .await?;
    sql.batch_execute(SQL).await?;
    sql.commit().await
}

/// Enters with a call, in the database transaction that its effect belongs to. Waits for another
/// call of the same key, as long as the session's `lock_timeout` allows; see [`is_busy`].
///
/// # Errors
/// The database's; the transaction is to be rolled back, and the call may be repeated.
pub async fn enter(sql: &Transaction<'_>, key: &Key) -> Result<Entered, Error> {
    entered(
        &sql.query_typed(ENTER, &parameters(key, (&None::<i64>, Type::INT8)))
            .await?,
    )
}

/// Enters with a call whose work is not in this database. The row says "started" once this returns,
/// and other calls of its key wait for `hold`, which is longer than the work may take. End it with
/// [`finish`] or [`leave`].
///
/// # Errors
/// The database's; then the work has not begun.
pub async fn begin(client: &Client, key: &Key, hold: Duration) -> Result<Entered, Error> {
    let hold = Some(i64::try_from(hold.as_millis()).unwrap_or(i64::MAX));
    // One statement: it commits by itself.
    entered(
        &client
            .query_typed(ENTER, &parameters(key, (&hold, Type::INT8)))
            .await?,
    )
}

const ENTER: &str = "select verdict, answer, wait_ms \
                     from barrier_enter($1, $2, $3, $4::bigint * interval '1 millisecond')";
const ANSWER: &str = "select barrier_answer($1, $2, $3, $4)";
const LEAVE: &str = "select barrier_leave($1, $2, $3, $4)";

/// Stores the answer of the first call, which is JSON, and makes it durable with the effect when
/// the transaction commits.
///
/// # Errors
/// The database's.
pub async fn answer(sql: &Transaction<'_>, key: &Key, json: &str) -> Result<(), Error> {
    sql.query_typed(ANSWER, &parameters(key, (&json, Type::TEXT)))
        .await?;
    Ok(())
}

/// Stores the answer of work that was begun and gives the one that counts; none when the action was
/// undone meanwhile, because its `hold` was over.
///
/// # Errors
/// The database's; then the answer may be stored or not, and the work is done.
pub async fn finish(client: &Client, key: &Key, json: &str) -> Result<Option<String>, Error> {
    let rows = client
        .query_typed(ANSWER, &parameters(key, (&json, Type::TEXT)))
        .await?;
    rows.first().map_or(Ok(None), |row| row.try_get(0))
}

/// Gives up work that was begun and has no answer. `applied`: it may have had an effect all the
/// same; then a compensation runs for real.
///
/// # Errors
/// The database's; then the row is free when its hold is over.
pub async fn leave(client: &Client, key: &Key, applied: bool) -> Result<(), Error> {
    let given = parameters(key, (&applied, Type::BOOL));
    client.query_typed(LEAVE, &given).await?;
    Ok(())
}

/// Whether an error of [`enter`] says that another call has the row for too long.
#[must_use]
pub fn is_busy(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::LOCK_NOT_AVAILABLE)
        || code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

fn parameters<'a>(key: &'a Key, last: Parameter<'a>) -> [Parameter<'a>; 4] {
    let way: &'static &'static str = match key.direction {
        Direction::Forward => &"forward",
        Direction::Compensating => &"compensating",
    };
    [
        (&key.transaction, Type::UUID),
        (&key.step, Type::TEXT),
        (way, Type::TEXT),
        last,
    ]
}

fn entered(rows: &[Row]) -> Result<Entered, Error> {
    let Some(row) = rows.first() else {
        return Ok(Entered::InProgress(Duration::ZERO));
    };
    let (verdict, answer): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    let wait: Option<i64> = row.try_get(2)?;
    Ok(match verdict.as_str() {
        "first" => Entered::First { action: answer },
        "again" => Entered::Again(answer.unwrap_or_else(|| "null".to_owned())),
        "nothing" => Entered::Nothing,
        "compensated" => Entered::Compensated,
        // Whatever a newer script may say: asking again is always right.
        _ => Entered::InProgress(Duration::from_millis(
            wait.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
        )),
    })
}
