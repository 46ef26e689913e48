//! RI5: no two orchestrators of one service may claim the same token at the same true instant
//! (`reliability.md` D.1; `design.md` section 3: strict while Redis keeps its data and answers
//! every master and clocks stay within the tolerance).

use ring_core::token::Range;

use super::Violation;

/// Checks what the orchestrators of one service may claim at one true instant; `holder` is any
/// number that tells them apart.
///
/// # Errors
/// The first overlap between two different holders.
pub fn check<H: Copy + Ord + std::fmt::Debug>(claims: &[(H, Range)]) -> Result<(), Violation> {
    let mut sorted = claims.to_vec();
    sorted.sort_unstable_by_key(|(holder, range)| (range.start(), range.end(), *holder));
    // Holding the furthest end seen, and the furthest of a different holder, finds any pair.
    let mut far: Option<(H, Range)> = None;
    let mut other: Option<(H, Range)> = None;
    for (holder, range) in sorted {
        for (their, seen) in [far, other].into_iter().flatten() {
            if their != holder && seen.overlaps(range) {
                let story = format!("{their:?} may claim {seen} while {holder:?} may {range}");
                return Err(Violation {
                    property: "disjoint",
                    window: None,
                    story,
                });
            }
        }
        match far {
            Some((their, seen)) if seen.end() >= range.end() => {
                if their != holder && other.is_none_or(|(_, o)| o.end() < range.end()) {
                    other = Some((holder, range));
                }
            }
            Some((their, seen)) => {
                if their != holder {
                    other = Some((their, seen));
                }
                far = Some((holder, range));
            }
            None => far = Some((holder, range)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> Range {
        Range::new(start, end).unwrap()
    }

    #[test]
    fn one_token_shared_by_two_is_a_violation() {
        let bad = [(1, range(0, 10)), (2, range(10, 20))];
        assert!(check(&bad).is_err());
        let hidden = [(1, range(0, 100)), (1, range(5, 6)), (2, range(50, 60))];
        assert!(check(&hidden).is_err());
        let behind = [
            (1, range(0, 100)),
            (2, range(200, 300)),
            (1, range(250, 260)),
        ];
        assert!(check(&behind).is_err());
    }

    #[test]
    fn neighbours_and_ones_own_grants_are_none() {
        let good = [(1, range(0, 10)), (1, range(5, 20)), (2, range(21, 30))];
        assert_eq!(check(&good), Ok(()));
    }

    #[test]
    fn any_small_arrangement_is_judged_as_by_comparing_all_pairs() {
        let mut rng = crate::rng::Rng::new(5);
        for _ in 0..2_000 {
            let claims: Vec<(u64, Range)> = (0..1 + rng.below(5))
                .map(|_| {
                    let start = rng.within(0, 30);
                    (rng.below(3), range(start, start + rng.within(0, 12)))
                })
                .collect();
            let pairs = claims
                .iter()
                .flat_map(|a| claims.iter().map(move |b| (a, b)));
            let overlap = pairs
                .into_iter()
                .any(|(a, b)| a.0 != b.0 && a.1.overlaps(b.1));
            assert_eq!(check(&claims).is_err(), overlap, "{claims:?}");
        }
    }
}
