//! Whose clock is off.

use super::*;

/// Heartbeats of two slaves whose clocks differ from ours by these milliseconds.
fn beats(bench: &mut Bench, offsets: [i64; 2]) {
    for (n, offset) in (1..).zip(offsets) {
        let mut beat = bench.question(&alloc::format!("s-{n}"), n, vec![]);
        beat.sent_at = Time(Wall(bench.now.wall.0 + offset));
        bench.overhear(beat.clone());
        if bench.master.leading().is_some() {
            bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
        }
    }
}

fn pair() -> Bench {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.join("s-2", 2);
    bench
}

#[test]
fn a_leader_off_from_the_majority_steps_down() {
    let mut bench = pair();
    for _ in 0..3 {
        beats(&mut bench, [900, 800]);
    }
    let orders = bench.does(Input::Woke);
    let fact = Fact::SteppedDown {
        term: term(1),
        reason: "its clock is off from the majority's".to_string(),
    };
    assert!(facts(&orders).contains(&fact), "{orders:?}");
    for _ in 0..20 {
        beats(&mut bench, [900, 800]);
        assert_eq!(bench.pass(1), [], "and does not compete");
    }
}

#[test]
fn one_voice_does_not_depose_a_leader() {
    let mut bench = pair();
    for _ in 0..3 {
        beats(&mut bench, [900, 0]);
    }
    bench.check(Input::Woke, &[]);
    assert_eq!(bench.master.leading(), Some(term(1)));
}

#[test]
fn a_delayed_heartbeat_is_no_offset() {
    let mut bench = pair();
    beats(&mut bench, [-20, -30]);
    beats(&mut bench, [-2_000, -3_000]);
    bench.check(Input::Woke, &[]);
    assert_eq!(bench.master.leading(), Some(term(1)));
}

#[test]
fn the_registry_s_clock_is_a_voice_like_any_other() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    let mut beat = bench.question("s-1", 1, vec![]);
    beat.sent_at = Time(Wall(bench.now.wall.0 + 5_000));
    bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat));
    assert_eq!(bench.pass(4), [renew(1)]);
    let mine = told(registry::Told::Mine {
        term: term(1),
        clock: Wall(bench.now.wall.0 + 5_000),
    });
    bench.does(mine);
    assert_eq!(bench.master.leading(), None);
    assert_eq!(bench.master.clock_offset_ms(), Some(5_000));
}

#[test]
fn a_step_of_the_own_clock_voids_what_was_measured_and_the_registry_is_asked_at_once() {
    let mut bench = pair();
    for _ in 0..3 {
        beats(&mut bench, [0, 0]);
    }
    bench.now.wall = bench.now.wall.plus(Duration::from_secs(30));
    bench.check(Input::Woke, &[renew(1)]);
    assert_eq!(bench.master.clock_offset_ms(), None);
}

#[test]
fn nothing_is_cut_after_a_step_until_the_registry_agrees() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.live(12, &[("s-1", 1, 1)]);
    // Into the lead of the next window: it is due at once.
    bench.now.wall = bench.now.wall.plus(Duration::from_secs(20));
    bench.check(Input::Woke, &[renew(1)]);
    let made = cut(FIRST.next(), term(1), &[("s-1", 1, 1)]);
    bench.check(bench.mine(1), &[store(&[made])]);
}

#[test]
fn a_leader_whose_clock_stepped_and_is_off_from_the_registrys_steps_down() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.live(12, &[("s-1", 1, 1)]);
    let right = bench.now.wall;
    bench.now.wall = right.minus(Duration::from_secs(300));
    bench.check(Input::Woke, &[renew(1)]);
    let mine = told(registry::Told::Mine {
        term: term(1),
        clock: right,
    });
    let orders = bench.does(mine);
    assert_eq!(bench.master.leading(), None);
    assert_eq!(cuts(&orders), []);
}

#[test]
fn who_wins_the_lease_with_a_clock_that_is_off_gives_it_back() {
    let mut bench = Bench::standby();
    bench.pass(1);
    bench.now.wall = bench.now.wall.plus(Duration::from_secs(90));
    assert_eq!(bench.pass(9), [acquire(0)]);
    let mine = told(registry::Told::Mine {
        term: term(1),
        clock: bench.now.wall.minus(Duration::from_secs(90)),
    });
    bench.check(mine, &[release(1)]);
    assert_eq!(bench.master.leading(), None);
}
