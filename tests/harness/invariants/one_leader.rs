//! Some windows after the healing exactly one master serves the master's endpoints (`design.md`
//! section 3, "Master": one leader a region and cluster, hot standbys).

use super::Violation;

/// Checks who leads at one true instant.
///
/// # Errors
/// Nobody leads, or several do.
pub fn check<H: std::fmt::Debug>(leaders: &[H]) -> Result<(), Violation> {
    if leaders.len() == 1 {
        return Ok(());
    }
    let story = format!("{} masters lead: {leaders:?}", leaders.len());
    Err(Violation {
        property: "one_leader",
        window: None,
        story,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_and_two_are_violations() {
        assert_eq!(check(&["m-0"]), Ok(()));
        assert!(check::<&str>(&[]).is_err());
        assert!(check(&["m-0", "m-1"]).is_err());
    }
}
