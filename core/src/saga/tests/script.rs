//! What participants answer and what becomes of their callers, call by call.

use alloc::collections::{BTreeMap, VecDeque};

use crate::saga::{Class, Direction};

/// What a participant does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Ok,
    Refused(Class),
    /// Nobody hears the answer.
    Unknown {
        /// Whether the effect happened, or happens only long after.
        applied: bool,
    },
}

/// What becomes of the process that made the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lives,
    /// It dies with the answer in hand.
    DiesBeforeTheRecord,
    /// It dies when its next write is committed, or while it waits to call again.
    DiesAfterTheRecord,
    /// It was asked to leave before the answer came.
    Drains,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) answer: Answer,
    pub(super) fate: Fate,
}

/// Turns for each action and compensation; once used up, all goes well.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(BTreeMap<(Direction, u32), VecDeque<Turn>>);

impl Script {
    pub(super) fn new(turns: impl IntoIterator<Item = (Direction, u32, Turn)>) -> Self {
        let mut script = Self::default();
        for (direction, seq, turn) in turns {
            script
                .0
                .entry((direction, seq))
                .or_default()
                .push_back(turn);
        }
        script
    }

    pub(super) fn next(&mut self, direction: Direction, seq: u32) -> Turn {
        let queue = self.0.get_mut(&(direction, seq));
        queue.and_then(VecDeque::pop_front).unwrap_or(Turn {
            answer: Answer::Ok,
            fate: Fate::Lives,
        })
    }
}
