//! Sagas: the words, and the machine of one transaction.
//!
//! A *saga* is the definition (code), a *transaction* is one run of it (a row). The rules are
//! `design.md` section 4; invariants FI1–FI10 and G1–G12 of `reliability.md`.
//!
//! | the documents' transaction | here |
//! |---|---|
//! | `Pending` | [`State::Paused`], due since its start |
//! | `Running` | [`State::Running`] and [`State::Paused`], [`Direction::Forward`] |
//! | `FAILED_WITH_RETRYABLE_ERROR` | [`State::Paused`], either direction |
//! | `Compensating` | [`State::Running`] and [`State::Paused`], [`Direction::Compensating`] |
//! | `Committed` | [`State::Completed`] |
//! | `Compensated` | [`State::Compensated`] |
//! | `Failed`, `FAILED_WITH_NON_RETRYABLE_ERROR` while compensating | [`State::Terminated`] |
//! | `TimedOut`, disabled | [`State::Disabled`] |
//! | (unknown there) | [`State::Quarantined`] |
//!
//! | the documents' step | here |
//! |---|---|
//! | `Pending`, `Running`, `Completed`, `Compensating`, `Compensated`, `Failed`, `Skipped` | the same words of [`log::Status`] |
//!
//! | the documents' failure and strategy | here |
//! |---|---|
//! | transient, business, persistent, unknown | [`Class`] |
//! | hybrid, forward first, backward first, irreversible | [`Recovery`] |

mod key;
pub mod log;
mod plan;
mod policy;
mod retry;
mod transaction;
mod words;

pub use key::IdempotencyKey;
pub use plan::{Guard, Kind, MAX_STEPS, Plan, PlanError, PlannedStep, Recovery, Repeat};
pub use retry::Retry;
pub use transaction::{Asked, Call, Hold, Input, Order, Stopped, Transaction, Unrunnable};
pub use words::{
    Attempt, Class, Direction, Ending, Entry, MAX_PAYLOAD_BYTES, MAX_TEXT_CHARS, Outcome, Payload,
    PayloadError, Position, State, Text, Wake,
};

#[cfg(test)]
mod tests;
