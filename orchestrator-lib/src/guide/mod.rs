//! How to decide what the types leave open. Read them in this order when you write your first
//! saga for production; each is short.
//!
//! 1. [`strategies`]: what a failing step leads to, and how to choose.
//! 2. [`idempotency`]: why a step is called more than once, keys, and the barrier.
//! 3. [`versions`]: changing a saga while transactions of the old one run.
//! 4. [`upgrading`]: new binaries, migrations, rolling back.

#[doc = include_str!("strategies.md")]
pub mod strategies {}

#[doc = include_str!("idempotency.md")]
pub mod idempotency {}

#[doc = include_str!("versions.md")]
pub mod versions {}

#[doc = include_str!("upgrading.md")]
pub mod upgrading {}
