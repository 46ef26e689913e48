//! The contract of a machine, said once.

use alloc::vec::Vec;

use crate::time::{Now, Wake};

/// Why a machine has nothing more to do; its order to stop being driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was asked to leave and has left.
    Drained,
    /// A newer boot holds its id: a binary exits 78, a library stops claiming.
    Superseded,
}

/// A state machine without I/O.
///
/// `handle(now, input, &mut out)` is total, synchronous and deterministic: it changes the machine
/// and appends orders to `out`. The caller performs the orders *in order*; an order whose answer
/// matters comes back later as an input. What needs durability first is ordered only after the
/// confirmation came in as an input. Nothing is kept for polling, so there is no drain rule to
/// forget.
///
/// `wake_at()` names the next deadlines and why. The caller hands in the machine's own "time
/// passed" input when one is reached, and at least once a second, so that steps of the wall clock
/// are seen. A spurious wake is a no-op.
pub trait Machine {
    /// Facts, named in the past tense.
    type Input;
    /// What the caller must do, named in the imperative.
    type Order;

    /// Takes one fact, appends orders.
    fn handle(&mut self, now: Now, input: Self::Input, out: &mut Vec<Self::Order>);

    /// The next deadlines, one a clock.
    fn wake_at(&self) -> Wake;
}
