//! The machine of one transaction.
