//! Whose clock is off.

use super::*;
use crate::time::Wall;

/// The master's clock is this far ahead of ours.
fn measure(it: &mut Bench, ahead_ms: i64, took_ms: u64) {
    let (ask, _) = it.master_beat();
    it.now.wall = it.now.wall.plus(Duration::from_millis(took_ms));
    it.now.mono = it.now.mono.plus(Duration::from_millis(took_ms));
    let middle = it.now.wall.0 - i64::try_from(took_ms).unwrap() / 2;
    let there = Now {
        wall: Wall(middle + ahead_ms),
        mono: it.now.mono,
    };
    it.answer(ask, Ok(heard(5, there, vec![])));
}

#[test]
fn the_offset_is_measured_from_the_middle_of_the_round_trip() {
    let mut it = Bench::with(&["a"]);
    measure(&mut it, 300, 40);
    assert_eq!(it.slave.clock_offset_ms(), Some(-300));
}

#[test]
fn a_slow_answer_does_not_hide_a_quick_ones_measurement() {
    let mut it = Bench::with(&["a"]);
    measure(&mut it, 0, 10);
    measure(&mut it, 700, 1_900);
    assert_eq!(it.slave.clock_offset_ms(), Some(0));
}

#[test]
fn it_sits_out_when_its_orchestrators_disagree_with_it_too() {
    let mut it = Bench::with(&["a"]);
    measure(&mut it, 5_000, 10);
    it.beat_with("a", 10, Health::default(), 5_000);
    let ops = it.grant(grant(&who("s-1", 2), 11, Range::RING));
    assert_eq!(published(&ops), []);
    let (_, beat) = it.master_beat();
    assert!(beat.clock_off);
    assert_eq!(it.slave.ready(it.now), ["its clock is off: it sits out"]);
}

#[test]
fn it_goes_on_when_only_the_master_disagrees() {
    let mut it = Bench::with(&["a"]);
    measure(&mut it, 5_000, 10);
    it.beat_with("a", 10, Health::default(), 100);
    let ops = it.grant(grant(&who("s-1", 2), 11, Range::RING));
    assert_eq!(published(&ops).len(), 1);
    let (_, beat) = it.master_beat();
    assert!(!beat.clock_off);
}

#[test]
fn a_clock_set_right_is_believed_at_once() {
    let mut it = Bench::with(&["a"]);
    measure(&mut it, 5_000, 10);
    it.beat_with("a", 10, Health::default(), 5_000);
    it.grant(grant(&who("s-1", 2), 11, Range::RING));
    it.now.wall = it.now.wall.plus(Duration::from_secs(5));
    measure(&mut it, 0, 10);
    let ops = it.pass(1);
    let late = published(&ops).len() + it.slave.issued(it.now).count();
    assert!(late >= 1, "what waited is cut");
}
