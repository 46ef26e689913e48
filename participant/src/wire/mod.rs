//! What coordinators and participants say to each other, and what each answer means.
//!
//! Decides the JSON, the headers and, in [`mod@meaning`], how every reply that can come is read. Knows
//! no transport and no retry.

mod answer;
mod meaning;
mod order;
mod text;

pub use answer::Answer;
pub use meaning::{Meaning, Reply, Word, meaning};
pub use order::{
    ATTEMPT, IDEMPOTENCY_KEY, MAX_BODY_BYTES, MAX_PAYLOAD_BYTES, Order, REPLAYED, path,
};
pub use text::excerpt;
