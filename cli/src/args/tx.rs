//! The commands about transactions and their store, declared.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use ring_core::{
    id::{Cluster, Region, SagaName, Service},
    region::RegionCodes,
};
use secrecy::SecretString;
use uuid::Uuid;

use super::{
    deed::{Close, Many, Policy, PurgeArgs, Rehome, Restore, RetryCompensation, Signal, Skip},
    ring::transaction,
};

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
    /// Transactions, a page at a time
    List(List),
    /// One transaction with its input, its steps, what came to it and what was said last
    Show(Show),
    /// Why a transaction is not being continued right now, and what to do
    Why(Show),
    /// How many there are in each state
    Count(Count),
    /// Try paused ones now, whatever they wait for
    Retry(Many),
    /// Put disabled, terminated or quarantined ones back where they stood, due at once
    Restore(Restore),
    /// The same for those whose compensation failed for good
    RetryCompensation(RetryCompensation),
    /// Take the open step for done by hand, with evidence
    Skip(Skip),
    /// Give transactions a retry policy of their own
    Policy(Policy),
    /// Send a signal to a step that waits for one
    Signal(Signal),
    /// Undo transactions from the next step's boundary on
    Cancel(Many),
    /// End one by hand, with evidence: nothing more is run
    Close(Close),
    /// Remove what ended well and is old
    Purge(PurgeArgs),
    /// Move transactions out of a dead region or cluster
    Rehome(Rehome),
    /// In which region transactions were started, by the code in their ids
    Region(RegionOf),
}

/// The registry of regions' codes.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Regions {
    /// The codes of all regions, the same as the services are told
    #[arg(
        long,
        env = "RINGSAGA__REGIONS",
        value_name = "REGION=CODE,…",
        default_value = ""
    )]
    pub(crate) regions: RegionCodes,
}

/// Whose region.
#[derive(Debug, ClapArgs)]
pub(crate) struct RegionOf {
    #[command(flatten)]
    pub(crate) registry: Regions,
    /// Ids of transactions
    #[arg(value_name = "ID", required = true, value_parser = transaction)]
    pub(crate) ids: Vec<Uuid>,
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

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionArg {
    Forward,
    Compensating,
}

/// Which end of a list comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    Newest,
    Oldest,
}

/// What must hold of the transactions that are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct FilterArgs {
    /// Only this service's
    #[arg(long)]
    pub(crate) service: Option<Service>,
    /// Only these states, e.g. paused,terminated
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<StateArg>,
    /// Only this saga's
    #[arg(long)]
    pub(crate) saga: Option<SagaName>,
    /// Only this version of the saga
    #[arg(long, value_name = "N")]
    pub(crate) saga_version: Option<u32>,
    /// Only on this way
    #[arg(long)]
    pub(crate) direction: Option<DirectionArg>,
    /// Started at this time or later, e.g. 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_rfc3339_weak)]
    pub(crate) created_from: Option<std::time::SystemTime>,
    /// Started before this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_rfc3339_weak)]
    pub(crate) created_before: Option<std::time::SystemTime>,
    /// Parked and due before this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_rfc3339_weak)]
    pub(crate) due_before: Option<std::time::SystemTime>,
    /// Waiting for this target
    #[arg(long, value_name = "TARGET")]
    pub(crate) waiting_on: Option<String>,
    /// What was said last contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// The open step failed so often or more
    #[arg(long, value_name = "N")]
    pub(crate) attempts: Option<u32>,
    /// Started with this idempotency key
    #[arg(long)]
    pub(crate) key: Option<String>,
}

/// Which transactions.
#[derive(Debug, ClapArgs)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Which end comes first
    #[arg(long, value_enum, default_value = "newest")]
    pub(crate) order: OrderArg,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Behind this one: the last id of the page before
    #[arg(long, value_name = "ID", value_parser = transaction)]
    pub(crate) after: Option<Uuid>,
}

/// Which transaction.
#[derive(Debug, ClapArgs)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// The transaction's id
    #[arg(value_name = "ID", value_parser = transaction, required_unless_present = "key")]
    pub(crate) id: Option<Uuid>,
    /// Its idempotency key instead
    #[arg(long, conflicts_with = "id")]
    pub(crate) key: Option<String>,
    /// The service of the key, when several have it
    #[arg(long, requires = "key")]
    pub(crate) service: Option<Service>,
    /// The saga of the key, when several have it
    #[arg(long, requires = "key")]
    pub(crate) saga: Option<SagaName>,
    #[command(flatten)]
    pub(crate) registry: Regions,
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
