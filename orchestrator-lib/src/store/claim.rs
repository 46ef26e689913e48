//! Claims: who gets which rows is decided by four statements; here stands what surrounds them.
//! A claim whose answer was lost is re-read by its nonces before anybody is told that it failed.

use std::{collections::BTreeSet, error::Error as _, time::Duration};

use ring_core::{
    id::{SagaName, TransactionId},
    saga::{Entry, Payload, Retry, State, Wake},
    store::{Backlog, Claim, Claimed, Incarnation, Look, Missing, Taken},
    token::Range,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    Store,
    error::{Error, Reason},
    row::{self, get, known},
    saga_name, sql, words,
};

/// What a claim brought.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// To run, each under its own fence; no more than there were nonces.
    pub rows: Vec<Claimed>,
    /// Met on the way and disabled: their lifetime is over.
    pub disabled: Vec<TransactionId>,
    /// Met on the way and quarantined: they killed their processes too often.
    pub quarantined: Vec<TransactionId>,
}

/// What was done about transactions that no living retry node can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Touched in all; what is in neither of the others is due again in a minute.
    pub rows: u64,
    /// Disabled because their lifetime is over.
    pub disabled: u64,
    /// Quarantined orphans.
    pub quarantined: u64,
}

/// What a claimed row is.
enum Met {
    Runnable(Box<Claimed>),
    Quarantined,
    Disabled,
}

/// Most due rows that are counted a slot: a backlog beyond it is "many" anyway.
const MAX_COUNTED_PER_SLOT: i64 = 1_000;

impl Store {
    /// Claims rows for the own incarnation. Nothing is claimed when its lease is over.
    ///
    /// # Errors
    /// [`Error::Permanent`] without a lease opened here: nobody may take that for an empty look.
    /// [`Error::Unreachable`] when it is not known what was claimed, even after re-reading by
    /// nonce: whatever it was shows as a stray at the next renewals.
    pub async fn claim(&self, me: Incarnation, claim: &Claim) -> Result<Claims, Error> {
        let no_lease = || Error::permanent("claim", Reason("no lease was opened"));
        let definitions = self.tenure().ok_or_else(no_lease)?;
        let definitions = self.but(&definitions, &claim.without);
        if claim.nonces.is_empty() || definitions.is_empty() {
            return Ok(Claims::default());
        }
        let before = self.unconfirmed_commits();
        let nonces: Vec<Uuid> = claim.nonces.iter().map(|n| n.0).collect();
        let asked = self.ask(me, claim, &definitions, &nonces).await;
        let rows = match asked {
            Err(error) if error.is_unreachable() => self.adopt(me, &nonces).await?,
            answer => answer?,
        };
        if self.unconfirmed_commits() != before {
            return Err(Error::unreachable(
                "claim",
                "no standby confirmed the commit",
            ));
        }
        self.sort_out(rows, taken(&claim.look)).await
    }

    /// These definitions, but none of the sagas that may have nothing more.
    fn but(&self, definitions: &[i32], without: &BTreeSet<SagaName>) -> Vec<i32> {
        let has_enough = |number: &i32| {
            self.defined(*number)
                .is_some_and(|runs| without.contains(&runs.saga))
        };
        let all = definitions.iter().copied();
        all.filter(|number| !has_enough(number)).collect()
    }

    /// Rows that an earlier claim took without our hearing of it: see [`Claim::nonces`].
    pub(super) async fn adopt(&self, me: Incarnation, nonces: &[Uuid]) -> Result<Vec<Row>, Error> {
        let asked = self.inner.claim.call("re-read a claim", async |s| {
            s.rows(sql::ADOPT, &[&me.0, &nonces]).await
        });
        asked.await
    }

