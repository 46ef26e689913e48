//! After a full page.

use super::*;

#[test]
fn after_a_full_page_a_look_waits_a_moment_for_places_that_come_free() {
    let mut b = Bench::ready(64);
    let first = b.ranges(100);
    let slots = |free| Input::Slots { free, total: 64 };
    b.check(110, slots(0));
    assert_eq!(b.looked(110, &first[0], 64), []);
    assert_eq!(b.check(111, slots(1)), [], "a look for one costs as much");
    assert_eq!(b.next(), 120);
    let got = b.check(115, slots(16));
    assert_eq!(got.iter().map(|o| o.limit).collect::<Vec<_>>(), [16]);
    assert_eq!(b.looked(116, &got[0], 16), []);
    b.check(116, slots(2));
    let got = b.check(126, Input::Woke);
    assert_eq!(got.iter().map(|o| o.limit).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_full_page_of_the_safety_net_is_followed_by_its_own_kind_alone() {
    let mut b = Bench::ready(64);
    let orders = b.check(b.next(), Input::Woke);
    let overdue = |o: &&Order| matches!(o.rows, Look::Overdue { .. }) && !o.suspects;
    let full = orders.iter().find(overdue).unwrap().clone();
    let at = 1_500;
    for order in orders.iter().filter(|o| o.look != full.look) {
        assert_eq!(b.looked(at, order, 0), []);
    }
    let more = b.looked(at, &full, full.limit);
    assert_eq!(more.len(), 1);
    assert!(more.iter().all(|o| overdue(&o)));
}
