//! The breaker, sentence by sentence.

use alloc::vec;
use core::time::Duration;

use super::*;

const CALLER: u64 = 7;

struct Bench {
    breaker: Breaker,
    at: u64,
    changes: Vec<Change>,
}

fn target() -> TargetName {
    TargetName::new("payment").unwrap()
}

impl Bench {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self {
            breaker: Breaker::new(limits, 3),
            at: 1_000,
            changes: Vec::new(),
        }
    }

    /// Known to work.
    fn working(limits: Limits) -> Self {
        let mut b = Self::with(limits);
        let pass = b.go(CALLER);
        b.end(pass, Gave::Works);
        b
    }

    /// Opened a moment ago.
    fn down() -> Self {
        let mut b = Self::working(Limits::default());
        for caller in 0..5 {
            b.fail(caller);
        }
        assert_eq!(b.changes, [Change::Down(target())]);
        b.changes.clear();
        b
    }

    fn now(&self) -> Now {
        Now {
            wall: Wall(50_000),
            mono: Mono(self.at),
        }
    }

    fn ask(&mut self, caller: u64, retry: bool) -> Verdict {
        let ask = Ask { caller, retry };
        self.breaker.ask(self.now().mono, &target(), ask)
    }

    fn go(&mut self, caller: u64) -> Pass {
        match self.ask(caller, false) {
            Verdict::Go(pass) => pass,
            held @ Verdict::Hold { .. } => panic!("{held:?}"),
        }
    }

    fn held(&mut self) -> (u64, Why) {
        match self.ask(CALLER, false) {
            Verdict::Hold { after, why } => (u64::try_from(after.as_millis()).unwrap(), why),
            Verdict::Go(pass) => panic!("{pass:?}"),
        }
    }

    fn end(&mut self, pass: Pass, gave: Gave) {
        let now = self.now();
        self.breaker
            .ended(now, &target(), pass, gave, &mut self.changes);
    }

    fn fail(&mut self, caller: u64) {
        let pass = self.go(caller);
        self.end(pass, Gave::Fails);
    }

    /// To the end of the pause.
    fn wait_for_probes(&mut self) -> u64 {
        let (pause, why) = self.held();
        assert_eq!(why, Why::Down);
        self.at += pause;
        pause
    }

    fn waits(&mut self) {
        self.breaker.waited_for(&target(), true);
    }

    fn room(&mut self) -> u32 {
        let rooms = self.breaker.rooms(Mono(self.at));
        rooms.get(&target()).copied().unwrap_or(0)
    }
}

#[test]
fn an_unknown_target_gets_a_few_calls_until_one_succeeds() {
    let mut b = Bench::new();
    let first = b.go(1);
    b.go(2);
    b.go(3);
    assert_eq!(b.held(), (50, Why::Busy));
    b.end(first, Gave::Works);
    for caller in 0..300 {
        b.go(caller);
    }
    assert_eq!(b.changes, []);
}

#[test]
fn five_failures_in_a_row_open_it() {
    let mut b = Bench::working(Limits::default());
    for caller in 0..4 {
        b.fail(caller);
    }
    assert!(!b.breaker.is_down(&target()));
    b.fail(4);
    assert_eq!(b.changes, [Change::Down(target())]);
    let down: Vec<_> = b.breaker.down(Mono(b.at)).collect();
    assert_eq!(down, [(&target(), Wall(50_000))]);
    assert_eq!(b.held().1, Why::Down);
}

#[test]
fn a_success_in_between_starts_the_count_again() {
    let mut b = Bench::working(Limits::default());
    for round in 0..3 {
        for caller in 0..4 {
            b.fail(caller);
        }
        for _ in 0..8 {
            let pass = b.go(round);
            b.end(pass, Gave::Works);
        }
    }
    assert_eq!(b.changes, []);
}

#[test]
fn half_of_the_last_calls_failing_open_it() {
    let mut b = Bench::working(Limits::default());
    for call in 0..9 {
        b.fail(call);
        let pass = b.go(call);
        b.end(pass, Gave::Works);
    }
    assert_eq!(b.changes, [], "19 calls say little");
    b.fail(9);
    assert_eq!(b.changes, [Change::Down(target())]);
}

#[test]
fn failures_of_ten_seconds_ago_are_forgotten() {
    let mut b = Bench::working(Limits::default());
    for call in 0..9 {
        b.fail(call);
        let pass = b.go(call);
        b.end(pass, Gave::Works);
    }
    b.at += 10_000;
    b.fail(9);
    assert_eq!(b.changes, []);
}

#[test]
fn one_transaction_alone_does_not_open_it() {
    let mut b = Bench::working(Limits::default());
    for _ in 0..100 {
        b.fail(CALLER);
    }
    assert_eq!(b.changes, []);
    b.fail(CALLER + 1);
    assert_eq!(b.changes, [Change::Down(target())]);
}

#[test]
fn after_the_pause_three_probes_go_and_no_more() {
    let mut b = Bench::down();
    let pause = b.wait_for_probes();
    assert!((250..=500).contains(&pause), "{pause}");
    let probes = [b.go(1), b.go(2), b.go(3)];
    assert_eq!(b.held(), (50, Why::Down));
    b.end(probes[0], Gave::Nothing);
    b.go(4);
    assert_eq!(b.held(), (50, Why::Down));
}

