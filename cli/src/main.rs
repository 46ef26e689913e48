//! The one binary. It reads the command line, calls a role or a tool, and turns the end into an
//! exit code; nothing is decided here.

mod args;
mod exit;
mod output;
mod ring;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let end = match args.command {
        args::Command::Ring(command) => ring::run(command, args.output.json),
        args::Command::Token(ids) => ring::token::run(&ids, args.output.json),
        args::Command::Split(split) => ring::split::run(&split, args.output.json),
        args::Command::Owner(owner) => ring::run(args::Ring::Owner(owner), args.output.json),
    };
    exit::code(end)
}
