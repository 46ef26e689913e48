//! What it accepts, and how it cuts.

use super::*;

fn me() -> Who {
    who("s-1", 2)
}

fn halves() -> [Range; 2] {
    [range(i64::MIN, -1), range(0, i64::MAX)]
}

#[test]
fn a_slice_is_cut_equally_on_first_receipt() {
    let mut it = Bench::with(&["a", "b"]);
    let ops = it.grant(grant(&me(), 11, Range::RING));
    let [left, right] = halves();
    assert_eq!(
        published(&ops),
        [(node("a"), 11, left), (node("b"), 11, right)]
    );
}

#[test]
fn a_sub_grant_names_its_parent_and_the_boot_it_is_for() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 11, range(0, 99)));
    let sub = it.slave.issued(it.now).next().unwrap();
    let parent = crate::window::Parent {
        slave: node("s-1"),
        boot: boot(2),
        index: 0,
        members: 1,
        range: range(0, 99),
    };
    let expected = Grant {
        holder: node("a"),
        boot: boot(10),
        parent: Some(parent),
        ..grant(&me(), 11, range(0, 99))
    };
    assert_eq!(*sub, expected);
}

#[test]
fn one_cut_a_window_stays_whoever_comes_or_goes() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 11, Range::RING));
    assert_eq!(grants_in(&it.enter("b", 11, "orders")), []);
    let leave = Leave {
        who: who("a", 10),
        after: None,
    };
    it.ask(Verb::Leave, Question::Leave(leave));
    assert_eq!(published(&it.grant(grant(&me(), 11, Range::RING))), []);
    assert_eq!(grants_in(&it.beat("b", 11)), []);
    assert_eq!(it.slave.issued(it.now).count(), 1);
}

#[test]
fn a_second_cut_of_a_window_is_refused_and_counted() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 11, range(0, 99)));
    let other = Grant {
        term: term(6),
        ..grant(&me(), 11, range(0, 49))
    };
    assert_eq!(published(&it.grant(other)), []);
    assert_eq!(it.slave.dropped().conflicting, 1);
    assert_eq!(it.slave.grants(it.now).next().unwrap().range, range(0, 99));
}

#[test]
fn the_predecessors_grant_is_not_used() {
    let mut it = Bench::with(&["a"]);
    assert_eq!(
        published(&it.grant(grant(&who("s-1", 1), 10, Range::RING))),
        []
    );
    assert_eq!(it.slave.dropped().foreign, 1);
}

#[test]
fn the_running_window_is_used_when_it_was_cut_for_this_boot() {
    let mut it = Bench::with(&["a"]);
    let ops = it.grant(grant(&me(), 10, Range::RING));
    assert_eq!(published(&ops), [(node("a"), 10, Range::RING)]);
}

#[test]
fn windows_that_are_over_or_far_away_are_dropped() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 9, Range::RING));
    it.grant(grant(&me(), 12, Range::RING));
    it.grant(grant(&me(), u64::MAX, Range::RING));
    assert_eq!(windows(it.slave.grants(it.now)), [].into());
    assert_eq!(it.slave.dropped().stale, 3);
}

#[test]
fn a_published_grant_under_a_lower_term_is_refused_and_a_higher_one_learnt() {
    let mut it = Bench::with(&["a"]);
    it.grant(Grant {
        term: term(7),
        ..grant(&me(), 10, Range::RING)
    });
    assert_eq!(it.slave.status(it.now).term, Some(term(7)));
    it.grant(Grant {
        term: term(6),
        ..grant(&me(), 11, Range::RING)
    });
    assert_eq!(windows(it.slave.grants(it.now)), [10].into());
    assert_eq!(it.slave.dropped().lower_term, 1);
}

#[test]
fn a_cut_adopted_from_an_earlier_term_counts_when_the_leader_says_it() {
    let mut it = Bench::with(&["a"]);
    let (ask, _) = it.master_beat();
    let adopted = dressed(grant(&me(), 11, Range::RING));
    it.answer(ask, Ok(heard(6, it.now, vec![adopted])));
    assert_eq!(windows(it.slave.grants(it.now)), [11].into());
}

#[test]
fn a_nonsensical_term_is_refused() {
    let mut it = Bench::with(&["a"]);
    it.grant(Grant {
        term: term(1 << 50),
        ..grant(&me(), 11, Range::RING)
    });
    assert_eq!(it.slave.dropped().lower_term, 1);
    assert_eq!(it.slave.status(it.now).term, Some(term(5)));
}

#[test]
fn each_service_is_cut_among_its_own_orchestrators() {
    let mut it = Bench::with(&["a"]);
    it.enter("p", 20, "payments");
    it.grant(grant(&me(), 11, Range::RING));
    let payments = Grant {
        service: service("payments"),
        ..grant(&me(), 11, range(0, 99))
    };
    let ops = it.grant(payments);
    assert_eq!(published(&ops), [(node("p"), 11, range(0, 99))]);
    assert_eq!(grants_in(&it.beat("a", 10)), [(11, Range::RING)]);
}

