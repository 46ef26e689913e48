//! What goes wrong in a run: outcomes instead of calls, and one fault of the world.

use std::collections::BTreeMap;

use ring_core::saga::Outcome;

use super::Queue;

/// Outcomes that are given instead of calls, by call.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(BTreeMap<String, Queue>);

/// What goes wrong in one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// Every call is made twice, and the second answer counts.
    pub(super) twice: bool,
    /// The process dies at this write, from 1.
    pub(super) death: Option<(u32, Moment)>,
    /// The first call of this kind is made, and its answer lost.
    pub(super) lost: Option<String>,
    /// The first call of this kind gets no answer, and arrives when everything is over.
    pub(super) late: Option<String>,
}

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// The write never reached the store.
    Before,
    /// The write is stored, and nobody heard.
    After,
}

impl Script {
    pub(super) fn push(&mut self, call: &str, outcome: Outcome) {
        self.0
            .entry(call.to_owned())
            .or_default()
            .push_back(outcome);
    }

    /// The calls that it has answers for.
    pub(super) fn calls(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Gives an outcome again that nobody recorded.
    pub(super) fn again(&mut self, call: &str, outcome: Outcome) {
        self.0
            .entry(call.to_owned())
            .or_default()
            .push_front(outcome);
    }

    pub(super) fn next(&mut self, call: &str) -> Option<Outcome> {
        self.0.get_mut(call)?.pop_front()
    }
}
