//! How many calls a target gets: what operators may set. Knows no target by name.

use ring_core::breaker::Limits;
use serde::Deserialize;

/// How what [targets](crate::Step::target) bear is kept to, by this process, for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Targets {
    /// Most calls under way. Default three quarters of the capacity, so that a target that hangs
    /// leaves room for what does not call it.
    pub concurrency: Option<u32>,
    /// Most calls begun in a second while what waited for a target goes on. Default 1,000.
    pub drain_per_second: u32,
}

impl Targets {
    /// What must be above zero, by its name.
    pub(super) fn numbers(self) -> [(&'static str, usize); 2] {
        [
            ("targets.concurrency", self.concurrency.map_or(1, widened)),
            ("targets.drain_per_second", widened(self.drain_per_second)),
        ]
    }

    pub(crate) fn limits(self, capacity: usize) -> Limits {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        let default = Limits::for_capacity(capacity);
        Limits {
            concurrency: self.concurrency.unwrap_or(default.concurrency),
            drain_per_second: self.drain_per_second,
            ..default
        }
    }
}

impl Default for Targets {
    fn default() -> Self {
        Self {
            concurrency: None,
            drain_per_second: Limits::default().drain_per_second,
        }
    }
}

fn widened(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
