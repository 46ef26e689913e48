//! Payment's business: charge and refund. Decides who is declined.

use ring_participant::worker::{Call, Mistakes, Refusal, Transactional, Worker};
use tokio_postgres::Transaction;

use super::Database;
use crate::wire::{Charge, Receipt};

/// Customers whose names begin with this are always declined.
pub const DECLINED: &str = "declined-";

/// Its tables, beside the barrier's.
pub const SCHEMA: &str = include_str!("../../sql/payment.sql");

/// Payment's steps.
///
/// # Errors
/// Never with the steps below.
pub fn worker(database: &Database) -> Result<Worker, Mistakes> {
    let work = Transactional::new(database.pool(), charge).compensate(refund);
    Worker::builder().on("charge", work).build()
}

/// Charges a customer.
async fn charge(sql: &Transaction<'_>, call: Call, ask: Charge) -> Result<Receipt, Refusal> {
    let Charge {
        order_id,
        customer,
        amount_cents,
    } = ask;
    if customer.starts_with(DECLINED) {
        return Err(Refusal::business(format_args!("{customer} was declined")));
    }
    let note = "insert into entry (transaction, order_id, kind, customer, amount_cents) \
                values ($1, $2, 'charge', $3, $4) returning id";
    let row = sql
        .query_one(
            note,
            &[&call.transaction(), &order_id, &customer, &amount_cents],
        )
        .await?;
    let receipt = row.try_get(0)?;
    Ok(Receipt { receipt })
}

/// Pays back.
async fn refund(
    sql: &Transaction<'_>,
    call: Call,
    _: Charge,
    _: Option<Receipt>,
) -> Result<(), Refusal> {
    let pay_back = "insert into entry (transaction, order_id, kind, customer, amount_cents) \
                    select transaction, order_id, 'refund', customer, -amount_cents \
                    from entry where transaction = $1 and kind = 'charge'";
    sql.execute(pay_back, &[&call.transaction()]).await?;
    Ok(())
}
