//! Decides how a connection is made: limits, TLS, session settings, what becomes of notices.
//! Refuses to know what is asked over it.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio::{task::JoinHandle, time::sleep};
use tokio_postgres::{
    AsyncMessage, Client, Statement,
    config::{SslMode, TargetSessionAttrs},
    types::ToSql,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    address,
    config::Config,
    error::{Error, Reason, Verdict},
    sql,
    writer::LOCK_WAIT,
};

/// What a connection is for: each purpose has its own, so that a flood of one never starves
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The one writer.
    Write,
    /// Opening and renewing the lease, and nothing that could hold that up.
    Lease,
    /// Claims, deaths, strays and the engine's reads.
    Claim,
    /// People's questions.
    Admin,
    /// Steps that run in a database transaction of the store: users' SQL, as on a connection of
    /// their own.
    Step,
}

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    postgres: tokio_postgres::Config,
    tls: MakeRustlsConnect,
    limit: Duration,
    session: String,
    unconfirmed: Arc<AtomicU64>,
}

/// Connections of one purpose.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pool: Pool,
    limit: Duration,
}

impl Connector {
    /// Reads the address and prepares TLS.
    pub(super) fn new(
        config: &Config,
        purpose: Purpose,
        unconfirmed: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let mut postgres = address::read(&config.url)?;
        postgres
            .connect_timeout(config.connect_timeout)
            .tcp_user_timeout(config.tcp_user_timeout)
            .keepalives(true)
            .keepalives_idle(config.tcp_user_timeout)
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .application_name(purpose.name());
        let roots = postgres.get_ssl_mode() != SslMode::Disable;
        Ok(Self {
            postgres,
            tls: tls(roots)?,
            // The driver's limit covers TCP alone: TLS and the greeting count here.
            limit: config.connect_timeout,
            session: session(config, purpose),
            unconfirmed,
        })
    }

    /// A connection with its session set up.
    pub(super) async fn connect(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let operation = "connect to Postgres";
        let made = tokio::time::timeout(self.limit, async {
            let (client, connection) = self.postgres.connect(self.tls.clone()).await?;
            let driver = tokio::spawn(drive(connection, Arc::clone(&self.unconfirmed)));
            client.batch_execute(&self.session).await?;
            Ok((client, driver))
        });
        match made.await {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(error)) => Err(Error::classify(operation, error).0),
            Err(_) => Err(Error::unreachable(operation, "the time limit is over")),
        }
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &tokio_postgres::Config,
    ) -> std::pin::Pin<
        Box<
            dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>>
                + Send
                + '_,
        >,
    > {
        Box::pin(async {
            let (client, connection) = self.postgres.connect(self.tls.clone()).await?;
            let driver = tokio::spawn(drive(connection, Arc::clone(&self.unconfirmed)));
            client.batch_execute(&self.session).await?;
            Ok((client, driver))
        })
    }
}

impl Link {
    /// A link of `size` connections at most, none of them made yet.
    pub(super) fn new(
        config: &Config,
        purpose: Purpose,
        unconfirmed: &Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let connector = Connector::new(config, purpose, Arc::clone(unconfirmed))?;
        // What a step leaves in its session (settings, locks) is nobody else's.
        let recycling_method = match purpose {
            Purpose::Step => RecyclingMethod::Clean,
            Purpose::Write | Purpose::Lease | Purpose::Claim | Purpose::Admin => {
                RecyclingMethod::Fast
            }
        };
        let manager = ManagerConfig { recycling_method };
        let manager = Manager::from_connect(connector.postgres.clone(), connector, manager);
        let (size, limit) = match purpose {
            Purpose::Write => (1, config.call_timeout),
            Purpose::Lease => (1, config.renew_timeout),
            Purpose::Claim => (config.claim_connections.max(1), config.call_timeout),
            Purpose::Admin => (config.admin_connections.max(1), config.call_timeout),
            Purpose::Step => (config.step_connections.max(1), config.call_timeout),
        };
        let pool = Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .create_timeout(Some(config.connect_timeout))
            .wait_timeout(Some(limit))
            .build()
            .map_err(|e| Error::permanent("make the connection pool", e))?;
        Ok(Self { pool, limit })
    }

