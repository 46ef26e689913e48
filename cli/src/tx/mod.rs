//! Transactions as people see them, straight from Postgres; and the store's schema.

mod ask;
mod deed;
mod purge;
mod region;
mod view;
mod whole;

use orchestrator_lib::store::{Config, Error, Filter, Operator, migrate};
use ring_core::{
    id::{Scope, TransactionId},
    time::Wall,
};
use secrecy::ExposeSecret;

use crate::{
    args::{Database, FilterArgs, Format, StoreOf, Tx},
    exit::Exit,
    output,
};

/// Runs a `tx` command.
pub(crate) fn run(command: Tx, format: Format) -> anyhow::Result<()> {
    block_on(async {
        match command {
            Tx::List(args) => ask::list(&args, format).await,
            Tx::Show(args) => ask::show(&args, format).await,
            Tx::Why(args) => ask::why(&args, format).await,
            Tx::Count(args) => ask::count(&args, format).await,
            Tx::Region(args) => region::region(&args, format),
            Tx::Purge(args) => purge::purge(&args, format).await,
            deed @ (Tx::Retry(_)
            | Tx::Restore(_)
            | Tx::RetryCompensation(_)
            | Tx::Skip(_)
            | Tx::Policy(_)
            | Tx::Signal(_)
            | Tx::Cancel(_)
            | Tx::Close(_)
            | Tx::Rehome(_)) => deed::order(deed, format).await,
        }
    })
}

/// `ringsaga migrate`: brings the schema up to date.
pub(crate) fn migrate_now(database: &Database) -> anyhow::Result<()> {
    let config = Config::new(database.url.expose_secret());
    let migrated = block_on(async { migrate(&config).await.map_err(told) })?;
    if migrated.applied.is_empty() {
        output::line("the schema is up to date")?;
    }
    for name in migrated.applied {
        output::line(&format!("applied {name}"))?;
    }
    Ok(())
}

fn filter(args: &FilterArgs) -> Filter {
    let wall = |at: std::time::SystemTime| {
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    };
    Filter {
        service: args.service.clone(),
        states: args.state.iter().copied().map(view::state).collect(),
        saga: args.saga.clone(),
        version: args.saga_version,
        direction: args.direction.map(view::direction),
        created_from: args.created_from.map(wall),
        created_before: args.created_before.map(wall),
        due_before: args.due_before.map(wall),
        waiting_on: args.waiting_on.clone(),
        error: args.error.clone(),
        attempts: args.attempts,
        key: args.key.clone(),
    }
}

fn operator(store: &StoreOf) -> anyhow::Result<Operator> {
    let config = Config::new(store.database.url.expose_secret());
    Operator::new(&config, scope(store)).map_err(told)
}

/// The region and cluster of a store's transactions.
pub(crate) fn scope(store: &StoreOf) -> Scope {
    Scope {
        region: store.region.clone(),
        cluster: store.cluster.clone(),
    }
}

fn missing(id: TransactionId, store: &StoreOf) -> anyhow::Error {
    let StoreOf {
        region, cluster, ..
    } = store;
    Exit::NotFound.because(format!("no transaction {id} in {region}.{cluster}"))
}

/// A store's error with its causes and the right exit code.
pub(crate) fn told(error: Error) -> anyhow::Error {
    let exit = if error.is_unreachable() {
        Exit::NotReachable
    } else {
        Exit::Failed
    };
    let text = format!("{:#}", anyhow::Error::new(error));
    if text.contains("relation \"ringsaga.") {
        return Exit::NotFound.because("the database has no store yet: run `ringsaga migrate`");
    }
    if text.contains("does not exist") {
        return Exit::NotFound.because(format!(
            "the store is older than this program: run `ringsaga migrate` ({text})"
        ));
    }
    exit.because(text)
}

/// Runs a question on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    drop(rustls::crypto::ring::default_provider().install_default());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}
