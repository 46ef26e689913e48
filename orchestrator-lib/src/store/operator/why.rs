//! "Why is this not retried right now?": every reason that holds, from one read of one moment.
//! Decides what is read; what follows from it is decided in [`reasons`].

use ring_core::{id::TransactionId, saga::State, time::Wall};
use tokio_postgres::Row;

use super::{
    super::{
        error::Error,
        row::{self, get, known},
        sql, words,
    },
    Operator,
    reasons::{Facts, Owner, reasons},
};

/// Why a transaction is not being continued at this moment.
#[derive(Clone, Debug)]
pub struct Why {
    /// Which.
    pub id: TransactionId,
    /// Where it stands.
    pub state: State,
    /// The epoch for an order.
    pub epoch: u64,
    /// The database's clock when it was read: what "in 3 s" counts from.
    pub at: Wall,
    /// Everything that holds, the strongest first; never empty.
    pub reasons: Vec<Reason>,
}

/// One thing that keeps a transaction where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// A short name that does not change, for programs.
    pub code: &'static str,
    /// What is the case.
    pub says: String,
    /// What a person can do.
    pub todo: &'static str,
}

impl Operator {
    /// Why a transaction is not being continued right now; none when there is none here.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn why(&self, id: TransactionId) -> Result<Option<Why>, Error> {
        let asked = self.link.call("explain a transaction", async |s| {
            s.rows(sql::WHY, &[&id.0]).await
        });
        let rows = asked.await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        if (get::<&str>(row, "region")?, get::<&str>(row, "cluster")?) != self.place() {
            return Ok(None);
        }
        let facts = facts(row)?;
        Ok(Some(Why {
            id,
            state: facts.state,
            epoch: row::count(row, "epoch")?,
            at: facts.now,
            reasons: reasons(&facts),
        }))
    }
}

fn facts(row: &Row) -> Result<Facts, Error> {
    let time = |column| {
        let at: Option<chrono::DateTime<chrono::Utc>> = get(row, column)?;
        Ok::<_, Error>(at.map(words::wall))
    };
    let must = |column| Ok::<_, Error>(words::wall(get(row, column)?));
    let instance: Option<String> = get(row, "instance")?;
    let owner = match instance {
        Some(instance) => Some(Owner {
            instance,
            since: must("owner_since")?,
            dead_at: time("dead_at")?,
            lease_until: must("lease_until")?,
        }),
        None => None,
    };
    let said: Option<String> = get(row, "said")?;
    let position = row::position(row)?;
    Ok(Facts {
        state: known(State::parse(get(row, "state")?), "an unknown state")?,
        direction: position.direction,
        seq: position.seq,
        // A step that a person did by hand is in doubt no more.
        doubt: get(row, "doubt")? && get::<Option<&str>>(row, "outcome")? != Some("done"),
        attempts: row::small(row, "attempts")?,
        deaths: row::deaths(row)?,
        saga: get(row, "saga")?,
        version: row::small(row, "version")?,
        waiting_on: get(row, "waiting_on")?,
        due_at: time("due_at")?,
        expires_at: must("expires_at")?,
        settled_at: time("settled_at")?,
        progressed_at: must("progressed_at")?,
        now: must("clock")?,
        owner,
        living: row::count(row, "living")?,
        retry_nodes: row::count(row, "retry_nodes")?,
        able: row::count(row, "able")?,
        able_elsewhere: row::count(row, "able_elsewhere")?,
        busy: row::count(row, "busy")?,
        step: get(row, "step")?,
        paused: get::<Option<&str>>(row, "outcome")? == Some("paused"),
        said: said.or(get(row, "error")?),
        retry: get(row, "retry")?,
        cancelled: get(row, "cancelled")?,
        last_deed: get(row, "last_deed")?,
    })
}
