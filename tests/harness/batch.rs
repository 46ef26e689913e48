//! Many universes, one summary; and how to see one of them again.

use std::ops::Range;

use crate::{counters::Counters, mutants::Mutant, params::Params, world};

/// What a batch came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Universes run.
    pub runs: u64,
    /// The seeds that failed, with what happened.
    pub failures: Vec<(u64, String)>,
    /// What happened at least once.
    pub counters: Counters,
    /// Facts handed to machines.
    pub facts: u64,
    /// Hours of true time that passed.
    pub hours: f64,
}

/// Runs the seeds; ends early after `enough` failures.
#[must_use]
pub fn run(seeds: Range<u64>, mutant: Option<Mutant>, enough: usize) -> Summary {
    let mut summary = Summary::default();
    for seed in seeds {
        let report = world::run(Params::from_seed(seed), mutant, false);
        summary.runs += 1;
        summary.facts += report.facts;
        summary.hours += report.simulated.as_secs_f64() / 3_600.0;
        summary.counters.add(&report.counters);
        if let Some((violation, at)) = report.violation {
            summary
                .failures
                .push((seed, format!("after {at:.3} s: {violation}")));
            if summary.failures.len() >= enough {
                break;
            }
        }
    }
    summary
}

/// The one command that shows a universe again, with its trace.
#[must_use]
pub fn replay(seed: u64) -> String {
    format!("cargo sim --seed {seed} --trace seed-{seed}.trace")
}
