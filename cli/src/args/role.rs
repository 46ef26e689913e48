//! The commands that run something, declared.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// Where a role's configuration comes from: defaults, then the file, then `RINGSAGA__…` variables,
/// then `--set`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Sourced {
    /// A TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// One setting, e.g. --set nats.url=nats://127.0.0.1:4222; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
}

/// A role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Cuts the ring among slaves
    Master,
    /// Cuts its slice among its orchestrators
    Slave,
    /// Either or both
    Coordinator,
    /// Brings alerts to webhooks
    Notifier,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report every mistake (exit 64), or say that there is none
    Check {
        /// Whose configuration
        role: Role,
        #[command(flatten)]
        sourced: Sourced,
    },
    /// Print every setting with its source; secrets stay hidden
    Print {
        /// Whose configuration
        role: Role,
        #[command(flatten)]
        sourced: Sourced,
    },
}

/// What to start.
#[derive(Debug, ClapArgs)]
pub(crate) struct Dev {
    /// Keep data and logs in this folder; a temporary one by default
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Length of the ring's windows
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) window: Duration,
    /// Only the servers, no master and no slave
    #[arg(long)]
    pub(crate) servers_only: bool,
    /// Run this with NATS_URL, REDIS_URL and DATABASE_URL set, and exit with its code
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE, e.g. region=eu-1")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}
