//! One transaction in full: what it is, what became of its steps, what came to it from outside.

use ring_core::{id::TransactionId, saga::Entry, time::Wall};

use super::{
    super::{
        error::Error,
        row::{self, get},
        sql, words,
    },
    Operator,
    list::{Summary, summary},
};

/// One transaction in full.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What a list shows.
    pub summary: Summary,
    /// Digest of its definition.
    pub digest: String,
    /// The caller's idempotency key; none when it was purged.
    pub key: Option<String>,
    /// The input, JSON text.
    pub input: Option<String>,
    /// The saga's result, JSON text.
    pub result: Option<String>,
    /// What was said last.
    pub error: Option<String>,
    /// An operator's retry policy, JSON text; none is the definition's.
    pub retry: Option<String>,
    /// The transaction that started it, and the step there that waits for it.
    pub parent: Option<(TransactionId, String)>,
    /// Deaths of owners blamed on it.
    pub deaths: u32,
    /// How often it was claimed or ordered about; an order names it.
    pub epoch: u64,
    /// When it last moved.
    pub progressed_at: Wall,
    /// When the open intent was stored.
    pub opened_at: Wall,
    /// The step log, oldest first: of a success the one that counts, of failures the last.
    pub log: Vec<Entry>,
    /// What came from outside, oldest first.
    pub happened: Vec<Happened>,
}

/// Something that came to a transaction from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A wake-up: a signal, a cancel, a child's end.
    Woken {
        /// When.
        at: Wall,
        /// Which kind.
        kind: String,
        /// Its JSON.
        body: String,
    },
    /// An operator's deed.
    Ordered {
        /// When.
        at: Wall,
        /// The verb.
        action: String,
        /// Who.
        actor: String,
        /// Why.
        reason: String,
        /// What else was said, JSON text.
        detail: Option<String>,
    },
}

impl Operator {
    /// One transaction with payloads and log; none when there is none here.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn show(&self, id: TransactionId) -> Result<Option<Shown>, Error> {
        let asked = self.link.call("show a transaction", async |s| {
            let shown = s.rows(sql::SHOW, &[&id.0]).await?;
            let log = s.rows(sql::LOG, &[&vec![id.0]]).await?;
            let more = s.rows(sql::SHOW_MORE, &[&id.0]).await?;
            Ok((shown, log, more))
        });
        let (shown, log, more) = asked.await?;
        let Some(row) = shown.first() else {
            return Ok(None);
        };
        let here = (get::<&str>(row, "region")?, get::<&str>(row, "cluster")?) == self.place();
        if !here {
            return Ok(None);
        }
        let parent: Option<uuid::Uuid> = get(row, "parent")?;
        let step: Option<String> = get(row, "parent_step")?;
        Ok(Some(Shown {
            summary: summary(row)?,
            digest: get(row, "digest")?,
            key: get(row, "key")?,
            input: get(row, "input")?,
            result: get(row, "result")?,
            error: get(row, "error")?,
            retry: get(row, "retry")?,
            parent: parent.map(|id| (TransactionId(id), step.unwrap_or_default())),
            deaths: row::deaths(row)?,
            epoch: row::count(row, "epoch")?,
            progressed_at: words::wall(get(row, "progressed_at")?),
            opened_at: words::wall(get(row, "opened_at")?),
            log: row::logs(&log)?
                .remove(&id)
                .transpose()?
                .unwrap_or_default(),
            happened: more.iter().map(happened).collect::<Result<_, _>>()?,
        }))
    }
}

fn happened(row: &tokio_postgres::Row) -> Result<Happened, Error> {
    let at = words::wall(get(row, "at")?);
    let text = |column| Ok::<_, Error>(get::<Option<String>>(row, column)?.unwrap_or_default());
    Ok(match get::<&str>(row, "source")? {
        "wake" => Happened::Woken {
            at,
            kind: text("what")?,
            body: text("detail")?,
        },
        _ => Happened::Ordered {
            at,
            action: text("what")?,
            actor: text("actor")?,
            reason: text("reason")?,
            detail: get(row, "detail")?,
        },
    })
}
