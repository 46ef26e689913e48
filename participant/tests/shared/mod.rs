//! A Postgres database of the test's own, with the barrier in it.

#![allow(dead_code, reason = "each test binary uses its part")]

#[cfg(feature = "http")]
pub(crate) mod served;

use std::{str::FromStr as _, sync::Arc, time::Duration};

use deadpool_postgres::{Manager, Pool};
use ring_local::{Set, Settings, TestDatabase};
use ring_participant::{Direction, Key, barrier};
use tokio_postgres::{Client, Config, NoTls};

pub(crate) type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// It goes with the test.
pub(crate) struct Own {
    pub(crate) pool: Pool,
    made: TestDatabase,
    pub(crate) set: Arc<Set>,
}

impl Own {
    pub(crate) async fn new() -> Checked<Self> {
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let made = TestDatabase::create(set.addresses()).await?;
        let manager = Manager::new(Config::from_str(made.url())?, NoTls);
        let pool = Pool::builder(manager).max_size(8).build()?;
        let own = Self { pool, made, set };
        let mut client = own.client().await?;
        // Twice: whoever comes second does no harm.
        barrier::install(&mut client).await?;
        barrier::install(&mut client).await?;
        client
            .batch_execute(
                "create table effect (id bigint generated always as identity, what text)",
            )
            .await?;
        Ok(own)
    }

    /// A session of its own, beside the pool.
    pub(crate) async fn client(&self) -> Checked<Client> {
        let (client, connection) = tokio_postgres::connect(self.made.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub(crate) async fn number(&self, sql: &str) -> Checked<i64> {
        Ok(self
            .pool
            .get()
            .await?
            .query_one(sql, &[])
            .await?
            .try_get(0)?)
    }

    /// Waits until so many sessions wait for a lock, at most 10 s.
    pub(crate) async fn blocked(&self, sessions: i64) -> Checked {
        let sql = "select count(*) from pg_stat_activity \
                   where datname = current_database() and wait_event_type = 'Lock'";
        self.until(sql, sessions).await
    }

    /// Waits until a query gives this number, at most 10 s.
    pub(crate) async fn until(&self, sql: &str, wanted: i64) -> Checked {
        for _ in 0..500 {
            if self.number(sql).await? == wanted {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(format!("{sql} never gave {wanted}").into())
    }
}

pub(crate) const TRANSACTION: &str = "0190b3a0-7c3e-7000-8000-000000000001";

pub(crate) fn action(step: &str) -> Key {
    key(Direction::Forward, step)
}

pub(crate) fn undo(step: &str) -> Key {
    key(Direction::Compensating, step)
}

fn key(direction: Direction, step: &str) -> Key {
    let text = format!("{TRANSACTION}/{direction}/{step}");
    text.parse().expect("a key")
}
