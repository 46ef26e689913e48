//! What the database saw: every committed version of every row, in order. Judges nothing.

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use super::lane::Fallible;

/// What was committed since a schedule began, and how everything stands.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) changes: Vec<Change>,
    /// The rows of `ringsaga.transaction`.
    pub(crate) rows: Vec<Version>,
    /// The rows of `ringsaga.owner`.
    pub(crate) owners: Vec<Version>,
    pub(crate) wakes: i64,
    pub(crate) keys: i64,
    pub(crate) clock: DateTime<Utc>,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) at: DateTime<Utc>,
    /// Empty outside the gated sessions.
    pub(crate) session: String,
    pub(crate) xid: i64,
    pub(crate) kind: String,
    pub(crate) old: Option<Version>,
    pub(crate) new: Version,
}

/// A row as JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version(pub(crate) Value);

impl Version {
    pub(crate) fn number(&self, column: &str) -> i64 {
        self.0[column].as_i64().unwrap_or(i64::MIN)
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        self.0[column].as_str().unwrap_or("")
    }

    pub(crate) fn uuid(&self, column: &str) -> Option<Uuid> {
        self.text(column).parse().ok()
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        !self.0[column].is_null()
    }

    pub(crate) fn time(&self, column: &str) -> Option<DateTime<Utc>> {
        let text = self.0[column].as_str()?;
        let time = DateTime::parse_from_rfc3339(text).ok()?;
        Some(time.with_timezone(&Utc))
    }

    /// Whether these columns are the same in both.
    pub(crate) fn same(&self, other: &Self, columns: &[&str]) -> bool {
        columns
            .iter()
            .all(|column| self.0[*column] == other.0[*column])
    }

    pub(crate) fn is_settled(&self) -> bool {
        !matches!(self.text("state"), "running" | "paused")
    }
}

impl History {
    /// Changes of a table.
    pub(crate) fn of(&self, kind: &'static str) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(move |change| change.kind == kind)
    }

    /// Changes of a table made by a gated session.
    pub(crate) fn by(&self, session: char, kind: &'static str) -> Vec<&Change> {
        let own = |change: &&Change| change.session.starts_with(session);
        self.of(kind).filter(own).collect()
    }

    pub(crate) fn owner(&self, incarnation: i64) -> Option<&Version> {
        self.owners
            .iter()
            .find(|o| o.number("incarnation") == incarnation)
    }
}

/// Where the history stands.
pub(crate) async fn mark(client: &Client) -> Fallible<i64> {
    let last = "select coalesce(max(n), 0) from gate.history";
    Ok(client.query_one(last, &[]).await?.try_get(0)?)
}

pub(crate) async fn read(client: &Client, after: i64) -> Fallible<History> {
    let changes = "select at, session, xid, kind, old, new from gate.history \
        where n > $1 order by n";
    let counts = "select (select count(*) from ringsaga.wake), \
        (select count(*) from ringsaga.idempotency), clock_timestamp()";
    let (rows, owners) = (
        "select to_jsonb(t) from ringsaga.transaction t",
        "select to_jsonb(o) from ringsaga.owner o",
    );
    let changes = client.query(changes, &[&after]).await?;
    let counts = client.query_one(counts, &[]).await?;
    let rows = client.query(rows, &[]).await?;
    let owners = client.query(owners, &[]).await?;
    let version = |row: &tokio_postgres::Row| row.get::<_, Value>(0);
    Ok(History {
        changes: changes
            .iter()
            .map(|row| Change {
                at: row.get("at"),
                session: row.get("session"),
                xid: row.get("xid"),
                kind: row.get("kind"),
                old: row.get::<_, Option<Value>>("old").map(Version),
                new: Version(row.get("new")),
            })
            .collect(),
        rows: rows.iter().map(version).map(Version).collect(),
        owners: owners.iter().map(version).map(Version).collect(),
        wakes: counts.get(0),
        keys: counts.get(1),
        clock: counts.get(2),
    })
}
