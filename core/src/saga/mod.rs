//! Sagas: the words, and the machine of one transaction.
//!
//! A *saga* is the definition (code), a *transaction* is one run of it (a row). The rules are
//! `design.md` section 4; invariants FI1–FI10 and G1–G12 of `reliability.md`.

mod words;

pub use words::{
    Attempt, Class, Direction, Ending, Entry, Outcome, Payload, Position, State, Text,
};
