//! Money moves exactly once: two accounts and the saga store in one Postgres.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@localhost/bank cargo run -p orchestrator-lib --example bank_transfer
//! ```
//!
//! The request and the start of the transfer are one database transaction of the caller's; each
//! step's SQL and its record are one commit of the store's. So there is no idempotency key to
//! check and no barrier to keep, whatever dies when.

use std::time::Duration;

use orchestrator_lib::{
    Config, Context, Ended, Node, Saga, Step, StepError, StoreTransaction,
    tokio_postgres::{self, Client, NoTls},
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Transfer {
    from: String,
    to: String,
    cents: i64,
}

/// Step 1. The `where` refuses what the account does not hold; nothing is changed then.
async fn debit(_: Context, transfer: Transfer, tx: StoreTransaction) -> Result<(), StepError> {
    let sql = "update bank.account set cents = cents - $2 where name = $1 and cents >= $2";
    match tx.execute(sql, &[&transfer.from, &transfer.cents]).await? {
        0 => Err(StepError::business("not enough money")),
        _ => Ok(()),
    }
}

/// Undoes step 1, exactly once, and only if step 1 was done.
async fn refund(
    _: Context,
    transfer: Transfer,
    _: Option<()>,
    tx: StoreTransaction,
) -> Result<(), StepError> {
    let sql = "update bank.account set cents = cents + $2 where name = $1";
    tx.execute(sql, &[&transfer.from, &transfer.cents]).await?;
    Ok(())
}

/// Step 2. A closed account refuses the money, so the debit is undone.
async fn credit(_: Context, transfer: Transfer, tx: StoreTransaction) -> Result<(), StepError> {
    let sql = "update bank.account set cents = cents + $2 where name = $1 and not closed";
    match tx.execute(sql, &[&transfer.to, &transfer.cents]).await? {
        0 => Err(StepError::business(format!("{} is closed", transfer.to))),
        _ => Ok(()),
    }
}

/// What a service does when a customer asks: the request is noted and the transfer started in one
/// database transaction. If it is rolled back, there is no transfer.
async fn request(
    node: &Node,
    saga: &Saga<Transfer>,
    client: &mut Client,
    transfer: Transfer,
) -> Result<Ended, Box<dyn std::error::Error>> {
    let mut tx = client.transaction().await?;
    let sql = "insert into bank.request (sender, receiver, cents) values ($1, $2, $3) returning id";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&transfer.from, &transfer.to, &transfer.cents];
    let id: i64 = tx.query_one(sql, &values).await?.try_get(0)?;
    let pending = node
        .start_in(&mut tx, saga, format!("request-{id}"), transfer)
        .await?;
    tx.commit().await?;
    // It would also run if this process died right here; so it runs at once.
    let started = pending.committed().await;
    Ok(node.wait(started.id, Duration::from_secs(60)).await?)
}

const TABLES: &str = "
    create schema if not exists bank;
    create table if not exists bank.request
        (id bigint generated always as identity primary key, sender text, receiver text, cents bigint);
    create table if not exists bank.account
        (name text primary key, cents bigint not null check (cents >= 0), closed boolean not null);
    insert into bank.account values
        ('alice', 10000, false), ('bob', 0, false), ('carol', 0, true)
    on conflict (name) do update set cents = excluded.cents, closed = excluded.closed;
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .init();

    let saga = Saga::<Transfer>::new("transfer", 1)
        .step(Step::transactional("debit", debit).compensate_transactional(refund))
        .step(Step::transactional("credit", credit))
        .build()?;

    #[expect(
        clippy::disallowed_methods,
        reason = "an example has no configuration file"
    )]
    let url = std::env::var("DATABASE_URL")?;
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(TABLES).await?;
    let mut config = Config::new("local", "example", "bank", "bank-1", url)?;
    config.migrate_on_start = true;
    let node = Node::builder(config)
        .saga(saga.clone())
        .retry_node(true)
        .start()
        .await?;

    for (to, cents) in [("bob", 2_500), ("carol", 1_000), ("bob", 50_000)] {
        let transfer = Transfer {
            from: "alice".into(),
            to: to.into(),
            cents,
        };
        match request(&node, &saga, &mut client, transfer).await? {
            Ended::Completed(_) => print(&format!("{cents} to {to}: done")),
            Ended::Compensated { reason } => print(&format!("{cents} to {to}: undone, {reason}")),
            ended @ (Ended::Terminated { .. }
            | Ended::Disabled { .. }
            | Ended::Quarantined { .. }) => {
                print(&format!("{cents} to {to}: a person is needed: {ended:?}"));
            }
        }
    }
    let sql = "select name, cents from bank.account order by name";
    for row in client.query(sql, &[]).await? {
        let (name, cents): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        print(&format!("{name} has {cents}"));
    }
    node.drain().await;
    drop(client);
    connection.await??;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
fn print(line: &str) {
    println!("{line}");
}
