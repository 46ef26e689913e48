//! Orders about one transaction, and how they are refused. Decides which statement an order is;
//! the statements decide whether it fits.

use ring_core::{
    id::TransactionId,
    saga::{Direction, Payload, Position, State},
    time::Wall,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    super::{
        error::Error,
        row::{self, get, known},
        sql, wake, words,
    },
    Operator,
    verb::{By, Closed, Policy, Verb},
};

/// Answer to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done and audited; the epoch now, for the next order.
    Done {
        /// The epoch.
        epoch: u64,
    },
    /// Nothing was done.
    Refused(Refusal),
}

/// Why an order was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such transaction in this region and cluster.
    Missing,
    /// Somebody gave the same order, and since then it is not as the operator saw it.
    Already {
        /// How it stands.
        state: State,
        /// The epoch now.
        epoch: u64,
        /// Whose order, when and why.
        by: Audited,
    },
    /// It changed since the operator looked: look again.
    Changed {
        /// How it stands.
        state: State,
        /// The epoch now.
        epoch: u64,
    },
    /// The order does not fit how it stands.
    State {
        /// How it stands.
        state: State,
        /// Where.
        position: Position,
        /// Who runs it.
        instance: Option<String>,
        /// What an operator did last.
        last: Option<Audited>,
    },
    /// The place where it should go has a transaction with its idempotency key.
    KeyTaken,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// The verb.
    pub action: String,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When, by the database's clock.
    pub at: Wall,
}

impl Operator {
    /// Gives an order about a transaction that stood at epoch `seen` when the operator looked.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away; whether it was done is in the audit log,
    /// and ordering it again is safe. [`Error::Conflict`] when somebody holds the row.
    pub async fn order(
        &self,
        verb: &Verb,
        id: TransactionId,
        seen: u64,
        by: &By,
    ) -> Result<Answer, Error> {
        let done = match self.send(verb, id, words::big(seen), by).await {
            Err(error) if error.is_duplicate() && matches!(verb, Verb::Rehome { .. }) => {
                return Ok(Answer::Refused(Refusal::KeyTaken));
            }
            done => done?,
        };
        Ok(match done.first() {
            Some(row) => Answer::Done {
                epoch: row::count(row, "epoch")?,
            },
            None => Answer::Refused(self.refusal(verb, id, seen).await?),
        })
    }

    async fn send(
        &self,
        verb: &Verb,
        id: TransactionId,
        seen: i64,
        by: &By,
    ) -> Result<Vec<Row>, Error> {
        let action = verb.as_str();
        match verb {
            Verb::Retry => self.ask(sql::OP_RETRY, id, seen, by, &[]).await,
            Verb::Restore {
                lifetime,
                not_applied,
            } => {
                let lifetime = words::millis(*lifetime);
                let more: Values<'_> = &[&action, &lifetime, not_applied];
                self.ask(sql::OP_RESTORE, id, seen, by, more).await
            }
            Verb::RetryCompensation { lifetime } => {
                let lifetime = words::millis(*lifetime);
                let more: Values<'_> = &[&action, &lifetime, &false];
                self.ask(sql::OP_RESTORE, id, seen, by, more).await
            }
            Verb::Skip {
                step,
                result,
                reference,
                lifetime,
            } => {
                let (step, lifetime) = (step.to_string(), words::millis(*lifetime));
                let more: Values<'_> = &[&step, &result.as_str(), reference, &lifetime];
                self.ask(sql::OP_SKIP, id, seen, by, more).await
            }
            Verb::Policy(policy) => {
                let policy = policy.map(Policy::json);
                self.ask(sql::OP_POLICY, id, seen, by, &[&policy]).await
            }
            Verb::Signal {
                id: wake,
                name,
                value,
            } => {
                let body = wake::signal(name, value)?;
                self.wake(id, by, *wake, wake::SIGNAL, &body).await
            }
            Verb::Cancel { id: order } => {
                let body = wake::cancel(by.actor(), by.reason())?;
                // One order may be about many: each of them gets a wake-up of its own.
                let wake = Uuid::from_u128(order.as_u128() ^ id.0.as_u128());
                self.wake(id, by, wake, wake::CANCEL, &body).await
            }
            Verb::Close { end, reference } => {
                let (state, result) = match end {
                    Closed::Completed(result) => (State::Completed, Some(result.as_str())),
                    Closed::Compensated => (State::Compensated, None),
                };
                let more: Values<'_> = &[&state.as_str(), &result, reference];
                self.ask(sql::OP_CLOSE, id, seen, by, more).await
            }
            Verb::Rehome { to } => {
                let more: Values<'_> = &[&to.region.as_str(), &to.cluster.as_str()];
                self.ask(sql::OP_REHOME, id, seen, by, more).await
            }
        }
    }

