//! L1, L2, L5: some windows after the healing, every token of every service with a live
//! orchestrator may be claimed by somebody inside the guards, and it stays so (`reliability.md`
//! D.4; `design.md` section 3: an undeclared gap is a failure, a frozen seat is a declared one).

use ring_core::{
    token::{Range, coverage},
    window::WindowNo,
};

use super::Violation;

/// Checks one service at one true instant at which every node is inside its guards.
///
/// # Errors
/// A part of the ring that nobody may claim and no frozen seat explains.
pub fn check(
    service: &str,
    window: WindowNo,
    claims: &[Range],
    frozen: &[Range],
) -> Result<(), Violation> {
    let known: Vec<Range> = claims.iter().chain(frozen).copied().collect();
    let (gaps, _) = coverage(Range::RING, &known);
    if gaps.is_empty() {
        return Ok(());
    }
    let ppm: u32 = gaps.iter().map(|gap| gap.ppm()).sum();
    let story = format!("nobody looks after {ppm} ppm of {service}: {gaps:?}");
    Err(Violation {
        property: "covered",
        window: Some(window),
        story,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_violation_unless_a_frozen_seat_declares_it() {
        let parts: Vec<Range> = Range::RING.split(3).into_iter().flatten().collect();
        let n = WindowNo(7);
        assert_eq!(check("s", n, &parts, &[]), Ok(()));
        assert!(check("s", n, &parts[..2], &[]).is_err());
        assert_eq!(check("s", n, &parts[..2], &parts[2..]), Ok(()));
        assert!(check("s", n, &[], &[]).is_err());
    }
}
