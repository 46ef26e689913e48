//! `ring-local [COMMAND [ARGS…]]`: the three servers alone, around a command or until Ctrl-C.
//!
//! The first line on stdout is `dev.json`. It is for developing and testing the other crates;
//! `ringsaga dev` adds masters and slaves.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use ring_local::{Companions, Error, Outcome, SetOptions, Settings, dev};

fn main() -> ExitCode {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&command) {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(error) => {
            let causes = std::iter::successors(error.source(), |cause| (*cause).source());
            let causes: String = causes.map(|cause| format!(": {cause}")).collect();
            // Nobody is left to tell when stderr is closed.
            writeln!(std::io::stderr(), "ring-local: {error}{causes}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

fn run(command: &[OsString]) -> Result<Outcome, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| Error::Process {
        operation: "start",
        name: "the runtime".to_owned(),
        source,
    })?;
    let command = (!command.is_empty()).then_some(command);
    let started = async |set: &ring_local::Set| {
        if command.is_none() {
            writeln!(
                std::io::stdout(),
                "{}",
                serde_json::to_string(set.addresses())?
            )?;
        }
        Ok(Companions::default())
    };
    runtime.block_on(dev(
        &Settings::from_env(),
        &SetOptions::default(),
        command,
        started,
    ))
}
