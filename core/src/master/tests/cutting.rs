//! When windows are cut, what is stored, what is published, what is adopted.

use core::slice;

use super::*;

/// A leader with one settled slave, ten seconds before the next cut, whose current window is cut.
fn settled() -> Bench {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.live(12, &[("s-1", 1, 1)]);
    bench
}

#[test]
fn the_next_window_is_stored_at_its_time_and_published_only_when_that_is_confirmed() {
    let mut bench = settled();
    while bench.now.wall
        < Timing::default()
            .cut_at(FIRST.next())
            .minus(Duration::from_secs(1))
    {
        bench.live(1, &[("s-1", 1, 1)]);
    }
    bench.advance(Duration::from_secs(1));
    let made = cut(FIRST.next(), term(1), &[("s-1", 1, 1)]);
    let orders = bench.does(Input::Woke);
    let orders: Vec<Order> = orders.into_iter().filter(|o| *o != renew(1)).collect();
    assert_eq!(orders, [store(slice::from_ref(&made))]);
    let stored = told(registry::Told::Stored {
        cuts: vec![made.clone()],
    });
    let (grant, event) = (bench.publication(&made, 0), bench.cut_event(&made));
    bench.check(stored.clone(), &[grant, event]);
    bench.check(stored, &[]);
}

#[test]
fn an_older_stored_cut_is_adopted_instead_of_the_own_one() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.beat("s-1", 1, vec![load("orders", 1, 0)]);
    for _ in 0..9 {
        bench.live_without_store();
    }
    bench.advance(Duration::from_secs(1));
    let mine = cut(FIRST, term(1), &[("s-1", 1, 1)]);
    bench.check(Input::Woke, &[store(&[mine])]);
    let older = cut(FIRST, foreign_term(0), &[("s-9", 9, 1), ("s-1", 1, 1)]);
    let stored = told(registry::Told::Stored {
        cuts: vec![older.clone()],
    });
    let expected = [
        bench.publication(&older, 0),
        bench.publication(&older, 1),
        bench.cut_event(&older),
    ];
    bench.check(stored, &expected);
}

#[test]
fn a_stored_cut_that_cannot_be_read_is_asked_for_once_a_heartbeat() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.beat("s-1", 1, vec![load("orders", 1, 0)]);
    for _ in 0..9 {
        bench.live_without_store();
    }
    bench.advance(Duration::from_secs(1));
    let mine = cut(FIRST, term(1), &[("s-1", 1, 1)]);
    bench.check(Input::Woke, &[store(slice::from_ref(&mine))]);
    let unread = || told(registry::Told::Stored { cuts: vec![] });
    bench.check(unread(), &[]);
    let left = bench.master.wake_at().after(bench.now).unwrap().0;
    assert!(!left.is_zero(), "it would spin");
    let beat = Timing::default().heartbeat;
    bench.advance(beat - Duration::from_millis(1));
    let early = bench.does(Input::Woke);
    assert!(!early.contains(&store(slice::from_ref(&mine))), "{early:?}");
    bench.advance(Duration::from_millis(1));
    let again = bench.does(Input::Woke);
    assert!(again.contains(&store(&[mine])), "{again:?}");
}

#[test]
fn a_window_is_published_three_times_within_the_lead() {
    let mut bench = settled();
    let orders = bench.live(50, &[("s-1", 1, 1)]);
    let made = cut(FIRST.next(), term(1), &[("s-1", 1, 1)]);
    let grant = bench.publication(&made, 0);
    assert_eq!(orders.iter().filter(|o| **o == grant).count(), 3);
    assert_eq!(cuts(&orders), [made], "the event comes once");
}

#[test]
fn a_cold_start_cuts_the_current_window_two_heartbeats_after_the_first_slave() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    let early = bench.live(9, &[("s-1", 1, 2)]);
    assert_eq!(cuts(&early), []);
    bench.join("s-2", 2);
    let orders = bench.live(2, &[("s-1", 1, 2), ("s-2", 2, 1)]);
    let expected = cut(FIRST, term(1), &[("s-1", 1, 2), ("s-2", 2, 1)]);
    assert_eq!(cuts(&orders), [expected]);
}

#[test]
fn a_window_with_too_little_left_is_not_cut_late() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.live(38, &[("s-1", 1, 0)]);
    let orders = bench.live(11, &[("s-1", 1, 1)]);
    let windows: Vec<WindowNo> = cuts(&orders).iter().map(|cut| cut.window).collect();
    assert_eq!(windows, [FIRST.next()]);
}

