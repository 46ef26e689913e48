//! A worker in Rust: the same service as examples/polyglot/worker.py, with its books in Postgres.
//!
//! `cargo run -p ring-participant --example worker -- postgres://postgres@localhost/payment`

use deadpool_postgres::{Manager, Pool};
use ring_participant::{
    barrier,
    worker::{Call, Refusal, Transactional, Worker},
};
use serde::{Deserialize, Serialize};
use tokio_postgres::{NoTls, Transaction};

#[derive(Deserialize)]
struct Charge {
    cents: i64,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    receipt: i64,
}

async fn charge(sql: &Transaction<'_>, _: Call, ask: Charge) -> Result<Receipt, Refusal> {
    if ask.cents > 100_000 {
        return Err(Refusal::business("over the card's limit"));
    }
    let book = "insert into booking (cents) values ($1) returning id";
    let receipt = sql.query_one(book, &[&ask.cents]).await?.try_get(0)?;
    Ok(Receipt { receipt })
}

/// Never called for a charge that was not booked: the barrier has its receipt.
async fn refund(
    sql: &Transaction<'_>,
    _: Call,
    ask: Charge,
    _: Option<Receipt>,
) -> Result<(), Refusal> {
    let book = "insert into booking (cents) values (-$1::bigint)";
    sql.execute(book, &[&ask.cents]).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args()
        .nth(1)
        .ok_or("give the database's address")?;
    let pool = Pool::builder(Manager::new(url.parse()?, NoTls)).build()?;
    let mut client = pool.get().await?;
    barrier::install(&mut client).await?;
    let books = "create table if not exists booking \
                 (id bigint generated always as identity primary key, cents bigint not null)";
    client.batch_execute(books).await?;
    drop(client);

    let worker = Worker::builder()
        .on(
            "charge",
            Transactional::new(&pool, charge).compensate(refund),
        )
        .build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:9000").await?;
    axum::serve(listener, worker.router()).await?;
    Ok(())
}