    /// Runs a call within the link's limit, which covers the wait for a connection and the answer
    /// together. A connection that broke, hangs or leads to a read-only server is thrown away.
    pub(super) async fn call<T, F>(&self, operation: &'static str, ask: F) -> Result<T, Error>
    where
        F: AsyncFnOnce(&Session) -> Result<T, tokio_postgres::Error>,
    {
        self.call_within(self.limit, operation, ask).await
    }

    /// As [`Link::call`], with a limit of its own.
    pub(super) async fn call_within<T, F>(
        &self,
        limit: Duration,
        operation: &'static str,
        ask: F,
    ) -> Result<T, Error>
    where
        F: AsyncFnOnce(&Session) -> Result<T, tokio_postgres::Error>,
    {
        let mut over = pin!(sleep(limit));
        let object = tokio::select! {
            biased;
            got = self.pool.get() => got.map_err(|error| from_pool(operation, error))?,
            () = over.as_mut() => {
                return Err(Error::unreachable(operation, "no connection in time"));
            }
        };
        let session = Session(object);
        let answer = tokio::select! {
            biased;
            answer = ask(&session) => Some(answer),
            () = over => None,
        };
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                let (error, verdict) = Error::classify(operation, error);
                if verdict == Verdict::Discard {
                    session.discard();
                }
                Err(error)
            }
            None => {
                session.discard();
                Err(Error::unreachable(operation, "the time limit is over"))
            }
        }
    }

    /// A connection for longer than one call: whoever holds it sees to its limits and its end.
    pub(super) async fn session(&self, operation: &'static str) -> Result<Session, Error> {
        let got = self.pool.get().await;
        got.map(Session)
            .map_err(|error| from_pool(operation, error))
    }

    /// Closes idle connections and refuses new calls.
    pub(super) fn close(&self) {
        self.pool.close();
    }
}

/// A connection for the time of one call, with its prepared statements.
#[derive(Debug)]
pub(super) struct Session(Object);

impl Session {
    /// The statement, prepared once a connection.
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        self.0.prepare_cached(sql).await
    }

    /// All rows of a statement.
    pub(super) async fn rows(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        let statement = self.prepare(sql).await?;
        self.0.query(&statement, values).await
    }

    /// The one row of a prepared statement that always answers with one.
    pub(super) async fn one(
        &self,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<tokio_postgres::Row, tokio_postgres::Error> {
        self.0.query_one(statement, values).await
    }

    /// How many rows a statement touched.
    pub(super) async fn execute(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.prepare(sql).await?;
        self.0.execute(&statement, values).await
    }

    /// The driver's own connection.
    pub(super) fn client(&self) -> &Client {
        &self.0
    }

    pub(super) fn discard(self) {
        drop(Object::take(self.0));
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "ringsaga write",
            Self::Lease => "ringsaga lease",
            Self::Claim => "ringsaga claim",
            Self::Admin => "ringsaga admin",
            Self::Step => "ringsaga step",
        }
    }
}

fn session(config: &Config, purpose: Purpose) -> String {
    if purpose == Purpose::Step {
        // Set for each transaction anew; users' SQL is planned as the database plans it.
        return String::new();
    }
    // A little less than on the client, so that the server gives up first and says so. (It does
    // not bound a commit that waits for a standby: the client's limit does.)
    let limit = match purpose {
        Purpose::Lease => config.renew_timeout,
        Purpose::Write | Purpose::Claim | Purpose::Admin | Purpose::Step => config.call_timeout,
    };
    // A batch carries many: it does not wait long for one row or key, and the writer has patience.
    let lock = match purpose {
        Purpose::Write => config.lock_timeout.min(LOCK_WAIT),
        Purpose::Lease | Purpose::Claim | Purpose::Admin | Purpose::Step => config.lock_timeout,
    };
    let pins = sql::PINS;
    // The engine's plans don't depend on parameters. People's lists leave filters out, so each is
    // planned for the filters it has.
    let plans = match purpose {
        Purpose::Admin => "force_custom_plan",
        Purpose::Write | Purpose::Lease | Purpose::Claim | Purpose::Step => "force_generic_plan",
    };
    format!(
        "{pins}set plan_cache_mode = {plans}; set default_transaction_isolation = 'read committed'; \
         set statement_timeout = {}; set lock_timeout = {}; \
         set idle_in_transaction_session_timeout = {}",
        (limit * 9 / 10).as_millis(),
        lock.as_millis(),
        limit.as_millis(),
    )
}

/// The system's certificates: reading them takes the disk tens of milliseconds, so once a process.
static ROOTS: LazyLock<rustls::RootCertStore> = LazyLock::new(|| {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a root certificate was not read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
});

/// Rustls with the ring provider, passed and not installed: the user's process may have its own.
fn tls(with_roots: bool) -> Result<MakeRustlsConnect, Error> {
    let operation = "set up TLS";
    let roots = if with_roots {
        ROOTS.clone()
    } else {
        rustls::RootCertStore::empty()
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::permanent(operation, e))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Moves bytes until the connection ends. A warning at a commit says that the standby did not
/// confirm it: it is counted *before* the call's answer is passed on, so that the caller sees it.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, unconfirmed: Arc<AtomicU64>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                if notice.code().code() == "01000" {
                    unconfirmed.fetch_add(1, Ordering::SeqCst);
                    tracing::warn!(notice = notice.message(), "Postgres warned");
                } else {
                    tracing::debug!(notice = notice.message(), "Postgres said");
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to Postgres broke");
                return;
            }
            None => return,
        }
    }
}

fn from_pool(operation: &'static str, error: PoolError) -> Error {
    match error {
        PoolError::Backend(error) => Error::classify(operation, error).0,
        PoolError::Closed => Error::permanent(operation, Reason("the store is closed")),
        PoolError::Timeout(_) | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            Error::Unreachable {
                operation,
                source: Arc::new(error),
            }
        }
    }
}