    async fn ask(
        &self,
        statement: &'static str,
        id: TransactionId,
        seen: i64,
        by: &By,
        more: Values<'_>,
    ) -> Result<Vec<Row>, Error> {
        let (region, cluster) = self.place();
        let first: Values<'_> = &[&id.0, &region, &cluster, &seen, &by.actor(), &by.reason()];
        let values = [first, more].concat();
        self.link
            .call("give an order", async |s| s.rows(statement, &values).await)
            .await
    }

    async fn wake(
        &self,
        id: TransactionId,
        by: &By,
        wake: Uuid,
        kind: &str,
        body: &Payload,
    ) -> Result<Vec<Row>, Error> {
        let (region, cluster) = self.place();
        let body = body.as_str();
        let asked = self.link.call("wake a transaction", async |s| {
            let values: Values<'_> = &[
                &wake,
                &kind,
                &body,
                &id.0,
                &region,
                &cluster,
                &by.actor(),
                &by.reason(),
            ];
            s.rows(sql::OP_WAKE, values).await
        });
        asked.await
    }

    async fn refusal(&self, verb: &Verb, id: TransactionId, seen: u64) -> Result<Refusal, Error> {
        let (region, cluster) = self.place();
        let asked = self.link.call("explain a refusal", async |s| {
            s.rows(sql::OP_REFUSED, &[&id.0, &region, &cluster]).await
        });
        let rows = asked.await?;
        let Some(row) = rows.first() else {
            return Ok(Refusal::Missing);
        };
        let state = known(State::parse(get(row, "state")?), "an unknown state")?;
        let epoch = row::count(row, "epoch")?;
        let last = audited(row)?;
        Ok(match last {
            Some(by) if by.action == verb.as_str() && epoch != seen => {
                Refusal::Already { state, epoch, by }
            }
            _ if epoch != seen && verb.states().contains(&state) => {
                Refusal::Changed { state, epoch }
            }
            last => Refusal::State {
                state,
                position: row::position(row)?,
                instance: get(row, "instance")?,
                last,
            },
        })
    }
}

/// Values of a statement.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

fn audited(row: &Row) -> Result<Option<Audited>, Error> {
    let actor: Option<String> = get(row, "actor")?;
    let Some(actor) = actor else { return Ok(None) };
    Ok(Some(Audited {
        action: get(row, "action")?,
        actor,
        reason: get(row, "reason")?,
        at: words::wall(get(row, "at")?),
    }))
}

impl std::fmt::Display for Refusal {
    /// A sentence that says what to do.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such transaction in this region and cluster"),
            Self::Already { state, by, .. } => write!(
                f,
                "already done: {} by {} at {} ({}); it is {} now",
                by.action,
                by.actor,
                by.at.rfc3339(),
                by.reason,
                state.as_str()
            ),
            Self::Changed { state, epoch } => write!(
                f,
                "it changed since you looked: it is {} at epoch {epoch} now; look again",
                state.as_str()
            ),
            Self::State {
                state,
                position,
                instance,
                last,
            } => {
                write!(f, "it is {}", state.as_str())?;
                if let Some(instance) = instance {
                    write!(f, " at {instance}")?;
                }
                let way = match position.direction {
                    Direction::Forward => "forward",
                    Direction::Compensating => "compensating",
                };
                write!(f, " ({way}, step {}): the order does not fit", position.seq)?;
                if let Some(by) = last {
                    let at = by.at.rfc3339();
                    write!(f, "; last order: {} by {} at {at}", by.action, by.actor)?;
                }
                f.write_str("; `tx why` tells more")
            }
            Self::KeyTaken => f.write_str(
                "the place where it should go has a transaction with its idempotency key: close one of the two by hand",
            ),
        }
    }
}