    async fn ask(
        &self,
        me: Incarnation,
        claim: &Claim,
        definitions: &[i32],
        nonces: &[Uuid],
    ) -> Result<Vec<Row>, Error> {
        let (region, cluster, service) = self.place();
        let (starts, ends) = ends(&claim.look);
        let quarantine = i32::try_from(self.inner.config.quarantine_after).unwrap_or(i32::MAX);
        let by = match &claim.look {
            Look::Overdue { by } => words::millis(*by),
            Look::Due { .. } | Look::Orphans | Look::Waiting { .. } => 0,
        };
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &me.0,
            &region,
            &cluster,
            &service,
            &definitions,
            &nonces,
            &claim.suspects,
        ];
        let statement = match &claim.look {
            Look::Due { .. } => {
                values.extend([&starts as &(dyn ToSql + Sync), &ends]);
                sql::CLAIM_DUE
            }
            Look::Waiting { target, .. } => {
                values.extend([&starts as &(dyn ToSql + Sync), &ends, target]);
                sql::CLAIM_WAITING
            }
            Look::Orphans => {
                values.push(&quarantine);
                sql::CLAIM_ORPHANS
            }
            Look::Overdue { .. } => {
                values.push(&by);
                sql::CLAIM_OVERDUE
            }
        };
        let asked = self
            .inner
            .claim
            .call("claim", async |s| s.rows(statement, &values).await);
        asked.await
    }

    /// Tells runnable rows from settled ones and fetches inputs and logs. A row that can't be read
    /// is left as it is and blocks no other: it shows as a stray and goes back.
    pub(super) async fn sort_out(&self, rows: Vec<Row>, taken: Taken) -> Result<Claims, Error> {
        let mut claims = Claims::default();
        for row in &rows {
            let id = TransactionId(get(row, "id")?);
            match self.met(row, taken) {
                Ok(Met::Runnable(claimed)) => claims.rows.push(*claimed),
                Ok(Met::Quarantined) => claims.quarantined.push(id),
                Ok(Met::Disabled) => claims.disabled.push(id),
                Err(error) => unreadable(id, &error),
            }
        }
        if claims.rows.is_empty() {
            return Ok(claims);
        }
        let ids: Vec<Uuid> = claims.rows.iter().map(|c| c.id.0).collect();
        let asked = self.inner.claim.call("read claimed rows", async |s| {
            let ids: &[&(dyn ToSql + Sync)] = &[&ids];
            futures_util::try_join!(
                s.rows(sql::INPUTS, ids),
                s.rows(sql::LOG, ids),
                s.rows(sql::WAKES, ids)
            )
        });
        let (inputs, log, wakes) = asked.await?;
        let (mut inputs, mut logs) = (row::inputs(&inputs)?, row::logs(&log)?);
        let mut wakes = row::wakes(&wakes)?;
        claims.rows.retain_mut(|claimed| {
            let input = inputs.remove(&claimed.id).transpose();
            let log = logs.remove(&claimed.id).transpose();
            let wakes = wakes.remove(&claimed.id).transpose();
            complete(claimed, input, log, wakes)
                .inspect_err(|error| unreadable(claimed.id, error))
                .is_ok()
        });
        Ok(claims)
    }

    fn met(&self, row: &Row, taken: Taken) -> Result<Met, Error> {
        let state = State::parse(get(row, "state")?);
        Ok(match known(state, "an unknown state")? {
            State::Running => {
                let capability = self.defined(get(row, "definition")?);
                let capability = known(capability, "a definition that was not asked for")?;
                Met::Runnable(Box::new(row::claimed(row, capability, taken)?))
            }
            State::Quarantined => Met::Quarantined,
            State::Disabled
            | State::Paused
            | State::Completed
            | State::Compensated
            | State::Terminated => Met::Disabled,
        })
    }

    /// Pushes what no living retry node can run by a minute, without using an attempt; disables
    /// what outlived its lifetime. At most `limit` rows.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn push_missing(&self, me: Incarnation, limit: u32) -> Result<Pushed, Error> {
        let (region, cluster, service) = self.place();
        let limit = i64::from(limit);
        let quarantine = i32::try_from(self.inner.config.quarantine_after).unwrap_or(i32::MAX);
        let asked = self
            .inner
            .claim
            .call("push what nobody can run", async |s| {
                let statement = s.prepare(sql::MISSING_PUSH).await?;
                s.one(
                    &statement,
                    &[&me.0, &region, &cluster, &service, &limit, &quarantine],
                )
                .await
            });
        let row = asked.await?;
        Ok(Pushed {
            rows: row::count(&row, "pushed")?,
            disabled: row::count(&row, "disabled")?,
            quarantined: row::count(&row, "quarantined")?,
        })
    }

    /// What no living retry node can run, parked or left by the dead, by saga and version;
    /// counted up to 10,000 of a kind.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn missing(&self) -> Result<Vec<Missing>, Error> {
        let (region, cluster, service) = self.place();
        let asked = self
            .inner
            .claim
            .call("look for missing executors", async |s| {
                s.rows(sql::MISSING_REPORT, &[&region, &cluster, &service])
                    .await
            });
        let rows = asked.await?;
        let missing = rows.iter().map(|row| {
            Ok(Missing {
                saga: known(saga_name(get(row, "saga")?), "a saga without a valid name")?,
                version: row::small(row, "version")?,
                transactions: row::count(row, "transactions")?,
                first_expires_at: words::wall(get(row, "first_expires_at")?),
            })
        });
        missing.collect()
    }

    /// Due rows within the ranges, and the age of the oldest.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn backlog(&self, ranges: &[Range]) -> Result<Backlog, Error> {
        let (region, cluster, service) = self.place();
        let (starts, ends) = split(ranges);
        let asked = self.inner.claim.call("read the backlog", async |s| {
            let statement = s.prepare(sql::BACKLOG).await?;
            let most = MAX_COUNTED_PER_SLOT;
            s.one(
                &statement,
                &[&region, &cluster, &service, &starts, &ends, &most],
            )
            .await
        });
        let row = asked.await?;
        Ok(Backlog {
            due: row::count(&row, "due")?,
            oldest: Duration::from_millis(row::count(&row, "oldest_ms")?),
        })
    }
}

fn complete(
    claimed: &mut Claimed,
    input: Result<Option<(Payload, Option<Retry>)>, Error>,
    log: Result<Option<Vec<Entry>>, Error>,
    wakes: Result<Option<Vec<Wake>>, Error>,
) -> Result<(), Error> {
    (claimed.input, claimed.retry) = known(input?, "a transaction without input")?;
    claimed.log = log?.unwrap_or_default();
    claimed.wakes = wakes?.unwrap_or_default();
    Ok(())
}

fn unreadable(id: TransactionId, error: &Error) {
    tracing::error!(
        transaction = %id,
        cause = error.source().map(tracing::field::display),
        "a claimed transaction can't be read and is left"
    );
}

fn taken(look: &Look) -> Taken {
    match look {
        Look::Orphans => Taken::Orphaned,
        Look::Due { .. } | Look::Overdue { .. } | Look::Waiting { .. } => Taken::Due,
    }
}

fn ends(look: &Look) -> (Vec<i64>, Vec<i64>) {
    match look {
        Look::Due { ranges } | Look::Waiting { ranges, .. } => split(ranges),
        Look::Orphans | Look::Overdue { .. } => (Vec::new(), Vec::new()),
    }
}

/// Ranges that overlap would show a row twice, which the claim survives: it locks by id.
fn split(ranges: &[Range]) -> (Vec<i64>, Vec<i64>) {
    ranges.iter().map(|r| (r.start().0, r.end().0)).unzip()
}
