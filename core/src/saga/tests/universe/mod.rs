//! Generated universes: groups, decisions, waits, sub-sagas, probes and cancels under deaths,
//! drains, and a network that loses, doubles and delays. After every accepted write the history
//! must replay; at the end, when everything late has arrived, the effects must be what the end
//! says, and the end one that the reference model allows.

mod generate;
mod model;
mod mutants;
mod network;
mod participants;
mod row;
mod seen;
mod world;

extern crate std;

use alloc::{collections::BTreeSet, vec::Vec};
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::{
    generate::Setting,
    model::expect,
    mutants::Mutant,
    seen::{Seen, Sight},
    world::World,
};
use crate::saga::{
    State,
    log::{Log, Status},
};

const UNIVERSES: u64 = 50_000;

fn universe(seed: u64, mutant: Option<Mutant>) -> (World, State) {
    let mut world = World::new(seed, Setting::new(seed), mutant);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let state = world.run();
        checked(&mut world, state);
        state
    }));
    match ran {
        Ok(state) => (world, state),
        Err(panic) => {
            if mutant.is_none() {
                std::eprintln!("seed {seed}\n{}", world.story());
            }
            std::panic::resume_unwind(panic);
        }
    }
}

fn checked(world: &mut World, state: State) {
    let expected = expect(&world.setting);
    // A person's word is in no model: what is told must be true all the same.
    assert!(
        world.restored || expected.ends.contains(&state),
        "{state:?}, allowed are {:?}",
        expected.ends
    );
    let called = &world.participants.called;
    let passed = called.intersection(&expected.passed).count();
    assert_eq!(passed, 0, "a step was called that its decision passes");
    let left = world.participants.left();
    let setting = &world.setting;
    match state {
        // G5.
        State::Completed => {
            assert_eq!(left, expected.applied, "applied");
            assert!(world.participants.undone.is_empty(), "undone");
        }
        // G6.
        State::Compensated => {
            let undoable = |k: &&u32| setting.step(**k).compensate.is_some();
            let rest: Vec<&u32> = left.iter().filter(undoable).collect();
            assert!(rest.is_empty(), "{rest:?} is left");
        }
        // G7.
        State::Terminated => honest(world, &left),
        State::Running | State::Paused | State::Disabled | State::Quarantined => {
            panic!("{state:?}")
        }
    }
    let counts = (world.participants.blocked, world.participants.empty);
    world.count(Sight::Blocked, counts.0);
    world.count(Sight::Empty, counts.1);
    let passed = u32::try_from(expected.passed.len()).unwrap();
    world.count(Sight::Passed, passed);
}

/// What is applied is told as applied or in doubt.
fn honest(world: &World, left: &BTreeSet<u32>) {
    let log = Log::history(&world.row.log).unwrap();
    let everybody = world.row.is_in_doubt();
    for k in left {
        let entry = world
            .row
            .log
            .iter()
            .rfind(|e| e.position.seq == *k)
            .map(|e| &e.attempt);
        let noted = matches!(
            entry,
            Some(crate::saga::Attempt::Paused { doubt: true, .. })
        );
        let told = match log.status(*k) {
            Status::Completed(_) | Status::Compensating { .. } => true,
            Status::Failed { doubt } => *doubt,
            Status::Running => noted || (everybody && world.open().contains(k)),
            Status::Skipped => world.setting.step(*k).compensate.is_none(),
            Status::Pending => everybody && world.open().contains(k),
            Status::Compensated => false,
        };
        assert!(told, "{k} is applied and told as {:?}", log.status(*k));
    }
}

#[test]
fn every_universe_ends_as_the_model_allows() {
    let mut seen = Seen::default();
    let mut ends = [0_u32; 3];
    let mut sure = 0;
    for seed in 0..UNIVERSES {
        let (world, state) = universe(seed, None);
        seen.merge(world.seen);
        sure += u32::from(expect(&world.setting).ends.len() == 1);
        match state {
            State::Completed => ends[0] += 1,
            State::Compensated => ends[1] += 1,
            State::Terminated => ends[2] += 1,
            State::Running | State::Paused | State::Disabled | State::Quarantined => {}
        }
    }
    assert!(ends.iter().all(|n| *n > 500), "{ends:?}");
    assert!(seen.0.iter().all(|n| *n > 200), "{seen:?}");
    assert!(sure > 8_000, "{sure} ends are told exactly");
}

#[test]
fn the_same_seed_is_the_same_universe() {
    for seed in 0..50 {
        let (one, other) = (universe(seed, None).0, universe(seed, None).0);
        assert_eq!(one.story(), other.story());
    }
}

#[test]
fn every_planted_defect_is_noticed() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(std::boxed::Box::new(|_| {}));
    let unnoticed: Vec<Mutant> = Mutant::ALL
        .into_iter()
        .filter(|mutant| {
            let noticed = |seed| catch_unwind(|| universe(seed, Some(*mutant))).is_err();
            !(0..3_000).any(noticed)
        })
        .collect();
    std::panic::set_hook(quiet);
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}
