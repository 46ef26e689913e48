//! Orders about transactions, declared.

use std::{num::NonZeroU32, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};
use ring_core::id::{Cluster, Region, Service, StepName};
use uuid::Uuid;

use super::{
    ring::transaction,
    tx::{FilterArgs, StoreOf},
};

/// Who, and why.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Actor {
    /// Why; kept in the audit log
    #[arg(long)]
    pub(crate) reason: String,
    /// Who; kept in the audit log
    #[arg(long, env = "USER")]
    pub(crate) actor: String,
}

/// One transaction, several, or all that a filter finds.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Which {
    /// Their ids; none: all that the filter finds
    #[arg(value_name = "ID", value_parser = transaction)]
    pub(crate) ids: Vec<Uuid>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// All of the region and cluster that the order fits
    #[arg(long)]
    pub(crate) all: bool,
    /// Only show what would be touched
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Don't ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// So many a second
    #[arg(long, default_value = "50")]
    pub(crate) rate: NonZeroU32,
    /// At most so many
    #[arg(long, default_value_t = 10_000)]
    pub(crate) most: u32,
}

/// What every order about transactions has.
#[derive(Debug, ClapArgs)]
pub(crate) struct Many {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) by: Actor,
}

/// What an order about one transaction has.
#[derive(Debug, ClapArgs)]
pub(crate) struct One {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// The transaction's id
    #[arg(value_name = "ID", value_parser = transaction)]
    pub(crate) id: Uuid,
    #[command(flatten)]
    pub(crate) by: Actor,
}

/// What to restore.
#[derive(Debug, ClapArgs)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) many: Many,
    /// How long they may live from now
    #[arg(long, default_value = "24h", value_parser = humantime::parse_duration)]
    pub(crate) lifetime: Duration,
    /// You looked: the open step was not applied, take its doubt away
    #[arg(long)]
    pub(crate) not_applied: bool,
}

/// What to try to undo again.
#[derive(Debug, ClapArgs)]
pub(crate) struct RetryCompensation {
    #[command(flatten)]
    pub(crate) many: Many,
    /// How long they may live from now
    #[arg(long, default_value = "24h", value_parser = humantime::parse_duration)]
    pub(crate) lifetime: Duration,
}

/// Which step was done by hand.
#[derive(Debug, ClapArgs)]
pub(crate) struct Skip {
    #[command(flatten)]
    pub(crate) one: One,
    /// The step's name
    #[arg(long)]
    pub(crate) step: StepName,
    /// Its result as JSON, for later steps and its compensation
    #[arg(long, default_value = "null")]
    pub(crate) result: String,
    /// Where the evidence is: a ticket, a booking
    #[arg(long)]
    pub(crate) reference: String,
    /// How long it may live from now, when it was not paused
    #[arg(long, default_value = "24h", value_parser = humantime::parse_duration)]
    pub(crate) lifetime: Duration,
}

/// Which policy.
#[derive(Debug, ClapArgs)]
pub(crate) struct Policy {
    #[command(flatten)]
    pub(crate) many: Many,
    /// Most attempts; left out: until the lifetime ends
    #[arg(long)]
    pub(crate) tries: Option<u32>,
    /// First pause
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    pub(crate) base: Duration,
    /// Longest pause
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration)]
    pub(crate) cap: Duration,
    /// Back to the definition's
    #[arg(long, conflicts_with_all = ["tries", "base", "cap"])]
    pub(crate) reset: bool,
}

/// Which signal.
#[derive(Debug, ClapArgs)]
pub(crate) struct Signal {
    #[command(flatten)]
    pub(crate) one: One,
    /// The step that waits for it
    #[arg(long)]
    pub(crate) name: StepName,
    /// What it gets, JSON
    #[arg(long, default_value = "null")]
    pub(crate) value: String,
    /// The signal's own id: repeat it and the signal counts once
    #[arg(long)]
    pub(crate) signal_id: Option<Uuid>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Closing {
    /// Everything that was wanted is done
    Completed,
    /// Everything that was done is undone
    Compensated,
}

/// What was settled by hand.
#[derive(Debug, ClapArgs)]
pub(crate) struct Close {
    #[command(flatten)]
    pub(crate) one: One,
    /// How it ended
    #[arg(long = "as", value_name = "END")]
    pub(crate) end: Closing,
    /// Its result as JSON, when completed
    #[arg(long, default_value = "null")]
    pub(crate) result: String,
    /// Where the evidence is
    #[arg(long)]
    pub(crate) reference: String,
}

/// What to remove.
#[derive(Debug, ClapArgs)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// Only this service's
    #[arg(long)]
    pub(crate) service: Option<Service>,
    /// Ended longer ago than this (and longer ago than its own whole lifetime)
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(crate) older_than: Duration,
    /// Don't ask
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) by: Actor,
}

/// What goes where.
#[derive(Debug, ClapArgs)]
pub(crate) struct Rehome {
    #[command(flatten)]
    pub(crate) many: Many,
    /// The region where they go on
    #[arg(long)]
    pub(crate) to_region: Region,
    /// The cluster where they go on
    #[arg(long)]
    pub(crate) to_cluster: Cluster,
}
