//! The inventory's business: reserve, confirm, release. Decides when there is too little.

use ring_participant::worker::{Call, Mistakes, Refusal, Transactional, Worker};
use tokio_postgres::Transaction;

use super::Database;
use crate::wire::{About, Reservation, Reserve};

/// Its tables, beside the barrier's.
pub const SCHEMA: &str = include_str!("../../sql/inventory.sql");

/// Pieces of a sku that was never asked for.
struct Shelf(i64);

/// The inventory's steps, with this many pieces of each sku.
///
/// # Errors
/// Never with the steps below.
pub fn worker(database: &Database, stock: u32) -> Result<Worker, Mistakes> {
    let pool = database.pool();
    Worker::builder()
        .provide(Shelf(stock.into()))
        .on(
            "reserve",
            Transactional::new(pool, reserve).compensate(release),
        )
        .on("confirm", Transactional::new(pool, confirm))
        .build()
}

/// Puts goods aside.
async fn reserve(sql: &Transaction<'_>, call: Call, ask: Reserve) -> Result<Reservation, Refusal> {
    let Reserve {
        order_id,
        sku,
        quantity,
    } = ask;
    let (stock, quantity) = (call.shared::<Shelf>()?.0, i64::from(quantity));
    let known = "insert into stock (sku, available) values ($1, $2) on conflict do nothing";
    sql.execute(known, &[&sku, &stock]).await?;
    let take = "update stock set available = available - $2 where sku = $1 and available >= $2";
    if sql.execute(take, &[&sku, &quantity]).await? == 0 {
        return Err(Refusal::business(format_args!("{sku} is out of stock")));
    }
    let note = "insert into movement (transaction, order_id, kind, sku, quantity) \
                values ($1, $2, 'reserve', $3, $4) returning id";
    let row = sql
        .query_one(note, &[&call.transaction(), &order_id, &sku, &quantity])
        .await?;
    let reservation = row.try_get(0)?;
    Ok(Reservation { reservation })
}

/// Makes a reservation final.
async fn confirm(sql: &Transaction<'_>, call: Call, ask: About) -> Result<(), Refusal> {
    let note = "insert into movement (transaction, order_id, kind, sku, quantity) \
                select transaction, order_id, 'confirm', sku, 0 from movement m \
                where transaction = $1 and kind = 'reserve' and not exists (select from \
                movement r where r.transaction = m.transaction and r.kind = 'release')";
    if sql.execute(note, &[&call.transaction()]).await? == 0 {
        let order = ask.order_id;
        return Err(Refusal::business(format_args!(
            "{order} holds no reservation"
        )));
    }
    Ok(())
}

/// Puts goods back.
async fn release(
    sql: &Transaction<'_>,
    call: Call,
    _: Reserve,
    _: Option<Reservation>,
) -> Result<(), Refusal> {
    let put_back = "with put as (insert into movement (transaction, order_id, kind, sku, quantity) \
                    select transaction, order_id, 'release', sku, -quantity from movement \
                    where transaction = $1 and kind = 'reserve' returning sku, quantity) \
                    update stock set available = available - put.quantity from put \
                    where stock.sku = put.sku";
    sql.execute(put_back, &[&call.transaction()]).await?;
    Ok(())
}
