//! The inventory's business: reserve, confirm, release. Decides when there is too little.

use axum::{Json, Router, extract::State, routing::post};

use super::{Answer, Barrier, Database, Direction, Key};
use crate::wire::{About, Reservation, Reserve};

/// The inventory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Inventory {
    database: Database,
    /// Pieces of a sku that was never asked for.
    stock: i64,
}

pub(super) fn routes(inventory: Inventory) -> Router {
    Router::new()
        .route(
            "/reserve",
            post(
                async |State(on): State<Inventory>, key: Key, Json(ask): Json<Reserve>| {
                    on.reserve(key, ask).await.unwrap_or_else(|answer| answer)
                },
            ),
        )
        .route(
            "/confirm",
            post(
                async |State(on): State<Inventory>, key: Key, Json(ask): Json<About>| {
                    on.confirm(key, ask).await.unwrap_or_else(|answer| answer)
                },
            ),
        )
        .route(
            "/release",
            post(
                async |State(on): State<Inventory>, key: Key, Json(ask): Json<About>| {
                    on.release(key, ask).await.unwrap_or_else(|answer| answer)
                },
            ),
        )
        .with_state(inventory)
}

impl Inventory {
    /// Its tables, beside the barrier's.
    pub const SCHEMA: &'static str = include_str!("../../sql/inventory.sql");

    /// Over a database, with this many pieces of each sku.
    #[must_use]
    pub fn new(database: Database, stock: u32) -> Self {
        Self {
            database,
            stock: stock.into(),
        }
    }

    /// Puts goods aside.
    ///
    /// # Errors
    /// The answer of a call that is not carried out, for whatever reason.
    pub async fn reserve(&self, key: Key, ask: Reserve) -> Result<Answer, Answer> {
        Answer::expects(Direction::Forward, &key)?;
        let mut connection = self.database.connection().await?;
        let entered = Barrier::enter(&mut connection, key).await?;
        let barrier = Answer::or_first(entered)?;
        let Reserve {
            order_id,
            sku,
            quantity,
        } = ask;
        let quantity = i64::from(quantity);
        let sql = barrier.sql();
        let known = "insert into stock (sku, available) values ($1, $2) on conflict do nothing";
        sql.execute(known, &[&sku, &self.stock]).await?;
        let take = "update stock set available = available - $2 \
                    where sku = $1 and available >= $2";
        if sql.execute(take, &[&sku, &quantity]).await? == 0 {
            return Err(Answer::Refused(format!("{sku} is out of stock")));
        }
        let note = "insert into movement (transaction, order_id, kind, sku, quantity) \
                    values ($1, $2, 'reserve', $3, $4) returning id";
        let transaction = barrier.key().transaction;
        let row = sql
            .query_one(note, &[&transaction, &order_id, &sku, &quantity])
            .await?;
        let reservation = row.try_get(0)?;
        Ok(Answer::Done(
            barrier.answered(&Reservation { reservation }).await?,
        ))
    }

    /// Makes a reservation final.
    ///
    /// # Errors
    /// The answer of a call that is not carried out, for whatever reason.
    pub async fn confirm(&self, key: Key, ask: About) -> Result<Answer, Answer> {
        Answer::expects(Direction::Forward, &key)?;
        let mut connection = self.database.connection().await?;
        let entered = Barrier::enter(&mut connection, key).await?;
        let barrier = Answer::or_first(entered)?;
        let note = "insert into movement (transaction, order_id, kind, sku, quantity) \
                    select transaction, order_id, 'confirm', sku, 0 from movement m \
                    where transaction = $1 and kind = 'reserve' and not exists (select from \
                    movement r where r.transaction = m.transaction and r.kind = 'release')";
        let noted = barrier
            .sql()
            .execute(note, &[&barrier.key().transaction])
            .await?;
        if noted == 0 {
            return Err(Answer::Refused(format!(
                "{} holds no reservation",
                ask.order_id
            )));
        }
        Ok(Answer::Done(barrier.answered(&()).await?))
    }

    /// Puts goods back.
    ///
    /// # Errors
    /// The answer of a call that is not carried out, for whatever reason.
    pub async fn release(&self, key: Key, _: About) -> Result<Answer, Answer> {
        Answer::expects(Direction::Compensate, &key)?;
        let mut connection = self.database.connection().await?;
        let entered = Barrier::enter(&mut connection, key).await?;
        let barrier = Answer::or_first(entered)?;
        let put_back = "with put as (insert into movement (transaction, order_id, kind, sku, quantity) \
                        select transaction, order_id, 'release', sku, -quantity from movement \
                        where transaction = $1 and kind = 'reserve' returning sku, quantity) \
                        update stock set available = available - put.quantity from put \
                        where stock.sku = put.sku";
        barrier
            .sql()
            .execute(put_back, &[&barrier.key().transaction])
            .await?;
        Ok(Answer::Done(barrier.answered(&()).await?))
    }
}
