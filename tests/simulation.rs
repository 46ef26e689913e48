//! The ring in simulated universes: those that once failed, then fresh ones; and that a seed is
//! one universe.
//!
//! `RING_SIM_SEEDS` raises the number of fresh seeds, `RING_SIM_BASE` moves their beginning.

use harness::{batch, params::Params, world};

/// Fresh seeds by default: as many as an unoptimised test may take a minute for on one core.
const SEEDS: u64 = 1_500;

#[expect(
    clippy::disallowed_methods,
    reason = "a test's size is no configuration of the system"
)]
fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().expect("a number"))
}

fn stories(failures: &[(u64, String)]) -> String {
    let story = |(seed, story): &(u64, String)| {
        format!("seed {seed} {story}\n  replay: {}\n", batch::replay(*seed))
    };
    failures.iter().map(story).collect()
}

#[test]
fn universes_that_once_failed_hold() {
    let list = include_str!("seeds.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    for line in list {
        let (seed, story) = line.split_once(' ').expect("a seed and its story");
        let seed: u64 = seed.parse().expect("a seed");
        let summary = batch::run(seed..seed + 1, None, 1);
        assert!(
            summary.failures.is_empty(),
            "{}once: {story}",
            stories(&summary.failures)
        );
    }
}

#[test]
fn fresh_universes_hold_and_reach_what_they_are_for() {
    let base = number("RING_SIM_BASE", 1_000_000);
    let count = number("RING_SIM_SEEDS", SEEDS);
    println!("seeds {base}..{}", base + count);
    let summary = batch::run(base..base + count, None, 5);
    println!(
        "{}{} universes, {} facts, {:.1} hours",
        summary.counters, summary.runs, summary.facts, summary.hours
    );
    if let Some(file) = keep_trace(&summary.failures) {
        println!("trace: {file}");
    }
    assert!(
        summary.failures.is_empty(),
        "{}",
        stories(&summary.failures)
    );
    assert_eq!(
        summary.counters.missing(),
        [],
        "never reached in {} universes",
        summary.runs
    );
}

#[test]
fn one_seed_is_one_universe() {
    for seed in 0..40 {
        let run = |lines| world::run(Params::from_seed(seed), None, lines);
        let (first, second, bare) = (run(true), run(true), run(false));
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert_eq!(first.lines, second.lines, "seed {seed}");
        assert_eq!(
            first.digest, bare.digest,
            "seed {seed}: writing lines changes the run"
        );
    }
}

/// Leaves the first failure's trace where the test's files belong.
fn keep_trace(failures: &[(u64, String)]) -> Option<String> {
    let (seed, _) = failures.first()?;
    let report = world::run(Params::from_seed(*seed), None, true);
    let file = format!("{}/seed-{seed}.trace", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, report.lines?).expect("a file for the trace");
    Some(file)
}