#[test]
fn pauses_double_while_probes_fail_and_the_outage_is_told_once() {
    let mut b = Bench::down();
    let mut pauses = Vec::new();
    for caller in 0..9 {
        pauses.push(b.wait_for_probes());
        b.fail(caller);
    }
    let mut full = 500;
    for pause in pauses {
        assert!((full / 2..=full).contains(&pause), "{pause} of {full}");
        full = (full * 2).min(10_000);
    }
    assert_eq!(b.changes, []);
}

#[test]
fn a_probe_that_hangs_keeps_its_place_when_others_fail() {
    let mut b = Bench::down();
    b.wait_for_probes();
    let hanging = b.go(1);
    b.fail(2);
    b.wait_for_probes();
    b.go(3);
    b.go(4);
    assert_eq!(b.held(), (50, Why::Down));
    b.end(hanging, Gave::Works);
    assert!(b.breaker.is_down(&target()), "it speaks of an earlier time");
    b.go(5);
}

#[test]
fn a_probe_that_succeeds_closes_it_and_what_waits_goes_on_at_a_growing_pace() {
    let mut b = Bench::down();
    b.waits();
    b.wait_for_probes();
    assert_eq!(b.room(), 3);
    let probe = b.go(1);
    assert_eq!(b.room(), 2);
    b.end(probe, Gave::Works);
    assert_eq!(b.changes, [Change::Up(target())]);
    let mut paces = Vec::new();
    for _ in 0..8 {
        b.at += 1_000;
        paces.push(b.room());
        let pass = b.go(1);
        b.end(pass, Gave::Works);
    }
    assert_eq!(paces, [6, 12, 24, 48, 96, 100, 100, 100], "100 a moment");
}

#[test]
fn a_pace_without_calls_stays_and_one_with_failures_is_halved() {
    let mut b = Bench::down();
    b.waits();
    b.wait_for_probes();
    let probe = b.go(1);
    b.end(probe, Gave::Works);
    b.at += 5_000;
    assert_eq!(b.room(), 6, "nobody knows whether it bears more");
    b.fail(1);
    b.at += 1_000;
    assert_eq!(b.room(), 3);
}

#[test]
fn what_waits_is_not_begun_all_in_one_moment() {
    let mut b = Bench::working(Limits {
        drain_per_second: 100,
        ..Limits::default()
    });
    b.waits();
    b.at += 100;
    for caller in 0..10 {
        b.go(caller);
    }
    assert_eq!(b.room(), 0);
    let (after, why) = b.held();
    assert_eq!((after, why), (100, Why::Busy));
    b.at += after;
    assert_eq!(b.room(), 10);
}

#[test]
fn without_anybody_waiting_only_the_places_count() {
    let mut b = Bench::working(Limits::default());
    for caller in 0..384 {
        b.go(caller);
    }
    assert_eq!(b.held(), (50, Why::Busy));
}

#[test]
fn retries_beyond_a_fifth_of_the_calls_are_held() {
    let mut b = Bench::working(Limits {
        retry_floor: 2,
        ..Limits::default()
    });
    for caller in 0..99 {
        let pass = b.go(caller);
        b.end(pass, Gave::Works);
    }
    let mut retries = 0;
    while let Verdict::Go(pass) = b.ask(CALLER, true) {
        retries += 1;
        b.end(pass, Gave::Works);
    }
    assert_eq!(retries, 24, "24 of 124 calls");
    let held = Verdict::Hold {
        after: Duration::from_secs(1),
        why: Why::Budget,
    };
    assert_eq!(b.ask(CALLER, true), held);
    b.waits();
    b.at += 100;
    assert_eq!(b.room(), 0, "those that wait may be retries");
    b.at += 10_000;
    assert_eq!(b.room(), 2);
}

#[test]
fn what_was_called_before_a_change_says_nothing_after_it() {
    let mut b = Bench::working(Limits::default());
    let slow: Vec<_> = (0..10).map(|caller| b.go(caller)).collect();
    for caller in 0..5 {
        b.fail(caller);
    }
    b.wait_for_probes();
    for pass in slow {
        b.end(pass, Gave::Fails);
    }
    b.go(1);
    assert_eq!(b.changes, [Change::Down(target())]);
}

#[test]
fn what_nobody_waits_for_is_not_said_to_be_down_for_ever() {
    let mut b = Bench::down();
    let pause = b.held().0;
    let down = |b: &Bench, at| b.breaker.down(Mono(at)).count();
    assert_eq!(down(&b, b.at + pause - 1), 1);
    assert_eq!(down(&b, b.at + pause), 0);
    b.waits();
    assert_eq!(down(&b, b.at + pause), 1);
}

#[test]
fn a_target_beyond_the_limit_has_no_breaker() {
    let mut b = Breaker::new(Limits::default(), 3);
    let name = |n: usize| TargetName::new(alloc::format!("t{n}")).unwrap();
    let now = Now::default();
    let ask = Ask {
        caller: 1,
        retry: false,
    };
    for n in 0..MOST_TARGETS {
        assert!(matches!(b.ask(now.mono, &name(n), ask), Verdict::Go(_)));
    }
    let beyond = name(MOST_TARGETS);
    for _ in 0..10 {
        let Verdict::Go(pass) = b.ask(now.mono, &beyond, ask) else {
            panic!("it is held");
        };
        let mut out = vec![];
        b.ended(now, &beyond, pass, Gave::Fails, &mut out);
        assert_eq!(out, []);
    }
}
