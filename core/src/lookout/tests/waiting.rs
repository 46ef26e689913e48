//! What waits for a target.

use alloc::string::String;

use super::*;
use crate::id::TargetName;

fn rooms(of: &[(&str, u32)]) -> Input {
    let named = |(name, room): &(&str, u32)| (TargetName::new(name).unwrap(), *room);
    Input::Waiting(of.iter().map(named).collect())
}

fn waits(order: &Order) -> (String, u32, bool) {
    let Look::Waiting { target, ranges } = &order.rows else {
        panic!("{order:?}");
    };
    (target.clone(), order.limit, *ranges == [Range::RING])
}

/// With a part of the ring, of which nothing is due.
fn with_a_part(free: u32) -> Bench {
    let mut b = Bench::ready(free);
    let part = Range::new(0, 1_000).unwrap();
    let first = b.check(0, Input::RangesChanged(vec![part]));
    b.looked(1, &first[0], 0);
    b
}

#[test]
fn as_many_that_wait_are_taken_as_their_target_bears() {
    let mut b = with_a_part(64);
    let got = b.check(10, rooms(&[("bank", 3)]));
    assert_eq!(
        got.iter().map(waits).collect::<Vec<_>>(),
        [("bank".into(), 3, false)]
    );
    assert_eq!(b.looked(11, &got[0], 3), [], "they ask the breaker first");
    assert_eq!(b.next(), 61);
    assert_eq!(
        waits(&b.check(61, rooms(&[("bank", 50)]))[0]),
        ("bank".into(), 16, false)
    );
}

#[test]
fn where_the_own_part_has_none_that_wait_the_whole_ring_is_looked_at() {
    let mut b = with_a_part(64);
    let own = b.check(10, rooms(&[("bank", 3)]));
    b.looked(11, &own[0], 0);
    let all = b.check(61, Input::Woke);
    assert_eq!(waits(&all[0]), ("bank".into(), 3, true));
    b.looked(62, &all[0], 1);
    let more = b.check(112, Input::Woke);
    assert_eq!(waits(&more[0]), ("bank".into(), 3, true));
    b.looked(113, &more[0], 0);
    let found = |b: &mut Bench, at| {
        let orders = b.settled(at, |_| 0);
        orders
            .iter()
            .any(|o| matches!(o.rows, Look::Waiting { .. }))
    };
    assert!(!found(&mut b, 1_112), "then it rests");
    assert!(found(&mut b, 1_113));
}

#[test]
fn targets_take_turns() {
    let mut b = with_a_part(64);
    let both = [("bank", 3), ("post", 3)];
    let mut orders = b.check(10, rooms(&both));
    let mut turns = Vec::new();
    for at in [20, 30, 70, 80] {
        turns.push(waits(&orders[0]).0);
        orders = b.looked(at, &orders[0], 1);
        orders.extend(b.check(at + 50, rooms(&both)));
    }
    assert_eq!(turns, ["bank", "post", "bank", "post"]);
}
