//! The commands about transactions and their store, declared.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use ring_core::id::{Cluster, Region, SagaName, Service};
use secrecy::SecretString;
use uuid::Uuid;

use super::ring::transaction;

/// Which database.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Database {
    /// postgres://user:password@host:port/database
    #[arg(
        long = "database",
        env = "DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) url: SecretString,
}

/// Which store: a database, a region and a cluster.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct StoreOf {
    #[command(flatten)]
    pub(crate) database: Database,
    /// Region of the transactions
    #[arg(long, env = "RINGSAGA__REGION")]
    pub(crate) region: Region,
    /// Cluster of the transactions
    #[arg(long, env = "RINGSAGA__CLUSTER")]
    pub(crate) cluster: Cluster,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tx {
    /// Transactions, newest first
    List(List),
    /// One transaction with its input, its steps and what was said last
    Show(Show),
    /// How many there are in each state
    Count(Count),
    /// Put a disabled, terminated or quarantined transaction back where it stood, due at once
    Restore(Restore),
}

/// A transaction's state, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    Running,
    Paused,
    Completed,
    Compensated,
    Terminated,
    Disabled,
    Quarantined,
}

/// Which transactions.
#[derive(Debug, ClapArgs)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// Only this service's
    #[arg(long)]
    pub(crate) service: Option<Service>,
    /// Only these states, e.g. paused,terminated
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<StateArg>,
    /// Only this saga's
    #[arg(long)]
    pub(crate) saga: Option<SagaName>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Only older ones than this: the last id of the page before
    #[arg(long, value_name = "ID", value_parser = transaction)]
    pub(crate) after: Option<Uuid>,
}

/// Which transaction.
#[derive(Debug, ClapArgs)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// The transaction's id
    #[arg(value_name = "ID", value_parser = transaction)]
    pub(crate) id: Uuid,
}

/// Of which service.
#[derive(Debug, ClapArgs)]
pub(crate) struct Count {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// Only this service's
    #[arg(long)]
    pub(crate) service: Option<Service>,
}

/// What to restore, and who says so.
#[derive(Debug, ClapArgs)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// The transaction's id
    #[arg(value_name = "ID", value_parser = transaction)]
    pub(crate) id: Uuid,
    /// Why; kept in the audit log
    #[arg(long)]
    pub(crate) reason: String,
    /// Who; kept in the audit log
    #[arg(long, env = "USER")]
    pub(crate) actor: String,
    /// How long it may live from now
    #[arg(long, default_value = "24h", value_parser = humantime::parse_duration)]
    pub(crate) lifetime: Duration,
}
