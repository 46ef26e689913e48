//! Vanished slaves: how long their seats are kept, and what is told about it.

use super::*;

const BOTH: [(&str, u128, u32); 2] = [("s-1", 1, 1), ("s-2", 2, 1)];

fn three() -> [(&'static str, u128, u32); 3] {
    [("s-1", 1, 1), ("s-2", 2, 1), ("s-3", 3, 1)]
}

fn with_limit(freeze_limit: Option<u32>) -> Bench {
    let timing = Timing {
        freeze_limit,
        ..Timing::default()
    };
    let mut bench = Bench::leader_of(Config { timing, ..config() });
    for (name, boot, _) in three() {
        bench.join(name, boot);
    }
    // Window 1001 is 12 s old: who falls silent now is missed before 1002 is cut.
    bench.live(62, &three());
    bench
}

/// Windows that are declared frozen, and those from which the ring is whole again.
fn declared(orders: &[Order], slave: &str) -> (Vec<u64>, Vec<u64>) {
    let (mut frozen, mut thawed) = (Vec::new(), Vec::new());
    for fact in facts(orders) {
        if let Fact::Frozen {
            slave: s, window, ..
        } = fact
        {
            frozen.extend((s == id(slave)).then_some(window.0));
        } else if let Fact::Thawed {
            slave: s, window, ..
        } = fact
        {
            thawed.extend((s == id(slave)).then_some(window.0));
        }
    }
    (frozen, thawed)
}

fn states(orders: &[Order]) -> Vec<Vec<SeatState>> {
    let seats = |cut: Cut| cut.seats.iter().map(|seat| seat.state).collect();
    cuts(orders).into_iter().map(seats).collect()
}

#[test]
fn by_default_the_window_that_the_dead_one_still_holds_is_its_frozen_one() {
    let mut bench = with_limit(Some(1));
    let rest = [("s-2", 2, 1), ("s-3", 3, 1)];
    let orders = bench.live(20, &rest);
    assert_eq!(declared(&orders, "s-1"), (vec![1001], vec![1002]));
    assert_eq!(states(&orders), [vec![SeatState::Live; 2]]);
    let left = Fact::Left {
        role: Role::Slave,
        id: id("s-1"),
        boot: boot(1),
        graceful: false,
        service: None,
    };
    assert!(facts(&orders).contains(&left));
}

#[test]
fn a_seat_is_kept_for_as_many_windows_as_the_limit_says() {
    let mut bench = with_limit(Some(3));
    let rest = [("s-2", 2, 1), ("s-3", 3, 1)];
    let orders = bench.live(190, &rest);
    assert_eq!(
        declared(&orders, "s-1"),
        (vec![1001, 1002, 1003], vec![1004])
    );
    assert_eq!(states(&orders)[0][0], SeatState::Frozen);
}

#[test]
fn for_ever_is_the_document_s_behaviour() {
    let mut bench = with_limit(None);
    let rest = [("s-2", 2, 1), ("s-3", 3, 1)];
    let orders = bench.live(600, &rest);
    let (frozen, thawed) = declared(&orders, "s-1");
    assert_eq!((frozen.len(), thawed.len()), (11, 0));
}

#[test]
fn the_last_seat_is_not_kept() {
    let mut bench = with_limit(None);
    let orders = bench.live(30, &BOTH);
    assert_eq!(declared(&orders, "s-3"), (vec![1001], vec![1002]));
}

#[test]
fn more_than_a_third_of_the_ring_is_not_kept() {
    let mut bench = with_limit(None);
    let orders = bench.live(30, &[("s-3", 3, 1)]);
    assert_eq!(states(&orders), [vec![SeatState::Live]]);
    for slave in ["s-1", "s-2"] {
        assert_eq!(declared(&orders, slave), (vec![1001], vec![1002]));
    }
}

#[test]
fn who_vanishes_a_third_time_in_ten_minutes_is_not_waited_for() {
    let mut bench = with_limit(Some(5));
    // Seats keep their order, so the returning one is first again.
    let rest = [("s-2", 2, 1), ("s-3", 3, 1)];
    for boot in [11, 12, 13] {
        let orders = bench.live(60, &rest);
        let kept = states(&orders).concat().contains(&SeatState::Frozen);
        assert_eq!(kept, boot != 13, "{orders:?}");
        bench.join("s-1", boot);
        bench.live(60, &[("s-1", boot, 1), rest[0], rest[1]]);
    }
}

#[test]
fn a_graceful_leave_frees_the_seat_at_the_next_cut_and_nothing_is_frozen() {
    let mut bench = with_limit(None);
    let leave = Leave {
        who: who("s-1", 1),
        after: None,
    };
    let left = bench.event(Fact::Left {
        role: Role::Slave,
        id: id("s-1"),
        boot: boot(1),
        graceful: true,
        service: None,
    });
    let (answer, orders) = bench.asked(Place::Master(Verb::Leave), Question::Leave(leave));
    assert_eq!((answer, orders), (Answer::Left, vec![left]));
    let rest = [("s-2", 2, 1), ("s-3", 3, 1)];
    let orders = bench.live(30, &rest);
    assert_eq!(declared(&orders, "s-1"), (vec![], vec![]));
    assert_eq!(states(&orders), [vec![SeatState::Live; 2]]);
}

#[test]
fn a_returning_slave_is_in_at_the_next_cut_under_its_new_boot() {
    let mut bench = with_limit(None);
    let rest = [("s-2", 2, 1), ("s-3", 3, 1)];
    bench.live(35, &rest);
    bench.join("s-1", 9);
    let orders = bench.live(60, &[("s-1", 9, 1), rest[0], rest[1]]);
    let [made] = &cuts(&orders)[..] else {
        panic!("one cut")
    };
    assert_eq!(
        (made.seats[0].boot, made.seats[0].state),
        (boot(9), SeatState::Live)
    );
    assert_eq!(declared(&orders, "s-1").1, [made.window.0]);
}

#[test]
fn a_standby_that_takes_over_knows_who_vanished() {
    let mut bench = Bench::standby();
    for second in 0..30 {
        bench.advance(Duration::from_secs(1));
        for (name, boot, live) in three() {
            let beat = bench.question(name, boot, vec![load("orders", live, 0)]);
            if name != "s-1" || second < 5 {
                bench.overhear(beat);
            }
        }
        bench.does(Input::Woke);
    }
    let first = cut(FIRST, foreign_term(1), &three());
    let next = cut(FIRST.next(), foreign_term(1), &three());
    bench.does(bench.mine(2));
    bench.does(bench.loaded(vec![first.clone(), next]));
    assert!(bench.master.vanished.holds(&first.seats[0]));
}
