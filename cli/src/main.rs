//! The one binary. It reads the command line, calls a role or a tool, and turns the end into an
//! exit code; nothing is decided here.

mod alerts;
mod args;
mod demo;
mod exit;
mod output;
mod ring;
mod run;
mod tx;

use std::process::ExitCode;

use clap::Parser;
use ring_shell::config::Sources;

use args::{Args, Command, ConfigCommand, Ring, Role};

fn main() -> ExitCode {
    let args = Args::parse();
    let end = match args.command {
        Command::Master(sourced) => run::run(Role::Master, &sourced),
        Command::Slave(sourced) => run::run(Role::Slave, &sourced),
        Command::Coordinator(sourced) => run::run(Role::Coordinator, &sourced),
        Command::Notify(sourced) => run::run(Role::Notifier, &sourced),
        Command::Dev(dev) => run::dev::run(&dev),
        Command::Demo(demo) => demo::run(&demo, args.output.json()),
        Command::Shop(service) => return shop::run(service, Sources::usual(None)),
        Command::Config(ConfigCommand::Check { role, sourced }) => run::check(role, &sourced),
        Command::Config(ConfigCommand::Print { role, sourced }) => {
            run::print(role, &sourced, args.output.json())
        }
        Command::Migrate(database) => tx::migrate_now(&database),
        Command::Tx(command) => tx::run(*command, args.output.format()),
        Command::Alerts(command) => alerts::run(command, args.output.json()),
        Command::Ring(command) => ring::run(command, args.output.json()),
        Command::Token(ids) => ring::token::run(&ids, args.output.json()),
        Command::Split(split) => ring::split::run(&split, args.output.json()),
        Command::Owner(owner) => ring::run(Ring::Owner(owner), args.output.json()),
    };
    exit::code(end)
}
