//! How the store answered: rests after failures, and what heartbeats tell of it.

use core::time::Duration;

use crate::{
    chance,
    store::Backlog,
    time::{Mono, millis_u64},
    wire::Health,
};

/// After a look that failed, nothing is looked for this long, doubling …
const REST: Duration = Duration::from_millis(200);
/// … up to this: the overdue bound of 10 s keeps its meaning after an outage.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// So many failures in a row make a node sick: one is a hiccup, two a coincidence.
const SICK_AFTER: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pulse {
    /// When a look was last answered.
    answered: Option<Mono>,
    backlog: Backlog,
    failures: u32,
    rest_until: Mono,
    /// Since when nothing may start.
    idle_since: Option<Mono>,
}

impl Pulse {
    pub(super) fn answered(&mut self, now: Mono, own: bool, backlog: Option<Backlog>) {
        self.answered = Some(now);
        self.failures = 0;
        self.rest_until = Mono::default();
        if let Some(backlog) = backlog.filter(|_| own) {
            self.backlog = backlog;
        }
    }

    pub(super) fn failed(&mut self, now: Mono, seed: u64) {
        self.failures = self.failures.saturating_add(1);
        let rest = chance::pause(seed, self.failures, REST, LONGEST_REST, chance::FLOOR);
        self.rest_until = now.plus(rest);
    }

    /// Whether anything may start now.
    pub(super) fn may_start(&mut self, now: Mono, may: bool) {
        self.idle_since = (!may).then(|| self.idle_since.unwrap_or(now));
    }

    pub(super) fn resting(&self, now: Mono) -> bool {
        now < self.rest_until
    }

    pub(super) fn no_sooner(&self, at: Mono) -> Mono {
        at.max(self.rest_until)
    }

    /// A node that could start nothing for a whole lease is as sick as one whose looks fail: it
    /// looks no more, so that failures alone would not show it.
    pub(super) fn health(&self, now: Mono, lease: Duration) -> Health {
        let idle = self.idle_since.is_some_and(|at| at.plus(lease) <= now);
        Health {
            polled_ms: self.answered.map(|at| millis_u64(now.since(at))),
            backlog: self.backlog.due,
            oldest_due_ms: millis_u64(self.backlog.oldest),
            sick: idle || self.failures >= SICK_AFTER,
        }
    }
}