#[test]
fn a_window_of_which_somebody_holds_a_grant_is_not_cut_again() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    for _ in 0..15 {
        bench.advance(Duration::from_secs(1));
        let mut beat = bench.question("s-1", 1, vec![load("orders", 1, 0)]);
        beat.granted = vec![(service("orders"), FIRST)];
        let question = Question::SlaveBeat(beat);
        let (_, mut orders) = bench.asked(Place::Master(Verb::Heartbeat), question);
        orders.extend(bench.does(Input::Woke));
        let orders = bench.settle(orders, Bench::obey);
        assert_eq!(cuts(&orders), []);
    }
    let later = bench.live(11, &[("s-1", 1, 1)]);
    let windows: Vec<WindowNo> = cuts(&later).iter().map(|cut| cut.window).collect();
    assert_eq!(windows, [FIRST.next(), FIRST], "nobody reports it any more");
}

#[test]
fn a_published_grant_of_another_master_counts_as_a_report() {
    let mut bench = Bench::standby();
    let other = cut(FIRST, foreign_term(1), &[("s-1", 1, 1)]);
    let grant = Grant {
        service: service("orders"),
        window: FIRST,
        range: Range::RING,
        term: foreign_term(1),
        holder: id("s-1"),
        boot: boot(1),
        index: 0,
        members: 1,
        parent: None,
    };
    let body = Publication::Grant(GrantWire::new(&config().scope, &Timing::default(), grant));
    let place = Place::SlaveWindows(other.seats[0].slave.clone());
    bench.does(Input::Bus(Told::Published { place, body }));
    assert!(
        bench
            .master
            .board
            .reported
            .contains_key(&(FIRST, service("orders")))
    );
    assert_eq!(bench.master.floor, 1);
}

#[test]
fn a_new_leader_adopts_what_is_stored_and_publishes_it_under_its_own_term() {
    let mut bench = Bench::standby();
    bench.listen();
    bench.does(bench.mine(2));
    let older = cut(FIRST, foreign_term(1), &[("s-1", 1, 1)]);
    let (grant, event) = (bench.publication(&older, 0), bench.cut_event(&older));
    assert_eq!(bench.grant(&older, 0).term, term(2));
    bench.check(bench.loaded(vec![older]), &[grant, event]);
}

#[test]
fn nothing_is_cut_before_the_stored_cuts_were_read() {
    let mut bench = Bench::standby();
    for _ in 0..11 {
        bench.advance(Duration::from_secs(1));
        let beat = bench.question("s-1", 1, vec![load("orders", 1, 0)]);
        bench.overhear(beat);
        bench.does(Input::Woke);
    }
    bench.does(bench.mine(1));
    bench.check(Input::Woke, &[]);
    let made = cut(FIRST, term(1), &[("s-1", 1, 1)]);
    bench.check(bench.loaded(vec![]), &[store(&[made])]);
}

#[test]
fn a_new_leader_stores_and_publishes_the_cut_that_it_only_heard() {
    let mut bench = Bench::standby();
    let heard = cut(FIRST, foreign_term(1), &[("s-1", 1, 1), ("s-2", 2, 3)]);
    let wire = CutWire::new(&Timing::default(), &heard);
    bench.does(bench.foreign_event(Fact::Cut { cut: wire }));
    bench.listen();
    bench.does(bench.mine(2));
    bench.check(bench.loaded(vec![]), &[store(slice::from_ref(&heard))]);
    let stored = told(registry::Told::Stored {
        cuts: vec![heard.clone()],
    });
    let expected = [
        bench.publication(&heard, 0),
        bench.publication(&heard, 1),
        bench.cut_event(&heard),
    ];
    bench.check(stored, &expected);
}

#[test]
fn a_leader_change_costs_no_slave_its_seat() {
    let mut bench = Bench::standby();
    for _ in 0..11 {
        bench.advance(Duration::from_secs(1));
        for (name, boot) in [("s-1", 1), ("s-2", 2)] {
            let beat = bench.question(name, boot, vec![load("orders", 1, 0)]);
            bench.overhear(beat);
        }
        bench.does(Input::Woke);
    }
    bench.does(bench.mine(4));
    let both = cut(FIRST, term(4), &[("s-1", 1, 1), ("s-2", 2, 1)]);
    bench.check(bench.loaded(vec![]), &[store(&[both])]);
    let (answer, _) = {
        let beat = bench.question("s-2", 2, vec![load("orders", 1, 0)]);
        bench.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat))
    };
    assert!(matches!(answer, Answer::Heard { .. }), "{answer:?}");
}

#[test]
fn a_heard_cut_that_does_not_cover_the_ring_is_not_adopted() {
    let mut bench = Bench::standby();
    let mut broken = cut(FIRST, foreign_term(1), &[("s-1", 1, 1), ("s-2", 2, 1)]);
    broken.seats.pop();
    let wire = CutWire::new(&Timing::default(), &broken);
    bench.does(bench.foreign_event(Fact::Cut { cut: wire }));
    assert!(bench.master.board.known.is_empty());
}

