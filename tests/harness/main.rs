//! `cargo sim --seed 7 | --seeds 0..1000000 | --trace FILE`: universes by hand; with
//! `--mutant NAME` those of a planted defect, to see how soon it is noticed.
//!
//! Exit codes: 0 all held, 1 a violation, 2 the arguments make no sense.

use std::{
    io::{Write, stdout},
    ops::Range,
    process::ExitCode,
};

use harness::{batch, mutants::Mutant, params::Params, world};

const USAGE: &str =
    "usage: cargo sim --seed N [--trace FILE] | --seeds FROM..TO [--keep-going] [--mutant NAME]";

#[derive(Clone, Default)]
struct Args {
    seeds: Option<Range<u64>>,
    trace: Option<String>,
    keep_going: bool,
    mutant: Option<Mutant>,
}

fn main() -> ExitCode {
    let args = parse(std::env::args().skip(1));
    let Some((args, seeds)) = args.and_then(|args| Some((args.clone(), args.seeds?))) else {
        say(USAGE);
        return ExitCode::from(2);
    };
    match &args.trace {
        Some(file) => show(seeds.start, args.mutant, file),
        None => many(seeds, &args),
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Args> {
    let mut parsed = Args::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--" => {}
            "--seed" => {
                let seed: u64 = args.next()?.parse().ok()?;
                parsed.seeds = Some(seed..seed + 1);
            }
            "--seeds" => {
                let text = args.next()?;
                let (from, to) = text.split_once("..")?;
                parsed.seeds = Some(from.parse().ok()?..to.parse().ok()?);
            }
            "--trace" => parsed.trace = Some(args.next()?),
            "--mutant" => {
                let name = args.next()?;
                let named = |mutant: &Mutant| format!("{mutant:?}") == name;
                parsed.mutant = Some(Mutant::ALL.into_iter().find(named)?);
            }
            "--keep-going" => parsed.keep_going = true,
            _ => return None,
        }
    }
    Some(parsed)
}

fn show(seed: u64, mutant: Option<Mutant>, file: &str) -> ExitCode {
    let report = world::run(Params::from_seed(seed), mutant, true);
    say(&format!(
        "{:#?}\ndigest {:016x}\n{}",
        report.params, report.digest, report.counters
    ));
    if let Err(error) = std::fs::write(file, report.lines.unwrap_or_default()) {
        say(&format!("{file}: {error}"));
        return ExitCode::from(2);
    }
    match report.violation {
        Some((violation, at)) => {
            say(&format!(
                "seed {seed} after {at:.3} s: {violation}\ntrace: {file}"
            ));
            ExitCode::from(1)
        }
        None => ExitCode::SUCCESS,
    }
}

fn many(seeds: Range<u64>, args: &Args) -> ExitCode {
    let enough = if args.keep_going { usize::MAX } else { 1 };
    let summary = batch::run(seeds, args.mutant, enough);
    for (seed, story) in &summary.failures {
        say(&format!(
            "seed {seed} {story}\n  replay: {}",
            batch::replay(*seed)
        ));
    }
    say(&format!(
        "{}\n{} universes, {} failed, {} facts, {:.1} hours simulated",
        summary.counters,
        summary.runs,
        summary.failures.len(),
        summary.facts,
        summary.hours
    ));
    if summary.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}

/// A closed pipe ends the talking, nothing else.
fn say(text: &str) {
    drop(writeln!(stdout().lock(), "{text}"));
}
