//! What a user writes: an order service that runs a saga over an inventory and a payment service.
//!
//! Read [`order::saga`] first: the saga is all there is to it. Then [`participant::payment`]: what a
//! service does for a step. How an answer is read, and what makes a call that comes twice, late or
//! in the wrong order harmless, is `ring-participant`'s. The rest is an ordinary HTTP service.
//!
//! Each service has its own database and its own process; they meet in [`wire`] alone.

pub mod csv;
pub mod order;
pub mod participant;
mod serve;
pub mod wire;

use std::process::ExitCode;

use clap::Subcommand;
use ring_shell::{
    config::{EXIT_CONFIG, Settings, Sources},
    shutdown,
    telemetry::{Format, Numbers, install_log, install_recorder},
};
use tokio_util::sync::CancellationToken;

/// Exit value when a newer process has this one's id.
const EXIT_SUPERSEDED: u8 = 78;

/// One of the three services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum Service {
    /// Takes orders and runs their sagas
    Order,
    /// Reserves goods
    Inventory,
    /// Charges customers
    Payment,
}

/// What every service is given beside its own configuration.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// For `/metrics`.
    pub(crate) numbers: Numbers,
    /// Cancelled by the first SIGTERM or SIGINT.
    pub(crate) shutdown: CancellationToken,
}

/// How log lines look and which there are.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    format: Format,
    filter: String,
}

/// Runs a service until SIGTERM or SIGINT (a second one ends it at once).
///
/// Exit code 0 after an orderly end, 1 after a failure, 64 for a configuration with mistakes (all
/// of them are printed), 78 when a newer process has its id.
#[must_use]
pub fn run(service: Service, sources: Sources) -> ExitCode {
    let settings = Settings::read(sources);
    match service {
        Service::Order => started(order::Config::read(settings), order::run),
        Service::Inventory | Service::Payment => {
            let config = participant::Config::read(settings, service);
            started(config, participant::run)
        }
    }
}

/// Reads `log.format` and `log.filter`.
pub(crate) fn log_settings(settings: &mut Settings) -> Log {
    let format = match settings.or("log.format", "plain".to_owned()).as_str() {
        "json" => Format::Json,
        "plain" => Format::Plain,
        other => {
            settings.mistake("log.format", &format!("is {other:?}: write plain or json"));
            Format::Plain
        }
    };
    let filter = settings.or("log.filter", "info".to_owned());
    Log { format, filter }
}

impl Log {
    pub(crate) fn of(log: &ring_shell::config::Log) -> Self {
        Self {
            format: if log.json {
                Format::Json
            } else {
                Format::Plain
            },
            filter: log.filter.clone(),
        }
    }
}

/// A configuration that says how to log.
pub(crate) trait Logged {
    fn log(&self) -> Log;
}

fn started<C: Logged, F>(
    config: Result<C, ring_shell::config::ConfigError>,
    service: impl FnOnce(C, Process) -> F,
) -> ExitCode
where
    F: Future<Output = anyhow::Result<()>>,
{
    let config = match config {
        Ok(config) => config,
        Err(error) => return failed(EXIT_CONFIG, &error),
    };
    let Log { format, filter } = config.log();
    if let Err(error) = install_log(format, &filter) {
        return failed(EXIT_CONFIG, &error);
    }
    // A library must not choose the process' TLS provider; a binary does. One that is installed
    // already is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    match serve(config, service) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(if is_superseded(&error) {
                EXIT_SUPERSEDED
            } else {
                1
            })
        }
    }
}

fn serve<C, F>(config: C, service: impl FnOnce(C, Process) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let numbers = install_recorder()?;
        let shutdown = shutdown::on_signals()?;
        service(config, Process { numbers, shutdown }).await
    })
}

fn is_superseded(error: &anyhow::Error) -> bool {
    let node = error.downcast_ref::<orchestrator_lib::Error>();
    matches!(node, Some(orchestrator_lib::Error::Superseded(_)))
}

/// Before there is a log: to standard error.
fn failed(code: u8, error: &dyn std::error::Error) -> ExitCode {
    use std::io::Write as _;
    // Nobody is left to tell when standard error is closed.
    writeln!(std::io::stderr(), "shop: {error}").unwrap_or_default();
    ExitCode::from(code)
}
