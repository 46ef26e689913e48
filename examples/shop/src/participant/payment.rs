//! Payment's business: charge and refund. Decides who is declined.

use std::sync::Arc;

use axum::{Json, Router, extract::State, routing::post};

use super::{Answer, Barrier, Database, Direction, Faults, Key, faults::Fate};
use crate::wire::{About, Charge, Receipt};

/// Customers whose names begin with this are always declined.
pub const DECLINED: &str = "declined-";

/// Payment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Payment {
    database: Database,
    faults: Arc<Faults>,
}

pub(super) fn routes(payment: Payment) -> Router {
    Router::new()
        .route(
            "/charge",
            post(
                async |State(on): State<Payment>, key: Key, Json(ask): Json<Charge>| {
                    on.charge(key, ask).await.unwrap_or_else(|answer| answer)
                },
            ),
        )
        .route(
            "/refund",
            post(
                async |State(on): State<Payment>, key: Key, Json(ask): Json<About>| {
                    on.refund(key, ask).await.unwrap_or_else(|answer| answer)
                },
            ),
        )
        .with_state(payment)
}

impl Payment {
    /// Its tables, beside the barrier's.
    pub const SCHEMA: &'static str = include_str!("../../sql/payment.sql");

    /// Over a database, with switches.
    #[must_use]
    pub fn new(database: Database, faults: Arc<Faults>) -> Self {
        Self { database, faults }
    }

    /// Charges a customer.
    ///
    /// # Errors
    /// The answer of a call that is not carried out, for whatever reason.
    pub async fn charge(&self, key: Key, ask: Charge) -> Result<Answer, Answer> {
        Answer::expects(Direction::Forward, &key)?;
        match self.faults.fate(&ask.order_id) {
            Fate::Now => self.book(key, ask).await,
            Fate::Declined => Err(Answer::Refused(format!("{}: limit reached", ask.customer))),
            Fate::Later(time) => {
                let this = self.clone();
                // In a task of its own: a caller that hangs up does not stop it.
                let late = tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    let answer = this.book(key, ask).await;
                    tracing::info!(?answer, "a charge that was held back");
                    answer
                });
                late.await
                    .map_err(|error| Answer::Broken(error.to_string()))?
            }
        }
    }

    async fn book(&self, key: Key, ask: Charge) -> Result<Answer, Answer> {
        let mut connection = self.database.connection().await?;
        let entered = Barrier::enter(&mut connection, key).await?;
        let barrier = Answer::or_first(entered)?;
        let Charge {
            order_id,
            customer,
            amount_cents,
        } = ask;
        if customer.starts_with(DECLINED) {
            return Err(Answer::Refused(format!("{customer} was declined")));
        }
        let note = "insert into entry (transaction, order_id, kind, customer, amount_cents) \
                    values ($1, $2, 'charge', $3, $4) returning id";
        let transaction = barrier.key().transaction;
        let row = barrier
            .sql()
            .query_one(note, &[&transaction, &order_id, &customer, &amount_cents])
            .await?;
        let receipt = row.try_get(0)?;
        Ok(Answer::Done(barrier.answered(&Receipt { receipt }).await?))
    }

    /// Pays back.
    ///
    /// # Errors
    /// The answer of a call that is not carried out, for whatever reason.
    pub async fn refund(&self, key: Key, _: About) -> Result<Answer, Answer> {
        Answer::expects(Direction::Compensate, &key)?;
        let mut connection = self.database.connection().await?;
        let entered = Barrier::enter(&mut connection, key).await?;
        let barrier = Answer::or_first(entered)?;
        let pay_back = "insert into entry (transaction, order_id, kind, customer, amount_cents) \
                        select transaction, order_id, 'refund', customer, -amount_cents \
                        from entry where transaction = $1 and kind = 'charge'";
        barrier
            .sql()
            .execute(pay_back, &[&barrier.key().transaction])
            .await?;
        Ok(Answer::Done(barrier.answered(&()).await?))
    }
}