#[test]
fn two_cuts_of_one_window_are_counted_as_an_overlap() {
    let mut bench = Bench::leader();
    let mine = cut(FIRST, term(1), &[("s-1", 1, 1)]);
    bench.does(bench.loaded(vec![mine]));
    let theirs = cut(FIRST, foreign_term(0), &[("s-2", 2, 1)]);
    let wire = CutWire::new(&Timing::default(), &theirs);
    let overlap = bench.event(Fact::Overlap {
        service: service("orders"),
        window: FIRST,
        range: Range::RING,
    });
    bench.check(bench.foreign_event(Fact::Cut { cut: wire }), &[overlap]);
}

#[test]
fn no_key_is_written_for_a_cut_without_seats() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    let orders = bench.live(130, &[("s-1", 1, 0)]);
    assert_eq!(cuts(&orders), []);
    let stores = |o: &Order| matches!(o, Order::Registry(registry::Op::StoreCuts { .. }));
    assert!(!orders.iter().any(stores));
}

#[test]
fn every_window_is_cut_exactly_once() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.join("s-2", 2);
    let orders = bench.live(600, &[("s-1", 1, 3), ("s-2", 2, 1)]);
    let windows: Vec<u64> = cuts(&orders).iter().map(|cut| cut.window.0).collect();
    assert_eq!(windows, (1000..=1010).collect::<Vec<u64>>());
}

#[test]
fn a_reply_carries_the_grants_of_the_own_boot_only() {
    let mut bench = settled();
    bench.live(30, &[("s-1", 1, 1)]);
    let ask = |bench: &mut Bench, boot| {
        let beat = bench.question("s-1", boot, vec![load("orders", 1, 0)]);
        bench
            .asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat))
            .0
    };
    let both = [FIRST, FIRST.next()].map(|n| cut(n, term(1), &[("s-1", 1, 1)]));
    let expected = both.each_ref().map(|cut| bench.grant(cut, 0));
    let Answer::Heard { grants, .. } = ask(&mut bench, 1) else {
        panic!("heard")
    };
    assert_eq!(grants, expected);
    let (answer, _) = bench.asked(Place::Master(Verb::Window), Question::Window(who("s-1", 1)));
    let grants = expected.to_vec();
    assert_eq!(answer, Answer::Grants { grants });
    let leave = Leave {
        who: who("s-1", 1),
        after: None,
    };
    bench.asked(Place::Master(Verb::Leave), Question::Leave(leave));
    bench.join("s-1", 2);
    let Answer::Heard { grants, .. } = ask(&mut bench, 2) else {
        panic!("heard")
    };
    assert_eq!(grants, []);
}

#[test]
fn each_service_has_a_ring_of_its_own() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.join("s-2", 2);
    for _ in 0..11 {
        bench.advance(Duration::from_secs(1));
        let both = vec![load("orders", 2, 0), load("bills", 1, 0)];
        let mut orders = bench.beat("s-1", 1, both);
        orders.extend(bench.beat("s-2", 2, vec![load("orders", 2, 0)]));
        orders.extend(bench.does(Input::Woke));
        bench.settle(orders, Bench::obey);
    }
    let known = &bench.master.board.known;
    let orders = &known[&(FIRST, service("orders"))].cut;
    assert_eq!(
        orders.ranges(),
        Range::RING
            .split(2)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    );
    let bills = &known[&(FIRST, service("bills"))].cut;
    assert_eq!(bills.seats[0].range, Some(Range::RING));
    assert_eq!(bills.seats[1].state, SeatState::Empty);
}

#[test]
fn a_cut_that_was_perhaps_stored_is_stored_again_the_same() {
    let mut bench = Bench::leader();
    bench.join("s-1", 1);
    bench.beat("s-1", 1, vec![load("orders", 1, 0)]);
    let first = cut(FIRST, term(1), &[("s-1", 1, 1)]);
    let mut orders = Vec::new();
    for _ in 0..10 {
        orders = bench.live_without_store();
    }
    assert!(
        orders.contains(&store(slice::from_ref(&first))),
        "{orders:?}"
    );
    bench.join("s-2", 2);
    bench.beat("s-2", 2, vec![load("orders", 5, 0)]);
    let op = registry::Op::StoreCuts {
        cuts: vec![first.clone()],
        keep: Duration::from_secs(180),
    };
    bench.does(told(registry::Told::Unreachable { op }));
    let mut orders = Vec::new();
    for _ in 0..5 {
        orders = bench.live_without_store();
    }
    assert!(orders.contains(&store(&[first])), "{orders:?}");
}

impl Bench {
    /// A second in which the lease is renewed and nothing is stored.
    fn live_without_store(&mut self) -> Vec<Order> {
        let orders = self.pass(1);
        if orders.contains(&renew(1)) {
            self.does(self.mine(1));
        }
        orders
    }
}
