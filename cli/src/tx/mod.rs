//! Transactions as people see them, straight from Postgres; and the store's schema.

mod view;

use orchestrator_lib::store::{Config, Cursor, Error, Filter, Operator, Restored, migrate};
use ring_core::id::{Scope, TransactionId};
use secrecy::ExposeSecret;

use self::view::{Line, Whole, counted};
use crate::{
    args::{Count, Database, List, Restore, Show, StoreOf, Tx},
    exit::Exit,
    output,
};

/// Runs a `tx` command.
pub(crate) fn run(command: Tx, json: bool) -> anyhow::Result<()> {
    block_on(async {
        match command {
            Tx::List(args) => list(&args, json).await,
            Tx::Show(args) => show(&args, json).await,
            Tx::Count(args) => count(&args, json).await,
            Tx::Restore(args) => restore(&args).await,
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

async fn list(args: &List, json: bool) -> anyhow::Result<()> {
    let filter = Filter {
        service: args.service.clone(),
        states: args.state.iter().copied().map(view::state).collect(),
        saga: args.saga.clone(),
    };
    let after = Cursor(args.after.map(TransactionId));
    let (page, next) = operator(&args.store)?
        .list(&filter, after, args.limit)
        .await
        .map_err(told)?;
    let lines: Vec<Line> = page.iter().map(Line::new).collect();
    if json {
        return lines.iter().try_for_each(output::json);
    }
    output::line(&view::table(&lines))?;
    if let Some(Cursor(Some(last))) = next {
        output::chatter(&format!("more: --after {last}"));
    }
    Ok(())
}

async fn show(args: &Show, json: bool) -> anyhow::Result<()> {
    let id = TransactionId(args.id);
    let shown = operator(&args.store)?.show(id).await.map_err(told)?;
    let shown = shown.ok_or_else(|| missing(id, &args.store))?;
    let whole = Whole::new(&shown);
    if json {
        output::json(&whole)
    } else {
        whole.print()
    }
}

async fn count(args: &Count, json: bool) -> anyhow::Result<()> {
    let counts = operator(&args.store)?
        .counts(args.service.as_ref())
        .await
        .map_err(told)?;
    counted(&counts, json)
}

async fn restore(args: &Restore) -> anyhow::Result<()> {
    let id = TransactionId(args.id);
    if args.reason.trim().is_empty() {
        return Err(Exit::Usage.because("--reason is empty: say why, it is kept in the audit log"));
    }
    let operator = operator(&args.store)?;
    let shown = operator
        .show(id)
        .await
        .map_err(told)?
        .ok_or_else(|| missing(id, &args.store))?;
    let restored = operator
        .restore(id, shown.epoch, args.lifetime, &args.actor, &args.reason)
        .await
        .map_err(told)?;
    match restored {
        Restored::Done(epoch) => {
            output::line(&format!("{id} is due now (epoch {epoch})"))?;
            Ok(())
        }
        Restored::Changed => Err(Exit::Refused.because(format!(
            "{id} is {:?}: only disabled, terminated and quarantined ones are restored (or it changed just now: look again)",
            shown.summary.state
        ))),
    }
}

fn operator(store: &StoreOf) -> anyhow::Result<Operator> {
    let scope = Scope {
        region: store.region.clone(),
        cluster: store.cluster.clone(),
    };
    Operator::new(&Config::new(store.database.url.expose_secret()), scope).map_err(told)
}

fn missing(id: TransactionId, store: &StoreOf) -> anyhow::Error {
    let StoreOf {
        region, cluster, ..
    } = store;
    Exit::NotFound.because(format!("no transaction {id} in {region}.{cluster}"))
}

/// A store's error with its causes and the right exit code.
fn told(error: Error) -> anyhow::Error {
    let exit = if error.is_unreachable() {
        Exit::NotReachable
    } else {
        Exit::Failed
    };
    let text = format!("{:#}", anyhow::Error::new(error));
    if text.contains("relation \"ringsaga.") {
        return Exit::NotFound.because("the database has no store yet: run `ringsaga migrate`");
    }
    exit.because(text)
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    drop(rustls::crypto::ring::default_provider().install_default());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}
