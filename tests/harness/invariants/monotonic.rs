//! RI6: the terms that a node accepts and the windows by which it acts never go back within one
//! boot (`reliability.md` D.1).

use std::collections::BTreeMap;

use ring_core::{
    id::BootId,
    window::{Term, WindowNo},
};

use super::Violation;

/// The highest seen of each boot.
#[derive(Debug, Default)]
pub struct Monotonic {
    terms: BTreeMap<BootId, u64>,
    acted: BTreeMap<BootId, WindowNo>,
}

impl Monotonic {
    /// A slave said which term is the highest that it has heard.
    ///
    /// # Errors
    /// It named a higher one before.
    pub fn accepted(&mut self, boot: BootId, term: Term) -> Result<(), Violation> {
        let known = self.terms.entry(boot).or_default();
        if term.number < *known {
            let story = format!("{boot} went from term {known} back to {term}");
            return Err(Violation {
                property: "monotonic",
                window: None,
                story,
            });
        }
        *known = term.number;
        Ok(())
    }

    /// An orchestrator may claim by its grants for this window.
    ///
    /// # Errors
    /// It acted in a later window before.
    pub fn acted(&mut self, boot: BootId, window: WindowNo) -> Result<(), Violation> {
        let known = self.acted.entry(boot).or_default();
        if window < *known {
            let story = format!("{boot} acted in window {known} and acts in {window} now");
            return Err(Violation {
                property: "monotonic",
                window: Some(window),
                story,
            });
        }
        *known = window;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_is_a_violation() {
        let mut seen = Monotonic::default();
        let boot = BootId(uuid::Uuid::from_u128(1));
        let term = |number| Term { number, boot };
        assert_eq!(seen.accepted(boot, term(3)), Ok(()));
        assert_eq!(seen.accepted(boot, term(3)), Ok(()));
        assert!(seen.accepted(boot, term(2)).is_err());
        assert_eq!(seen.acted(boot, WindowNo(9)), Ok(()));
        assert!(seen.acted(boot, WindowNo(8)).is_err());
    }

    #[test]
    fn another_boot_starts_anew() {
        let mut seen = Monotonic::default();
        let boots = [1, 2].map(|n| BootId(uuid::Uuid::from_u128(n)));
        assert_eq!(seen.acted(boots[0], WindowNo(9)), Ok(()));
        assert_eq!(seen.acted(boots[1], WindowNo(8)), Ok(()));
    }
}
