//! Splits and tokens against vectors made by independent implementations.

use alloc::{string::String, vec, vec::Vec};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn number(value: &Value) -> i64 {
    value.as_str().unwrap().parse().unwrap()
}

fn ranges(value: &Value) -> Vec<Option<Range>> {
    let one = |r: &Value| {
        r.as_array()
            .map(|ends| Range::new(number(&ends[0]), number(&ends[1])).unwrap())
    };
    value.as_array().unwrap().iter().map(one).collect()
}

fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

#[test]
fn equal_splits_are_exactly_the_vectors() {
    for case in cases(include_str!("../../../tests/vectors/ring_splits.json")) {
        let whole = Range::new(number(&case["start"]), number(&case["end"])).unwrap();
        let parts = usize::try_from(case["parts"].as_u64().unwrap()).unwrap();
        assert_eq!(
            whole.split(parts),
            ranges(&case["ranges"]),
            "{whole} in {parts}"
        );
    }
}

#[test]
fn weighted_splits_are_exactly_the_vectors() {
    for case in cases(include_str!("../../../tests/vectors/weighted_splits.json")) {
        let whole = Range::new(number(&case["start"]), number(&case["end"])).unwrap();
        let weights: Vec<u32> = serde_json::from_value(case["weights"].clone()).unwrap();
        assert_eq!(
            whole.split_weighted(&weights),
            ranges(&case["ranges"]),
            "{weights:?}"
        );
    }
}

#[test]
fn slots_run_from_0_to_1023_over_the_ring() {
    assert_eq!(Token(i64::MIN).slot(), Slot(0));
    assert_eq!(Token(-1).slot(), Slot(511));
    assert_eq!(Token(0).slot(), Slot(512));
    assert_eq!(Token(i64::MAX).slot(), Slot(1023));
}

#[test]
fn a_range_that_ends_before_it_starts_is_refused() {
    let said = Range::new(3, 2).unwrap_err();
    assert_eq!(
        alloc::format!("{said}"),
        "a range must not end (2) before it starts (3)"
    );
}

#[test]
fn coverage_names_gaps_and_overlaps() {
    let r = |a, b| Range::new(a, b).unwrap();
    let whole = r(0, 100);
    assert_eq!(coverage(whole, &[r(0, 50), r(51, 100)]), (vec![], vec![]));
    assert_eq!(
        coverage(whole, &[r(10, 50), r(40, 90)]),
        (vec![r(0, 9), r(91, 100)], vec![r(40, 50)])
    );
    assert_eq!(coverage(Range::RING, &[]), (vec![Range::RING], vec![]));
    let (gaps, _) = coverage(Range::RING, &[r(i64::MIN, i64::MAX - 1)]);
    assert_eq!(gaps, vec![r(i64::MAX, i64::MAX)]);
}

proptest! {
    #[test]
    fn any_weighted_split_covers_its_range_without_gap_or_overlap(
        a: i64, b: i64, weights in prop::collection::vec(0u32..5, 1..40),
    ) {
        let whole = Range::new(a.min(b), a.max(b)).unwrap();
        let parts = whole.split_weighted(&weights);
        prop_assert_eq!(parts.len(), weights.len());
        let pieces: Vec<Range> = parts.iter().copied().flatten().collect();
        if weights.iter().all(|w| *w == 0) {
            prop_assert!(pieces.is_empty());
        } else {
            prop_assert_eq!(coverage(whole, &pieces), (vec![], vec![]));
        }
        for (part, weight) in parts.iter().zip(&weights) {
            prop_assert!(part.is_none() || *weight > 0);
        }
    }

    #[test]
    fn a_token_lies_in_the_slots_of_its_range(token: i64, a: i64, b: i64) {
        let range = Range::new(a.min(b), a.max(b)).unwrap();
        if range.contains(Token(token)) {
            let (first, last) = range.slots();
            prop_assert!((first..=last).contains(&Token(token).slot()));
        }
    }
}

#[test]
fn murmur3_gives_the_tokens_of_the_vectors() {
    let mut rows =
        csv::Reader::from_reader(&include_bytes!("../../../tests/vectors/tokens.csv")[..]);
    let mut seen = 0;
    for row in rows.deserialize::<(String, i64)>() {
        let (id, token) = row.unwrap();
        let id: uuid::Uuid = id.parse().unwrap();
        let hash = murmur3::murmur3_x64_128(&mut &id.as_bytes()[..], 0).unwrap();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low 64 bits are the token"
        )]
        let low = hash as u64;
        assert_eq!(low.cast_signed(), token, "{id}");
        seen += 1;
    }
    assert!(seen > 50, "only {seen} vectors were read");
}
