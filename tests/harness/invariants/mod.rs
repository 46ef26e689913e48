//! What must hold, one file a property, each with its source and with tests that feed it a
//! violation made by hand.
//!
//! | property | source | when |
//! | --- | --- | --- |
//! | `disjoint` | RI5 | always while Redis and clocks keep their promises, else counted |
//! | `time_box` | RI4 | always |
//! | `issued_once` | RI2, a slave's own cuts too | as `disjoint`; a slave's own cuts always |
//! | `refinement` | RI3 | always |
//! | `monotonic` | RI6 | always |
//! | `covered` | L1, L2, L5 | some windows after the healing |
//! | `one_leader` | `design.md` section 3, "Master" | some windows after the healing |
//! | `bounded` | style rule 13 | always |

pub mod bounded;
pub mod covered;
pub mod disjoint;
pub mod issued_once;
pub mod monotonic;
pub mod one_leader;
pub mod refinement;
pub mod time_box;

use std::fmt;

use ring_core::window::WindowNo;

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which property.
    pub property: &'static str,
    /// The window concerned, when there is one.
    pub window: Option<WindowNo>,
    /// What was seen.
    pub story: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.story)?;
        match self.window {
            Some(n) => write!(f, " (window {n})"),
            None => Ok(()),
        }
    }
}
