//! Sheets written by hand, and what they amount to.

use ring_core::wire::{Publication, decode};
use serde_json::{Value, json};

use super::*;

const BOOT: &str = "0193b2a0-0000-7000-8000-000000000001";

fn grant(holder: &str, start: i64, end: i64) -> GrantWire {
    let text = json!({
        "v": 1, "kind": "grant", "region": "eu-1", "cluster": "c1", "service": "orders",
        "window": 7, "starts_at": "1970-01-01T00:07:00.000Z", "ends_at": "1970-01-01T00:08:00.000Z",
        "range": {"start": start.to_string(), "end": end.to_string()},
        "term": {"number": 1, "boot": BOOT}, "holder": holder, "boot": BOOT,
        "index": 0, "members": 1,
        "parent": {"slave": "s-1", "boot": BOOT, "index": 0, "members": 1,
                   "range": {"start": i64::MIN.to_string(), "end": i64::MAX.to_string()}},
    });
    match decode(text.to_string().as_bytes()).unwrap() {
        Publication::Grant(grant) => grant,
        Publication::Probe(_) => panic!("a grant was written"),
    }
}

fn cut(seats: Value) -> CutWire {
    serde_json::from_value(json!({
        "service": "orders", "window": 7,
        "starts_at": "1970-01-01T00:07:00.000Z", "ends_at": "1970-01-01T00:08:00.000Z",
        "term": {"number": 1, "boot": BOOT}, "seats": seats,
    }))
    .unwrap()
}

fn verdict(grants: &[GrantWire], seats: Option<Value>) -> Verdict {
    let mut ledger = Ledger::default();
    for grant in grants {
        ledger.grant(grant.clone());
    }
    let example = grant("o-1", 0, 0);
    if let Some(seats) = seats {
        ledger.cut(scope(&example), cut(seats));
    }
    let ring = Ring {
        scope: scope(&example),
        service: example.service,
    };
    ledger.verdict(&ring, WindowNo(7))
}

#[test]
fn two_halves_prove_the_window_however_often_they_come() {
    let halves = [
        grant("o-1", i64::MIN, -1),
        grant("o-2", 0, i64::MAX),
        grant("o-2", 0, i64::MAX),
    ];
    assert!(verdict(&halves, None).holds(true));
}

#[test]
fn a_missing_half_is_a_gap() {
    let verdict = verdict(&[grant("o-1", i64::MIN, -1)], None);
    assert_eq!(verdict.gaps, vec![Range::new(0, i64::MAX).unwrap()]);
    assert!(!verdict.holds(false));
}

#[test]
fn a_declared_gap_fails_only_when_strict() {
    let frozen = json!([{"slave": "s-2", "boot": BOOT, "weight": 1, "state": "frozen",
        "range": {"start": "0", "end": i64::MAX.to_string()}}]);
    let verdict = verdict(&[grant("o-1", i64::MIN, -1)], Some(frozen));
    assert!(verdict.holds(false));
    assert!(!verdict.holds(true));
}

#[test]
fn a_seat_declared_after_the_cut_is_a_declared_gap() {
    let mut ledger = Ledger::default();
    let half = grant("o-1", i64::MIN, -1);
    let ring = Ring {
        scope: scope(&half),
        service: half.service.clone(),
    };
    ledger.grant(half);
    let (slave, seat) = (
        NodeId::new("s-2").unwrap(),
        Range::new(0, i64::MAX).unwrap(),
    );
    ledger.frozen(ring.clone(), WindowNo(7), slave, seat);
    let verdict = ledger.verdict(&ring, WindowNo(7));
    assert!(verdict.holds(false), "{verdict:?}");
    assert!(!verdict.holds(true));
}

#[test]
fn a_part_granted_twice_is_an_overlap() {
    let verdict = verdict(
        &[grant("o-1", i64::MIN, 9), grant("o-2", 0, i64::MAX)],
        None,
    );
    assert_eq!(verdict.overlaps, vec![Range::new(0, 9).unwrap()]);
    assert!(!verdict.holds(false));
}

#[test]
fn a_grant_that_comes_again_with_another_range_is_a_change() {
    let grants = [grant("o-1", i64::MIN, i64::MAX), grant("o-1", i64::MIN, 5)];
    assert_eq!(verdict(&grants, None).changed, 1);
}
