//! Decides everything, does nothing: the ring's and the saga's words and machines (no_std).
#![no_std]
extern crate alloc;
