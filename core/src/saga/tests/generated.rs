//! Generated sagas: the machine under claims, deaths, drains and a lossy store ends where the
//! reference model ends, with the same effects; and the invariants G1–G7 and FI3 hold.

use alloc::{collections::BTreeSet, vec::Vec};
use core::time::Duration;

use proptest::prelude::*;

use super::{
    bench::{name, plan, step},
    model::expect,
    script::{Answer, Fate, Script, Turn},
    world::{Seen, World},
};
use crate::saga::{Attempt, Class, Direction, Entry, PlannedStep, Recovery, State, log::Status};

fn any_step() -> impl Strategy<Value = PlannedStep> {
    let recovery = prop_oneof![
        6 => Just(Recovery::Hybrid),
        1 => Just(Recovery::ForwardOnly),
        1 => Just(Recovery::BackwardFirst),
        1 => Just(Recovery::Irreversible),
    ];
    let limits = (0..3_u32, 1..4_u32, prop::option::weighted(0.3, 1..4_u32));
    (recovery, prop::bool::weighted(0.8), limits).prop_map(|(recovery, undo, limits)| {
        let mut planned = step(0);
        planned.recovery = recovery;
        planned.retry.inline = limits.0;
        planned.retry.attempts = Some(limits.1);
        let mut back = planned.compensate.unwrap();
        back.inline = limits.0;
        back.attempts = limits.2;
        planned.compensate = undo.then_some(back);
        planned.time_limit = Duration::from_secs(1);
        planned
    })
}

fn any_saga() -> impl Strategy<Value = Vec<PlannedStep>> {
    prop::collection::vec(any_step(), 0..6).prop_map(|mut steps| {
        for (planned, seq) in steps.iter_mut().zip(0..) {
            planned.name = name(seq);
        }
        steps
    })
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let answer = prop_oneof![
        3 => Just(Answer::Ok),
        3 => Just(Answer::Refused(Class::Transient)),
        2 => Just(Answer::Refused(Class::Business)),
        1 => Just(Answer::Refused(Class::Persistent)),
        2 => any::<bool>().prop_map(|applied| Answer::Unknown { applied }),
    ];
    let fate = prop_oneof![
        5 => Just(Fate::Lives),
        1 => Just(Fate::DiesBeforeTheRecord),
        1 => Just(Fate::DiesAfterTheRecord),
        1 => Just(Fate::Drains),
    ];
    (answer, fate).prop_map(|(answer, fate)| Turn { answer, fate })
}

fn any_script() -> impl Strategy<Value = Script> {
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Compensating)];
    prop::collection::vec((direction, 0..6_u32, any_turn()), 0..14).prop_map(Script::new)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_ends_where_the_model_ends(
        steps in any_saga(), script in any_script(), seed: u64,
    ) {
        let expected = expect(&steps, script.clone());
        let mut world = World::new(plan(steps.clone()), script, seed);
        let state = world.run();
        prop_assert_eq!(state, expected.state);
        prop_assert_eq!(&world.participants.acted, &expected.acted);
        prop_assert_eq!(&world.participants.undone, &expected.undone);
        prop_assert_eq!(world.calls, expected.calls);
        world.participants.late_calls_arrive();
        ordered(&world.accepted);
        honest(&world, &steps, state);
    }
}

/// G1, G2, G3, FI3: successes upwards by one, then ends of compensations downwards by one.
fn ordered(accepted: &[Entry]) {
    let ends = |direction| {
        let closed = move |e: &&Entry| {
            let ended = matches!(e.attempt, Attempt::Done(_) | Attempt::Skipped);
            ended && e.position.direction == direction
        };
        accepted
            .iter()
            .filter(closed)
            .map(|e| e.position.seq)
            .collect::<Vec<_>>()
    };
    let up = ends(Direction::Forward);
    assert!(
        up.iter().copied().eq(0..u32::try_from(up.len()).unwrap()),
        "{up:?}"
    );
    let down = ends(Direction::Compensating);
    assert!(down.windows(2).all(|w| w[0] == w[1] + 1), "{down:?}");
    let first_back = accepted
        .iter()
        .position(|e| e.position.direction == Direction::Compensating);
    if let Some(i) = first_back {
        assert!(
            accepted[i..]
                .iter()
                .all(|e| e.position.direction == Direction::Compensating)
        );
    }
    if let (Some(highest), Some(start)) = (up.last(), down.first()) {
        assert!(
            start >= highest,
            "compensation begins at the last step done or above it"
        );
    }
}

/// G5, G6, G7, after all delayed calls have arrived.
fn honest(world: &World, steps: &[PlannedStep], state: State) {
    let effects = &world.participants;
    let left: BTreeSet<u32> = effects
        .acted
        .difference(&effects.reverted)
        .copied()
        .collect();
    let log = world.history();
    match state {
        State::Completed => {
            let all = u32::try_from(steps.len()).unwrap();
            assert!(left.iter().copied().eq(0..all) && effects.undone.is_empty());
        }
        State::Compensated => {
            let undoable = |k: &u32| steps[usize::try_from(*k).unwrap()].compensate.is_some();
            assert!(!left.iter().any(undoable), "{left:?}");
        }
        State::Terminated => {
            for k in left {
                let told = match log.status(k) {
                    Status::Completed(_) | Status::Compensating { .. } => true,
                    Status::Failed { doubt } => *doubt,
                    Status::Skipped => steps[usize::try_from(k).unwrap()].compensate.is_none(),
                    Status::Pending | Status::Running | Status::Compensated => false,
                };
                assert!(told, "step {k} happened and is told as {:?}", log.status(k));
            }
        }
        State::Running | State::Paused | State::Disabled | State::Quarantined => {
            panic!("{state:?}")
        }
    }
}

#[test]
fn the_generated_sagas_reach_what_they_are_for() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut ends = [0; 3];
    let (mut blocked, mut empty) = (0, 0);
    let mut seen = Seen::default();
    for seed in 0..2_000 {
        let (steps, script) = (any_saga(), any_script())
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let mut world = World::new(plan(steps), script, seed);
        match world.run() {
            State::Completed => ends[0] += 1,
            State::Compensated => ends[1] += 1,
            State::Terminated => ends[2] += 1,
            State::Running | State::Paused | State::Disabled | State::Quarantined => {}
        }
        seen.add(world.seen);
        world.participants.late_calls_arrive();
        blocked += world.participants.blocked;
        let undone = &world.participants.undone;
        empty += undone.difference(&world.participants.reverted).count();
    }
    assert!(seen.each_at_least(50), "{seen:?}");
    assert!(ends.iter().all(|n| *n > 100), "{ends:?}");
    assert!(
        blocked > 30 && empty > 30,
        "late actions {blocked}, empty compensations {empty}"
    );
}