#[test]
fn who_leaves_after_a_window_is_cut_for_it_and_not_for_the_next() {
    let mut it = Bench::with(&["a", "b"]);
    let leave = Leave {
        who: who("b", 11),
        after: Some(WindowNo(11)),
    };
    assert_eq!(it.ask(Verb::Leave, Question::Leave(leave)).1, Answer::Left);
    assert_eq!(published(&it.grant(grant(&me(), 11, Range::RING))).len(), 2);
    it.now.wall = it.now.wall.plus(Duration::from_secs(60));
    let ops = it.grant(grant(&me(), 12, Range::RING));
    assert_eq!(published(&ops), [(node("a"), 12, Range::RING)]);
}

#[test]
fn who_cannot_work_gets_nothing_while_another_can() {
    let mut it = Bench::with(&["a", "b"]);
    let sick = Health {
        sick: true,
        ..Health::default()
    };
    it.beat_with("a", 10, sick, 0);
    let ops = it.grant(grant(&me(), 11, Range::RING));
    assert_eq!(published(&ops), [(node("b"), 11, Range::RING)]);
}

#[test]
fn when_nobody_can_work_the_slice_is_cut_all_the_same() {
    let mut it = Bench::with(&["a", "b"]);
    let sick = Health {
        sick: true,
        ..Health::default()
    };
    it.beat_with("a", 10, sick, 0);
    it.beat_with("b", 11, sick, 0);
    assert_eq!(published(&it.grant(grant(&me(), 11, Range::RING))).len(), 2);
}

#[test]
fn a_slice_without_reader_waits_for_its_first_one() {
    let mut it = Bench::with(&[]);
    assert_eq!(published(&it.grant(grant(&me(), 11, Range::RING))), []);
    assert_eq!(grants_in(&it.enter("a", 10, "orders")), [(11, Range::RING)]);
    assert_eq!(grants_in(&it.enter("b", 11, "orders")), []);
}

#[test]
fn sub_grants_are_published_more_than_once_within_the_lead() {
    let mut it = Bench::with(&["a"]);
    it.now.wall = crate::time::Wall(630_000);
    it.grant(grant(&me(), 11, Range::RING));
    let mut again = 0;
    for _ in 0..60 {
        again += published(&it.pass(1_000)).len();
    }
    assert_eq!(again, 3);
}

#[test]
fn each_answer_to_a_heartbeat_carries_the_current_window_and_the_next() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 10, Range::RING));
    it.grant(grant(&me(), 11, range(0, 99)));
    let expected = [(10, Range::RING), (11, range(0, 99))];
    assert_eq!(grants_in(&it.beat("a", 10)), expected);
    let (_, answer) = it.ask(Verb::Window, Question::Window(who("a", 10)));
    assert_eq!(grants_in(&answer), expected);
    let (_, answer) = it.ask(Verb::Window, Question::Window(who("a", 9)));
    assert_eq!(grants_in(&answer), [], "another boot gets nothing");
}

#[test]
fn a_clock_that_jumps_ahead_and_back_cuts_nothing_twice() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 11, Range::RING));
    let here = it.now.wall;
    it.now.wall = here.plus(Duration::from_secs(7_200));
    it.ops(Input::Woke);
    it.now.wall = here;
    it.enter("b", 11, "orders");
    assert_eq!(published(&it.grant(grant(&me(), 11, Range::RING))), []);
    assert_eq!(grants_in(&it.beat("a", 10)), [(11, Range::RING)]);
}

#[test]
fn a_window_missing_close_to_its_start_is_fetched_once() {
    let mut it = Bench::with(&["a"]);
    it.now.wall = crate::time::Wall(649_999);
    let fetches = |ops: &[Op]| {
        let all = asked(ops).into_iter();
        all.filter(|(.., q)| matches!(q, Question::Window(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(fetches(&it.pass(0)), vec![]);
    let asked = fetches(&it.pass(1));
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1, Place::Master(Verb::Window));
    assert_eq!(fetches(&it.pass(1_000)), vec![]);
    let grants = vec![dressed(grant(&me(), 11, Range::RING))];
    let ops = it.answer(asked[0].0, Ok(Answer::Grants { grants }));
    assert_eq!(published(&ops), [(node("a"), 11, Range::RING)]);
}

#[test]
fn its_heartbeat_names_the_windows_that_it_holds() {
    let mut it = Bench::with(&["a"]);
    it.grant(grant(&me(), 10, Range::RING));
    it.grant(grant(&me(), 11, Range::RING));
    let (_, beat) = it.master_beat();
    let orders = service("orders");
    assert_eq!(
        beat.granted,
        [(orders.clone(), WindowNo(10)), (orders, WindowNo(11))]
    );
}
