//! What the world schedules: an event at a true moment, in a heap ordered by (moment, sequence).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ring_core::{
    bus::{AskError, AskId},
    registry,
    wire::Answer,
};

use crate::{actor::Fact, clock::Instant, network::Index, redis::Client};

/// Something that is going to happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// A fact reaches a process, if that start still runs.
    Reach {
        /// Whom.
        node: Index,
        /// In which start.
        start: u32,
        /// What.
        fact: Box<Fact>,
    },
    /// A process' next deadline, if it is still the one that counts.
    Wake {
        /// Whose.
        node: Index,
        /// Which.
        wake: u64,
    },
    /// The answer to a request arrives, or the time for it is over.
    Answer {
        /// Who asked.
        node: Index,
        /// In which start.
        start: u32,
        /// Which.
        ask: AskId,
        /// What.
        answer: Box<Result<Answer, AskError>>,
    },
    /// An order arrives at Redis; it is performed whether or not its sender still lives.
    Redis {
        /// Who asked.
        node: Index,
        /// In which start.
        start: u32,
        /// As Redis knows it.
        client: Client,
        /// What.
        op: registry::Op,
    },
    /// An orchestrator polls its store and compares its clock with the database's.
    Poll {
        /// Who.
        node: Index,
        /// In which start.
        start: u32,
    },
    /// The edges of the window that begins next are looked up.
    Plan,
    /// Claims are compared; `inside`: every node is inside its guards.
    Sample {
        /// Whether coverage is due, too.
        inside: bool,
    },
    /// A fault begins.
    Fault,
    /// A paused process goes on.
    Resume {
        /// Who.
        node: Index,
        /// In which start.
        start: u32,
    },
    /// A broken connection is up again.
    Relink {
        /// Whose.
        node: Index,
        /// In which start.
        start: u32,
    },
    /// A dead process starts again.
    Restart {
        /// Which.
        node: Index,
    },
    /// The bus works again.
    BusUp,
    /// All faults end.
    Heal,
    /// The run is over.
    End,
}

#[derive(Debug)]
struct Scheduled {
    at: Instant,
    sequence: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// Everything that is going to happen.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
}

impl Agenda {
    /// Schedules an event.
    pub fn at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.heap.push(Reverse(Scheduled {
            at,
            sequence,
            event,
        }));
    }

    /// Takes the next one.
    pub fn take(&mut self) -> Option<(Instant, Event)> {
        self.heap.pop().map(|Reverse(next)| (next.at, next.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_come_in_the_order_in_which_they_were_scheduled() {
        let mut agenda = Agenda::default();
        agenda.at(Instant(2), Event::End);
        agenda.at(Instant(1), Event::Heal);
        agenda.at(Instant(1), Event::BusUp);
        let order: Vec<String> = std::iter::from_fn(|| agenda.take())
            .map(|(_, e)| format!("{e:?}"))
            .collect();
        assert_eq!(order, ["Heal", "BusUp", "End"]);
    }
}
