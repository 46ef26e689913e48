//! The commands about alerts, declared.

use clap::{Args as ClapArgs, Subcommand};

use super::{Sourced, StoreOf};

#[derive(Debug, Subcommand)]
pub(crate) enum Alerts {
    /// Alerts that are not delivered (to every hook), newest first, with the last error
    List(ListAlerts),
    /// Send a test to a hook of a notifier's configuration
    Test(TestHook),
    /// Try again what was given up for a hook
    Retry(RetryHook),
}

/// Which alerts.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListAlerts {
    #[command(flatten)]
    pub(crate) store: StoreOf,
    /// Delivered ones, too
    #[arg(long)]
    pub(crate) all: bool,
    /// At most so many lines
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
}

/// Which hook, and whose.
#[derive(Debug, ClapArgs)]
pub(crate) struct TestHook {
    /// The hook's name
    pub(crate) hook: String,
    #[command(flatten)]
    pub(crate) sourced: Sourced,
}

/// Which hook of which store.
#[derive(Debug, ClapArgs)]
pub(crate) struct RetryHook {
    /// The hook's name
    pub(crate) hook: String,
    #[command(flatten)]
    pub(crate) store: StoreOf,
}
