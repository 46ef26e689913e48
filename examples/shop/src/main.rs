//! `shop order | inventory | payment`: one service a process, configured by `RINGSAGA__…`.

use std::process::ExitCode;

use clap::Parser;
use ring_shell::config::Sources;

/// The example shop: one service a process, configured by RINGSAGA__… variables.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    #[command(subcommand)]
    service: shop::Service,
}

fn main() -> ExitCode {
    shop::run(Args::parse().service, Sources::usual(None))
}
