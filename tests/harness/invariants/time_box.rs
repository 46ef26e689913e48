//! RI4: an orchestrator claims by a grant only between its window's guards on its own clock
//! (`reliability.md` D.1).

use ring_core::{time::Wall, timing::Timing, token::Range};

use super::Violation;

/// Checks one node's claims at one reading of its clock.
///
/// # Errors
/// Something may be claimed inside a guard.
pub fn check(timing: &Timing, wall: Wall, claims: &[Range]) -> Result<(), Violation> {
    let n = timing.window_at(wall);
    if claims.is_empty() || timing.claimable(n, wall) {
        return Ok(());
    }
    let story = format!(
        "{claims:?} may be claimed at {}, inside a guard",
        wall.rfc3339()
    );
    Err(Violation {
        property: "time_box",
        window: Some(n),
        story,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_inside_a_guard_is_a_violation() {
        let timing = Timing::default();
        assert!(check(&timing, Wall(60_500), &[Range::RING]).is_err());
        assert!(check(&timing, Wall(119_500), &[Range::RING]).is_err());
        assert_eq!(check(&timing, Wall(61_000), &[Range::RING]), Ok(()));
        assert_eq!(check(&timing, Wall(60_500), &[]), Ok(()));
    }
}
