//! What every role's process does first: read its configuration whole, install logs, numbers and
//! signals, make a runtime.

use ring_core::{machine::End, wire::Role};
use ring_shell::{
    config::{Common, ConfigError, Effective, Log, Settings, Sources, environment},
    shutdown,
    telemetry::{Format, Numbers, install_log, install_recorder},
};
use tokio_util::sync::CancellationToken;

use crate::{args::Sourced, exit::Exit};

/// Where a role's configuration comes from.
pub(super) fn sources(sourced: &Sourced) -> Sources {
    Sources {
        file: sourced.config.clone(),
        environment: environment(),
        flags: sourced.set.clone(),
    }
}

/// Reads one configuration whole; every mistake at once, exit 64.
pub(super) fn read<T>(
    sources: Sources,
    ask: impl FnOnce(&mut Settings) -> Option<T>,
) -> anyhow::Result<(T, Vec<Effective>)> {
    let mut settings = Settings::read(sources);
    let asked = ask(&mut settings);
    let wrong = |error: ConfigError| Exit::Config.because(error.to_string());
    match settings.finish(asked).map_err(wrong)? {
        (Some(value), effective) => Ok((value, effective)),
        (None, _) => Err(Exit::Config.because("the configuration is incomplete")),
    }
}

/// Runs a role on a runtime of its own, with logs, numbers and signals in place.
pub(super) fn start(
    log: &Log,
    role: impl AsyncFnOnce(Numbers, CancellationToken) -> anyhow::Result<End>,
) -> anyhow::Result<()> {
    let format = if log.json {
        Format::Json
    } else {
        Format::Plain
    };
    install_log(format, &log.filter)
        .map_err(|e| Exit::Config.because(format!("log.filter: {e}")))?;
    // Ours is the binary: the libraries leave the choice of a TLS provider to it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let numbers = install_recorder()?;
        let shutdown = shutdown::on_signals()?;
        match role(numbers, shutdown).await? {
            End::Drained => Ok(()),
            End::Superseded => Err(Exit::Superseded
                .because("a newer process has this id: give each process an id of its own")),
        }
    })
}

/// How the process writes its log; whatever else is wrong is reported by the reading that follows.
pub(super) fn log(sources: &Sources, role: Role) -> Log {
    let common = Common::read(&mut Settings::read(sources.clone()), role);
    common.map_or_else(
        || Log {
            json: false,
            filter: "info".to_owned(),
        },
        |common| common.log,
    )
}
