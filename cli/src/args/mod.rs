//! The command line, declared.

mod alerts;
mod deed;
mod demo;
mod ring;
mod role;
mod tx;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use self::{
    alerts::{Alerts, ListAlerts, RetryHook, TestHook},
    deed::{Closing, Many, One, PurgeArgs, Which},
    demo::{Blow, Demo, KillAt},
    ring::{Audit, Bus, Ids, Owner, Ring, Seen, Split, Watch, transaction},
    role::{ConfigCommand, Dev, Role, Sourced},
    tx::{
        Count, Database, DirectionArg, FilterArgs, List, OrderArg, RegionOf, Show, StateArg,
        StoreOf, Tx,
    },
};

/// Sagas on NATS, Redis and Postgres, retried by whoever is alive.
#[derive(Debug, Parser)]
#[command(name = "ringsaga", version, about, propagate_version = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct Output {
    /// Print JSON, one object a line, instead of tables: short for -o jsonl
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How results are printed
    #[arg(short = 'o', long = "output", global = true, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
}

/// A form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// One JSON document
    Json,
    /// JSON, one object a line
    Jsonl,
}

impl Output {
    /// The form that is meant.
    pub(crate) fn format(self) -> Format {
        match self.format {
            Some(format) => format,
            None if self.json => Format::Jsonl,
            None => Format::Table,
        }
    }

    /// Whether JSON is meant.
    pub(crate) fn json(self) -> bool {
        self.format() != Format::Table
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a master: it cuts the ring among slaves (NATS, Redis)
    Master(Sourced),
    /// Run a slave: it cuts its slice among its orchestrators (NATS)
    Slave(Sourced),
    /// Run master, slave or both, by index: one manifest for a StatefulSet
    Coordinator(Sourced),
    /// Run a notifier: it brings a store's alerts to webhooks (Postgres)
    Notify(Sourced),
    /// Start servers, masters and slaves on this machine, around a command or until Ctrl-C
    Dev(Dev),
    /// Watch an order saga survive outages and kills on real servers, with a verdict
    Demo(Demo),
    /// One service of the example shop
    #[command(subcommand, hide = true)]
    Shop(shop::Service),
    /// Bring the schema of a store up to date
    Migrate(Database),
    /// The ring, seen from outside
    #[command(subcommand)]
    Ring(Ring),
    /// Transactions, seen by people
    #[command(subcommand)]
    Tx(Box<Tx>),
    /// Alerts on their way to webhooks
    #[command(subcommand)]
    Alerts(Alerts),
    /// Check or print a role's configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The token and slot of transaction ids
    #[command(hide = true)]
    Token(Ids),
    /// How a range is cut
    #[command(hide = true)]
    Split(Split),
    /// Who looks after a transaction now
    #[command(hide = true)]
    Owner(Owner),
}
