//! A participant's own database: pool, schema, and whether it answers.

use std::{
    str::FromStr as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use backon::{ExponentialBuilder, Retryable as _};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use ring_participant::barrier;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_postgres::{Config, NoTls};

/// Calls at once; each is busy for milliseconds, more only wait for Postgres' own disks.
const CONNECTIONS: usize = 16;

/// A statement that waits longer is for a lock whose holder hangs: better an answer than silence.
const STATEMENT: &str = "-c statement_timeout=5000 -c lock_timeout=3000 \
                         -c idle_in_transaction_session_timeout=10000";

/// Any process that prepares the schema takes this lock: two at once would collide.
const LOCK: i64 = 0x7368_6f70;

/// A pool. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Database {
    pool: Pool,
    schema: &'static str,
    prepared: Arc<AtomicBool>,
}

impl Database {
    /// Prepares a pool and connects to nothing yet.
    ///
    /// # Errors
    /// When the address can't be read.
    pub fn new(url: &SecretString, schema: &'static str) -> anyhow::Result<Self> {
        let mut config = Config::from_str(url.expose_secret())
            .context("database.url can't be read: write postgres://user:password@host/name")?;
        config
            .connect_timeout(Duration::from_secs(3))
            .options(STATEMENT);
        let recycling_method = RecyclingMethod::Fast;
        // Without TLS, because this is an example on one machine.
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
        Ok(Self {
            pool: Pool::builder(manager).max_size(CONNECTIONS).build()?,
            schema,
            prepared: Arc::default(),
        })
    }

    /// Its connections.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Makes the tables; waits with backoff while the database is away, and says so.
    ///
    /// # Errors
    /// When the pool is closed.
    pub async fn prepare(&self) -> anyhow::Result<()> {
        let make = async || {
            let mut connection = self.pool.get().await?;
            let sql = connection.transaction().await?;
            sql.execute("select pg_advisory_xact_lock($1)", &[&LOCK])
                .await?;
            sql.batch_execute(barrier::SQL).await?;
            sql.batch_execute(self.schema).await?;
            sql.commit().await?;
            anyhow::Ok(())
        };
        let patient = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(200))
            .with_max_delay(Duration::from_secs(5))
            .with_jitter()
            .without_max_times();
        make.retry(patient)
            .notify(|error, pause| {
                tracing::warn!("waiting for the database, again in {pause:?}: {error:#}")
            })
            .await?;
        self.prepared.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Why no call can be answered; empty when calls can.
    #[must_use]
    pub fn unready(&self) -> Vec<String> {
        let waits = !self.prepared.load(Ordering::Relaxed);
        waits
            .then(|| "the database is not prepared yet".to_owned())
            .into_iter()
            .collect()
    }
}
