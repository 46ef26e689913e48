//! The barrier: a call takes effect once, whatever the network does with it.
//!
//! The row and the effect are one database transaction. So a duplicate gets the stored answer, a
//! compensation without its action is remembered and answered like any other, and an action that
//! comes after its compensation is refused, never "ok": its caller would take it for done. A
//! business refusal is not stored (the database transaction is dropped), so that a later attempt
//! is judged anew.

use std::{fmt, str::FromStr};

use serde::Serialize;
use tokio_postgres::{Client, Error, Transaction};
use uuid::Uuid;

/// Which way a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// An action.
    Forward,
    /// What undoes it.
    Compensate,
}

/// What a call's idempotency key says: `transaction/direction/step`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The caller's transaction: pairs an action with what undoes it, together with the step.
    pub transaction: Uuid,
    /// Action or compensation.
    pub direction: Direction,
    /// The caller's step.
    pub step: String,
}

/// What a call finds.
pub enum Entered<'a> {
    /// It is the first: bring about the effect, then [`Barrier::answered`].
    First(Barrier<'a>),
    /// It was here before; the answer it got.
    Again(String),
    /// A compensation whose action never came: done, there is nothing to undo.
    Nothing,
    /// An action that was undone before it came, or came again after it was undone.
    Compensated,
}

/// The right to one effect, until it is answered; dropped, nothing has happened.
pub struct Barrier<'a> {
    transaction: Transaction<'a>,
    key: Key,
}

impl<'a> Barrier<'a> {
    /// Enters with a call, in a database transaction of its own.
    ///
    /// # Errors
    /// The database's; then the call may be repeated.
    pub async fn enter(client: &'a mut Client, key: Key) -> Result<Entered<'a>, Error> {
        let transaction = client.transaction().await?;
        match key.direction {
            Direction::Forward => Self::forward(transaction, key).await,
            Direction::Compensate => Self::compensate(transaction, key).await,
        }
    }

    async fn forward(transaction: Transaction<'a>, key: Key) -> Result<Entered<'a>, Error> {
        // Waits for a concurrent call of the same key, which has the row until it ends.
        if take(&transaction, &key, Direction::Forward).await? {
            return Ok(Entered::First(Self { transaction, key }));
        }
        let answer = repeat(&transaction, &key).await?;
        let undone: bool = transaction
            .query_one(
                "select exists (select from barrier where transaction = $1 and step = $2 \
                 and direction = 'compensating')",
                &[&key.transaction, &key.step],
            )
            .await?
            .get(0);
        transaction.commit().await?;
        Ok(match answer {
            Some(answer) if !undone => Entered::Again(answer),
            Some(_) | None => Entered::Compensated,
        })
    }

    async fn compensate(transaction: Transaction<'a>, key: Key) -> Result<Entered<'a>, Error> {
        if !take(&transaction, &key, Direction::Compensate).await? {
            let answer = repeat(&transaction, &key).await?;
            transaction.commit().await?;
            return Ok(answer.map_or(Entered::Nothing, Entered::Again));
        }
        // Taking the action's row as well blocks it for ever, or shows that it was here.
        if take(&transaction, &key, Direction::Forward).await? {
            transaction.commit().await?;
            return Ok(Entered::Nothing);
        }
        Ok(Entered::First(Self { transaction, key }))
    }

    /// The database transaction, in which the effect belongs.
    #[must_use]
    pub fn sql(&self) -> &Transaction<'a> {
        &self.transaction
    }

    /// The call's key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Stores the answer and makes it and the effect durable together.
    ///
    /// # Errors
    /// The database's; then nobody knows, and the call is to be repeated.
    pub async fn answered(self, answer: &impl Serialize) -> Result<String, Error> {
        let Self { transaction, key } = self;
        let answer = serde_json::to_string(answer).unwrap_or_else(|_| "null".to_owned());
        transaction
            .execute(
                "update barrier set answer = $4 \
                 where transaction = $1 and step = $2 and direction = $3",
                &[
                    &key.transaction,
                    &key.step,
                    &key.direction.as_str(),
                    &answer,
                ],
            )
            .await?;
        transaction.commit().await?;
        Ok(answer)
    }
}

/// Inserts a row; whether it was not there.
async fn take(sql: &Transaction<'_>, key: &Key, direction: Direction) -> Result<bool, Error> {
    let inserted = sql
        .execute(
            "insert into barrier (transaction, step, direction) values ($1, $2, $3) \
             on conflict do nothing",
            &[&key.transaction, &key.step, &direction.as_str()],
        )
        .await?;
    Ok(inserted == 1)
}

/// Counts a repeated call and gives the stored answer, if the row holds one.
async fn repeat(sql: &Transaction<'_>, key: &Key) -> Result<Option<String>, Error> {
    let row = sql
        .query_one(
            "update barrier set repeats = repeats + 1 \
             where transaction = $1 and step = $2 and direction = $3 returning answer",
            &[&key.transaction, &key.step, &key.direction.as_str()],
        )
        .await?;
    row.try_get(0)
}

impl fmt::Debug for Barrier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Barrier({})", self.key)
    }
}

impl fmt::Debug for Entered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(barrier) => write!(f, "First({barrier:?})"),
            Self::Again(answer) => write!(f, "Again({answer})"),
            Self::Nothing => f.write_str("Nothing"),
            Self::Compensated => f.write_str("Compensated"),
        }
    }
}

impl Direction {
    /// As in keys and in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Compensate => "compensating",
        }
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '/');
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let mut read = || {
            let transaction = next()?.parse().ok()?;
            let direction = match next()? {
                "forward" => Direction::Forward,
                "compensating" => Direction::Compensate,
                _ => return None,
            };
            let step = next()?.to_owned();
            Some(Self {
                transaction,
                direction,
                step,
            })
        };
        read().ok_or_else(|| format!("{text:?} is no key: it is transaction/direction/step"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = self.direction.as_str();
        write!(f, "{}/{direction}/{}", self.transaction, self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let text = "0190b3a0-7c3e-7000-8000-000000000001/compensating/charge";
        let key: Key = text.parse().unwrap();
        assert_eq!(key.direction, Direction::Compensate);
        assert_eq!(key.to_string(), text);
        for wrong in [
            "",
            "a/forward/b",
            "0190b3a0-7c3e-7000-8000-000000000001/back/x",
        ] {
            assert!(wrong.parse::<Key>().is_err(), "{wrong}");
        }
    }
}
