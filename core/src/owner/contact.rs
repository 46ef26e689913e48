//! How long this process has been in unbroken contact with the store, as its judge of others.
//!
//! A database that was away could not take anybody's renewal: who comes back first must not
//! declare the rest dead. A request that failed breaks contact, and so does a database clock that
//! moved by more than a second against the own one (a suspended or restored database).

use core::time::Duration;

use crate::time::{Mono, Wall, millis_i64};

/// More than clocks of sound machines drift apart between two renewals, far less than a lease.
const MOST_DRIFT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contact {
    since: Option<Mono>,
    last: Option<Heard>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    sent_at: Mono,
    received: Mono,
    clock: Wall,
}

impl Contact {
    /// The store answered with its clock, read some time between the two moments.
    pub(super) fn heard(&mut self, sent_at: Mono, received: Mono, clock: Wall) {
        let heard = Heard {
            sent_at,
            received,
            clock,
        };
        if self.last.is_some_and(|last| !steady(last, heard)) {
            self.since = None;
        }
        self.since.get_or_insert(sent_at);
        self.last = Some(heard);
    }

    /// A request failed.
    pub(super) fn broke(&mut self) {
        *self = Self::default();
    }

    /// Whether it has lasted this long.
    pub(super) fn lasts(&self, now: Mono, long: Duration) -> bool {
        self.since.is_some_and(|since| since.plus(long) <= now)
    }
}

/// Whether the database's clock went on like the own one, as far as the two answers can tell.
fn steady(a: Heard, b: Heard) -> bool {
    let passed = b.clock.0.saturating_sub(a.clock.0);
    let least = millis_i64(b.sent_at.since(a.received));
    let most = millis_i64(b.received.since(a.sent_at));
    let drift = millis_i64(MOST_DRIFT);
    least.saturating_sub(drift) <= passed && passed <= most.saturating_add(drift)
}
