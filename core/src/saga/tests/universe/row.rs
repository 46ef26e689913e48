//! The store's one row, by the rules of `store::Write`.

use alloc::{collections::BTreeSet, sync::Arc, vec, vec::Vec};
use core::time::Duration;

use uuid::Uuid;

use crate::{
    id::Nonce,
    saga::{
        Attempt, Direction, Entry, Plan, Position, State, Transaction, Wake,
        tests::bench::{claim, forward},
    },
    store::{Claimed, Fence, Taken, To, Write, Written},
    time::{Wall, millis_u64},
};

#[derive(Debug)]
pub(super) struct Row {
    pub(super) at: Position,
    pub(super) state: State,
    pub(super) log: Vec<Entry>,
    pub(super) wakes: Vec<Wake>,
    pub(super) wake_seq: u64,
    /// When it may be claimed; none while it is owned by a living process.
    pub(super) due: Option<u64>,
    pub(super) orphaned: bool,
    pub(super) epoch: u64,
    doubt: bool,
    attempts: u32,
    nonce: Option<Nonce>,
    last: u32,
    opened_at: u64,
    progressed_at: u64,
    succeeded: BTreeSet<Position>,
}

fn wall(ms: u64) -> Wall {
    Wall(i64::try_from(ms).unwrap())
}

impl Row {
    pub(super) fn new() -> Self {
        Self {
            at: forward(0),
            state: State::Paused,
            log: vec![],
            wakes: vec![],
            wake_seq: 0,
            due: Some(0),
            orphaned: false,
            epoch: 0,
            doubt: false,
            attempts: 0,
            nonce: None,
            last: 0,
            opened_at: 0,
            progressed_at: 0,
            succeeded: BTreeSet::new(),
        }
    }

    pub(super) fn claim(&mut self, now: u64) -> Claimed {
        self.epoch += 1;
        let nonce = Nonce(Uuid::from_u128(u128::from(self.epoch)));
        let orphaned = core::mem::take(&mut self.orphaned);
        self.doubt |= orphaned;
        (self.nonce, self.last, self.due) = (Some(nonce), 0, None);
        self.state = State::Running;
        Claimed {
            fence: Fence {
                epoch: self.epoch,
                nonce,
            },
            position: self.at,
            doubt: self.doubt,
            attempts: self.attempts,
            wake_seq: self.wake_seq,
            wakes: self.wakes.clone(),
            created_at: wall(0),
            expires_at: Wall(i64::MAX),
            opened_at: wall(self.opened_at),
            progressed_at: wall(self.progressed_at),
            claimed_at: wall(now),
            taken: if orphaned {
                Taken::Orphaned
            } else {
                Taken::Due
            },
            log: self.log.clone(),
            ..claim()
        }
    }

    /// An operator puts it back: direction, place and doubt are kept.
    pub(super) fn restore(&mut self, now: u64) {
        (self.state, self.due, self.attempts) = (State::Paused, Some(now), 0);
        self.epoch += 1;
    }

    /// Whether the row says that what is open is in doubt.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt
    }

    pub(super) fn machine(&mut self, plan: &Arc<Plan>, claimed: Claimed) -> Transaction {
        Transaction::new(Some(Arc::clone(plan)), claimed)
    }

    /// A wake-up is kept and counted; what is parked becomes due.
    pub(super) fn wake(&mut self, now: u64, wake: Wake) {
        if self.state.is_settled() {
            return;
        }
        self.wakes.push(wake);
        self.wake_seq += 1;
        if self.state == State::Paused {
            self.due = Some(now);
        }
    }

    pub(super) fn perform(&mut self, now: u64, write: &Write) -> Written {
        let wake_seq = self.wake_seq;
        if self.nonce == Some(write.fence.nonce) && self.last == write.number {
            return Written::Already { wake_seq };
        }
        let owned = self.epoch == write.fence.epoch
            && self.nonce == Some(write.fence.nonce)
            && self.state == State::Running;
        if !owned || self.at != write.from || self.last > write.number {
            return Written::Lost;
        }
        let asks = matches!(write.to, To::Park { .. } | To::Settle { .. });
        if asks && write.wake_seq != wake_seq {
            return Written::Woken { wake_seq };
        }
        self.last = write.number;
        if let Some(entry) = &write.entry {
            self.recorded(entry);
        }
        self.moved(now, &write.to);
        Written::Done { wake_seq }
    }

    fn moved(&mut self, now: u64, to: &To) {
        match to {
            To::Next(next) => {
                assert!(
                    next.direction >= self.at.direction,
                    "G3: it goes forward again"
                );
                (self.at, self.attempts, self.doubt) = (*next, 0, false);
                (self.opened_at, self.progressed_at) = (now, now);
            }
            To::Stay => {}
            To::Park {
                after,
                attempts,
                doubt,
                ..
            } => {
                let after = millis_u64((*after).min(Duration::from_secs(86_400)));
                (self.attempts, self.doubt) = (*attempts, *doubt);
                (self.state, self.due) = (State::Paused, Some(now + after));
            }
            To::HandBack { attempts, doubt } => {
                (self.attempts, self.doubt) = (*attempts, *doubt);
                (self.state, self.due) = (State::Paused, Some(now));
                self.epoch += 1;
            }
            To::Settle { ending, .. } => {
                (self.state, self.due) = (ending.state(), None);
            }
        }
    }

    /// FI3, G2: one success of each, and compensations end strictly downwards.
    fn recorded(&mut self, entry: &Entry) {
        let at = entry.position;
        if !matches!(entry.attempt, Attempt::Paused { .. }) {
            let ended = matches!(entry.attempt, Attempt::Done(_) | Attempt::Skipped);
            if ended {
                assert!(self.succeeded.insert(at), "FI3: {at:?} succeeded twice");
            }
            let lower = |p: &Position| p.direction == Direction::Compensating && p.seq < at.seq;
            let back = at.direction == Direction::Compensating;
            assert!(
                !back || !self.succeeded.iter().any(lower),
                "G2: {at:?} after one below it"
            );
        }
        self.log.retain(|e| e.position != at);
        self.log.push(entry.clone());
    }
}
