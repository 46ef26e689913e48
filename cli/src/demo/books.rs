//! The books: what the saga store and the participants' own databases say happened.
//!
//! Reads them; what they amount to is decided in `verdict`.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use ring_core::time::Wall;
use serde::Serialize;
use tokio_postgres::{Client, NoTls, Row};

use super::stage::{Places, SERVICE};

/// What one transaction did, by all three databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Its state in the saga store; none when it is not there.
    pub(crate) state: Option<String>,
    /// The customer's number of the order.
    pub(crate) order_id: String,
    /// Reservations made.
    pub(crate) reserved: i64,
    /// Reservations made final.
    pub(crate) confirmed: i64,
    /// Reservations taken back.
    pub(crate) released: i64,
    /// Pieces that left the shelf.
    pub(crate) pieces: i64,
    /// Charges booked.
    pub(crate) charged: i64,
    /// Charges paid back.
    pub(crate) refunded: i64,
    /// Cents that the customer has paid.
    pub(crate) cents: i64,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    /// By transaction.
    pub(crate) accounts: BTreeMap<String, Account>,
    /// Calls that the participants had seen before and answered without an effect.
    pub(crate) repeated: i64,
    /// Actions that came after what undoes them, and were refused.
    pub(crate) blocked: i64,
}

/// How fast the work was done that waited for payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Drain {
    /// Orders that were open when payment came back.
    pub(crate) waiting: i64,
    /// Until the last of those was settled.
    pub(crate) waiting_settled_ms: u64,
    /// Until the last order of all was settled, those that came later included.
    pub(crate) last_settled_ms: u64,
}

/// How many transactions are in which state.
pub(crate) type Counts = BTreeMap<String, i64>;

const STORE: &str = "select t.id::text as transaction, i.key as order_id, t.state \
    from ringsaga.transaction t join ringsaga.idempotency i on i.transaction = t.id \
    where t.service = $1";
const INVENTORY: &str = "select transaction::text, order_id, \
    count(*) filter (where kind = 'reserve') as reserved, \
    count(*) filter (where kind = 'confirm') as confirmed, \
    count(*) filter (where kind = 'release') as released, sum(quantity)::bigint as pieces \
    from movement group by transaction, order_id";
const PAYMENT: &str = "select transaction::text, order_id, \
    count(*) filter (where kind = 'charge') as charged, \
    count(*) filter (where kind = 'refund') as refunded, sum(amount_cents)::bigint as cents \
    from entry group by transaction, order_id";
/// A row of an action without an answer only blocks: its compensation came first.
const BARRIER: &str = "select \
    coalesce(sum(repeats) filter (where not blocks), 0)::bigint as repeated, \
    coalesce(sum(repeats) filter (where blocks), 0)::bigint as blocked \
    from (select repeats, direction = 'forward' and answer is null as blocks from barrier) b";
/// One server, one clock: the store's times compare with ours.
const DRAIN: &str = "with back as (select to_timestamp($2::bigint / 1000.0) as at) \
    select count(*) filter (where created_at < back.at) as waiting, \
    extract(epoch from max(settled_at) filter (where created_at < back.at) - min(back.at))::float8, \
    extract(epoch from max(settled_at) - min(back.at))::float8 \
    from ringsaga.transaction, back where service = $1 and settled_at >= back.at";
const COUNTS: &str = "select state, count(*) from ringsaga.transaction where service = $1 \
    group by state";

/// Connections to the three databases.
pub(crate) struct Readers {
    store: Client,
    inventory: Client,
    payment: Client,
}

impl Readers {
    /// Connects.
    ///
    /// # Errors
    /// When a database can't be reached.
    pub(crate) async fn open(places: &Places) -> anyhow::Result<Self> {
        Ok(Self {
            store: open(&places.orders_database).await?,
            inventory: open(&places.inventory_database).await?,
            payment: open(&places.payment_database).await?,
        })
    }

    /// How many transactions are in which state.
    ///
    /// # Errors
    /// When the saga store does not answer.
    pub(crate) async fn counts(&self) -> anyhow::Result<Counts> {
        let rows = self.store.query(COUNTS, &[&SERVICE]).await?;
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect()
    }

    /// How many late actions were refused so far.
    ///
    /// # Errors
    /// When payment's database does not answer.
    pub(crate) async fn blocked(&self) -> anyhow::Result<i64> {
        Ok(self
            .payment
            .query_one(BARRIER, &[])
            .await?
            .try_get("blocked")?)
    }

    /// How fast the work was done that was open at this moment; none when there was none.
    ///
    /// # Errors
    /// When the saga store does not answer.
    pub(crate) async fn drain(&self, back: Wall) -> anyhow::Result<Option<Drain>> {
        let row = self.store.query_one(DRAIN, &[&SERVICE, &back.0]).await?;
        let ms = |index| {
            let seconds: Option<f64> = row.try_get(index)?;
            let time = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
            anyhow::Ok(time.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)))
        };
        let waiting = row.try_get("waiting")?;
        Ok(match (ms(1)?, ms(2)?) {
            (Some(waiting_settled_ms), Some(last_settled_ms)) => Some(Drain {
                waiting,
                waiting_settled_ms,
                last_settled_ms,
            }),
            _ => None,
        })
    }

    /// Reads everything.
    ///
    /// # Errors
    /// When a database does not answer.
    pub(crate) async fn read(&self) -> anyhow::Result<Books> {
        let mut books = Books::default();
        for row in self.store.query(STORE, &[&SERVICE]).await? {
            books.account(&row)?.state = Some(row.try_get("state")?);
        }
        for row in self.inventory.query(INVENTORY, &[]).await? {
            let account = books.account(&row)?;
            account.reserved = row.try_get("reserved")?;
            account.confirmed = row.try_get("confirmed")?;
            account.released = row.try_get("released")?;
            account.pieces = row.try_get("pieces")?;
        }
        for row in self.payment.query(PAYMENT, &[]).await? {
            let account = books.account(&row)?;
            account.charged = row.try_get("charged")?;
            account.refunded = row.try_get("refunded")?;
            account.cents = row.try_get("cents")?;
        }
        for client in [&self.inventory, &self.payment] {
            let row = client.query_one(BARRIER, &[]).await?;
            books.repeated += row.try_get::<_, i64>("repeated")?;
            books.blocked += row.try_get::<_, i64>("blocked")?;
        }
        Ok(books)
    }
}

impl Books {
    fn account(&mut self, row: &Row) -> anyhow::Result<&mut Account> {
        let account = self
            .accounts
            .entry(row.try_get("transaction")?)
            .or_default();
        account.order_id = row.try_get("order_id")?;
        Ok(account)
    }
}

async fn open(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("a database of the demo can't be reached")?;
    drop(tokio::spawn(async move {
        // Whoever asks next hears of it.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a reader's connection ended");
        }
    }));
    Ok(client)
}
