//! How one ring is cut.

use super::{
    super::seats::{Candidate, Plan, cut as divide},
    *,
};

fn candidate(name: &str, boot_no: u128, live: u32, sick: u32) -> Candidate {
    Candidate {
        slave: id(name),
        boot: boot(boot_no),
        live,
        sick,
    }
}

fn divided(before: Option<&Cut>, live: &[Candidate], balance: Balance, keep: bool) -> Option<Cut> {
    let orders = service("orders");
    let plan = Plan {
        service: &orders,
        window: FIRST,
        term: term(1),
        balance,
        before,
        live,
    };
    divide(plan, |_| keep)
}

fn weights(cut: Option<Cut>) -> Vec<(String, u32, SeatState)> {
    let seats = cut.map_or_else(Vec::new, |cut| cut.seats);
    let told = |s: Seat| (s.slave.to_string(), s.weight, s.state);
    seats.into_iter().map(told).collect()
}

#[test]
fn parts_are_in_proportion_and_who_has_nobody_gets_nothing() {
    let live = [
        candidate("a", 1, 3, 0),
        candidate("b", 2, 0, 0),
        candidate("c", 3, 1, 0),
    ];
    let made = divided(None, &live, Balance::Weighted, false).unwrap();
    assert_eq!(
        made,
        cut(FIRST, term(1), &[("a", 1, 3), ("b", 2, 0), ("c", 3, 1)])
    );
}

#[test]
fn the_document_s_split_is_equal_whoever_has_orchestrators() {
    let live = [candidate("a", 1, 3, 0), candidate("b", 2, 0, 0)];
    let made = divided(None, &live, Balance::Equal, false).unwrap();
    assert_eq!(made, cut(FIRST, term(1), &[("a", 1, 1), ("b", 2, 1)]));
}

#[test]
fn sick_members_lower_a_weight_only_while_another_seat_works() {
    let one_works = [candidate("a", 1, 2, 2), candidate("b", 2, 3, 1)];
    let made = divided(None, &one_works, Balance::Weighted, false).unwrap();
    assert_eq!(made, cut(FIRST, term(1), &[("a", 1, 0), ("b", 2, 2)]));
    let none_works = [candidate("a", 1, 2, 2), candidate("b", 2, 3, 3)];
    let made = divided(None, &none_works, Balance::Weighted, false).unwrap();
    assert_eq!(made, cut(FIRST, term(1), &[("a", 1, 2), ("b", 2, 3)]));
}

#[test]
fn seats_keep_their_order_and_newcomers_are_appended() {
    let before = cut(
        FIRST.previous(),
        term(1),
        &[("z", 9, 1), ("b", 2, 1), ("q", 3, 1)],
    );
    let live = [
        candidate("a", 1, 1, 0),
        candidate("q", 4, 1, 0),
        candidate("z", 9, 1, 0),
    ];
    let made = divided(Some(&before), &live, Balance::Weighted, false).unwrap();
    assert_eq!(
        made,
        cut(FIRST, term(1), &[("z", 9, 1), ("q", 4, 1), ("a", 1, 1)])
    );
}

#[test]
fn a_kept_seat_is_frozen_with_its_weight_unless_it_is_the_last() {
    let before = cut(
        FIRST.previous(),
        term(1),
        &[("a", 1, 1), ("b", 2, 1), ("c", 3, 1)],
    );
    let live = [candidate("b", 2, 1, 0), candidate("c", 3, 1, 0)];
    let made = divided(Some(&before), &live, Balance::Weighted, true).unwrap();
    assert_eq!(made.ranges(), before.ranges());
    assert_eq!(made.seats[0].state, SeatState::Frozen);
    let live = [candidate("a", 1, 1, 0), candidate("b", 2, 1, 0)];
    let made = divided(Some(&before), &live, Balance::Weighted, true).unwrap();
    assert_eq!(made, cut(FIRST, term(1), &[("a", 1, 1), ("b", 2, 1)]));
}

#[test]
fn at_most_a_third_of_the_ring_is_frozen() {
    let before = cut(
        FIRST.previous(),
        term(1),
        &[("a", 1, 1), ("b", 2, 1), ("c", 3, 1)],
    );
    let live = [candidate("c", 3, 1, 0)];
    let made = divided(Some(&before), &live, Balance::Weighted, true);
    // One of the two dead would be half of what remains: neither is kept.
    assert_eq!(weights(made), [("c".to_string(), 1, SeatState::Live)]);
    let live = [candidate("b", 2, 1, 0), candidate("c", 3, 1, 0)];
    let made = divided(Some(&before), &live, Balance::Weighted, true).unwrap();
    assert_eq!(made.seats[0].state, SeatState::Frozen);
    assert_eq!(made.ranges()[0].width(), (1 << 64) / 3 + 1);
}

#[test]
fn a_cut_that_would_serve_nobody_is_not_made() {
    assert_eq!(divided(None, &[], Balance::Weighted, false), None);
    let idle = [candidate("a", 1, 0, 0)];
    assert_eq!(divided(None, &idle, Balance::Weighted, false), None);
    let before = cut(FIRST.previous(), term(1), &[("a", 1, 1), ("b", 2, 1)]);
    assert_eq!(divided(Some(&before), &[], Balance::Weighted, true), None);
}

proptest::proptest! {
    /// RI1: whatever the counts and whoever is kept, the ring is covered once.
    #[test]
    fn every_cut_covers_the_ring_once(
        old in proptest::collection::vec(0_u32..20, 0..12),
        live in proptest::collection::vec((0_u32..20, 0_u32..20, 0_u8..16), 0..12),
    ) {
        let old: Vec<(String, u128, u32)> = old
            .iter()
            .enumerate()
            .map(|(i, w)| (alloc::format!("s-{i:02}"), 1, *w))
            .collect();
        let old: Vec<(&str, u128, u32)> = old.iter().map(|(s, b, w)| (s.as_str(), *b, *w)).collect();
        let before = cut(FIRST.previous(), term(1), &old);
        let mut live: Vec<Candidate> = live
            .iter()
            .map(|(n, sick, at)| candidate(&alloc::format!("s-{at:02}"), 2, *n, *sick.min(n)))
            .collect();
        live.sort_by(|a, b| a.slave.cmp(&b.slave));
        live.dedup_by(|a, b| a.slave == b.slave);
        if let Some(made) = divided(Some(&before), &live, Balance::Weighted, true) {
            let whole = crate::token::coverage(Range::RING, &made.ranges());
            proptest::prop_assert_eq!(whole, (vec![], vec![]));
            let frozen = made.seats.iter().filter(|s| s.state == SeatState::Frozen);
            let frozen: u128 = frozen.filter_map(|s| s.range.map(Range::width)).sum();
            proptest::prop_assert!(frozen <= (1 << 64) / 3 + 1);
        }
    }
}
