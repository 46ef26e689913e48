//! A store with one row that keeps `store::Write`'s rules, participants behind the barrier, and
//! processes that die, drain and send twice.

use alloc::{collections::BTreeSet, sync::Arc, vec, vec::Vec};
use core::time::Duration;

use uuid::Uuid;

use super::{
    bench::{claim, forward, json},
    script::{Answer, Fate, Script, Turn},
};
use crate::{
    chance::mixed,
    id::Nonce,
    machine::Machine,
    saga::{
        Call, Class, Direction, Entry, Input, Order, Outcome, Payload, Plan, Position, State,
        Stopped, Text, Transaction, log::Log,
    },
    store::{Claimed, Fence, Taken, To, Write, Written},
    time::{Mono, Now, Wall},
};

/// Effects at the participants. A compensation of what never happened is accepted and remembered,
/// an action after its compensation is blocked; a repeat is answered from memory.
#[derive(Debug, Default)]
pub(super) struct Participants {
    pub(super) acted: BTreeSet<u32>,
    pub(super) undone: BTreeSet<u32>,
    /// Actions whose effect was really taken back.
    pub(super) reverted: BTreeSet<u32>,
    pub(super) blocked: u32,
    late: Vec<Position>,
}

impl Participants {
    fn apply(&mut self, at: Position) {
        match at.direction {
            Direction::Forward if self.undone.contains(&at.seq) => self.blocked += 1,
            Direction::Forward => {
                self.acted.insert(at.seq);
            }
            Direction::Compensating => {
                if self.undone.insert(at.seq) && self.acted.contains(&at.seq) {
                    self.reverted.insert(at.seq);
                }
            }
        }
    }

    fn called(&mut self, call: &Call, answer: Answer) -> Outcome {
        let at = call.position;
        let known = match at.direction {
            Direction::Forward => self.acted.contains(&at.seq),
            Direction::Compensating => self.undone.contains(&at.seq),
        };
        let class = match answer {
            Answer::Unknown { applied } => {
                if applied {
                    self.apply(at);
                } else {
                    self.late.push(at);
                }
                Class::Unknown
            }
            Answer::Refused(class) if !known => class,
            Answer::Ok | Answer::Refused(_) => {
                self.apply(at);
                return Outcome::Done(result(at));
            }
        };
        Outcome::Failed {
            class,
            error: Text::new("scripted"),
            retry_after: None,
        }
    }

    /// Every call that was still under way arrives, twice.
    pub(super) fn late_calls_arrive(&mut self) {
        for at in core::mem::take(&mut self.late) {
            self.apply(at);
            self.apply(at);
        }
    }
}

pub(super) fn result(at: Position) -> Payload {
    json(match at.direction {
        Direction::Forward => "1",
        Direction::Compensating => "null",
    })
}

/// The row.
#[derive(Debug)]
struct Row {
    at: Position,
    doubt: bool,
    attempts: u32,
    wake_seq: u64,
    epoch: u64,
    nonce: Option<Nonce>,
    last: Option<u32>,
    orphaned: bool,
    log: Vec<Entry>,
    state: State,
}

/// What a run that never meets proves nothing about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    already: u32,
    woken: u32,
    zombies: u32,
    orphans: u32,
    handed_back: u32,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.already += other.already;
        self.woken += other.woken;
        self.zombies += other.zombies;
        self.orphans += other.orphans;
        self.handed_back += other.handed_back;
    }

    pub(super) fn each_at_least(self, n: u32) -> bool {
        let all = [
            self.already,
            self.woken,
            self.zombies,
            self.orphans,
            self.handed_back,
        ];
        all.iter().all(|seen| *seen >= n)
    }
}

pub(super) struct World {
    pub(super) participants: Participants,
    /// Accepted successes and passes, in order.
    pub(super) accepted: Vec<Entry>,
    pub(super) calls: u32,
    pub(super) seen: Seen,
    plan: Arc<Plan>,
    script: Script,
    row: Row,
    now: Now,
    seed: u64,
    draws: u64,
    /// Writes of processes that died, sent once more after the next claim.
    zombies: Vec<Write>,
}

impl World {
    pub(super) fn new(plan: Plan, script: Script, seed: u64) -> Self {
        Self {
            participants: Participants::default(),
            accepted: vec![],
            calls: 0,
            seen: Seen::default(),
            plan: Arc::new(plan),
            script,
            row: Row {
                at: forward(0),
                doubt: false,
                attempts: 0,
                wake_seq: 0,
                epoch: 0,
                nonce: None,
                last: None,
                orphaned: false,
                log: vec![],
                state: State::Paused,
            },
            now: Now::default(),
            seed,
            draws: 0,
            zombies: vec![],
        }
    }

    /// Claims and runs until it is settled.
    pub(super) fn run(&mut self) -> State {
        for _ in 0..500 {
            if self.row.state.is_settled() {
                return self.row.state;
            }
            let tx = self.claimed();
            for zombie in core::mem::take(&mut self.zombies) {
                assert_eq!(self.perform(&zombie), Written::Lost, "a zombie wrote");
                self.seen.zombies += 1;
            }
            self.live(tx);
        }
        panic!("it does not end: {:?}", self.row);
    }

    pub(super) fn history(&self) -> Log {
        Log::history(&self.row.log).unwrap()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.draws += 1;
        mixed(self.seed, self.draws) % 100 < percent
    }

    fn claimed(&mut self) -> Transaction {
        let row = &mut self.row;
        row.epoch += 1;
        let nonce = Nonce(Uuid::from_u128(u128::from(row.epoch)));
        let orphaned = core::mem::take(&mut row.orphaned);
        (row.nonce, row.last, row.state) = (Some(nonce), None, State::Running);
        let claimed = Claimed {
            fence: Fence {
                epoch: row.epoch,
                nonce,
            },
            position: row.at,
            doubt: row.doubt,
            attempts: row.attempts,
            wake_seq: row.wake_seq,
            expires_at: Wall(i64::MAX),
            taken: if orphaned {
                Taken::Orphaned
            } else {
                Taken::Due
            },
            log: row.log.clone(),
            ..claim()
        };
        Transaction::new(Some(Arc::clone(&self.plan)), claimed)
    }

    /// One process runs it until it stops or dies.
    fn live(&mut self, mut tx: Transaction) {
        let mut orders = vec![];
        let (mut dies, mut unanswered) = (false, false);
        tx.handle(self.now, Input::Claimed, &mut orders);
        loop {
            if orders.is_empty() {
                if dies && !unanswered {
                    return self.died();
                }
                let (at, _) = tx.wake_at().mono.expect("neither order nor deadline");
                self.now.mono = self.now.mono.max(at);
                tx.handle(self.now, Input::Woke, &mut orders);
                continue;
            }
            match orders.remove(0) {
                Order::Call(call) => {
                    if dies {
                        return self.died();
                    }
                    let Turn { answer, fate } =
                        self.script.next(call.position.direction, call.position.seq);
                    self.calls += 1;
                    let outcome = self.participants.called(&call, answer);
                    let call = call.call;
                    if fate == Fate::Drains {
                        tx.handle(self.now, Input::Drained, &mut orders);
                    }
                    tx.handle(self.now, Input::Returned { call, outcome }, &mut orders);
                    if fate == Fate::DiesBeforeTheRecord {
                        let unsent = |o: Order| match o {
                            Order::Write(write) => Some(write),
                            Order::Call(_)
                            | Order::Hear
                            | Order::Abandon { .. }
                            | Order::Stop(_) => None,
                        };
                        self.zombies.extend(orders.into_iter().filter_map(unsent));
                        return self.died();
                    }
                    dies = fate == Fate::DiesAfterTheRecord;
                }
                Order::Write(write) => {
                    let input = self.sent(&write);
                    unanswered = matches!(input, Input::Unreachable { .. });
                    tx.handle(self.now, input, &mut orders);
                    if self.row.nonce.is_some() {
                        self.same_history(&tx);
                    }
                }
                Order::Stop(why) => {
                    assert!(
                        !matches!(why, Stopped::Lost | Stopped::Unrunnable(_)),
                        "{why:?}"
                    );
                    return;
                }
                Order::Hear => {
                    let wake_seq = self.row.wake_seq;
                    let wakes = vec![];
                    tx.handle(self.now, Input::Heard { wake_seq, wakes }, &mut orders);
                }
                Order::Abandon { .. } => panic!("nothing was open"),
            }
        }
    }

    fn died(&mut self) {
        self.row.orphaned = true;
        self.seen.orphans += 1;
    }

    /// Recovery is replay: what the store holds rebuilds what the machine knows.
    fn same_history(&self, tx: &Transaction) {
        if self.row.at == tx.log().at() {
            let stored = Log::replay(&self.plan, &self.row.log, self.row.at).unwrap();
            assert_eq!(&stored, tx.log());
        }
    }

    /// The network to the store: a request or an answer is lost, or a request comes twice.
    fn sent(&mut self, write: &Write) -> Input {
        let number = write.number;
        if self.chance(15) {
            self.row.wake_seq += 1;
        }
        if self.chance(15) {
            return Input::Unreachable { number };
        }
        let answer = self.perform(write);
        if self.chance(15) {
            return Input::Unreachable { number };
        }
        if self.chance(15) && matches!(answer, Written::Done { .. }) {
            let again = self.perform(write);
            assert!(matches!(again, Written::Already { .. }), "{again:?}");
        }
        Input::Written { number, answer }
    }

    fn perform(&mut self, write: &Write) -> Written {
        let row = &mut self.row;
        let wake_seq = row.wake_seq;
        if row.epoch != write.fence.epoch {
            return Written::Lost;
        }
        if row.last == Some(write.number) {
            self.seen.already += 1;
            return Written::Already { wake_seq };
        }
        if row.nonce != Some(write.fence.nonce) || row.at != write.from {
            return Written::Lost;
        }
        let stays = matches!(write.to, To::Next(_) | To::Stay | To::HandBack { .. });
        if !stays && write.wake_seq != wake_seq {
            self.seen.woken += 1;
            return Written::Woken { wake_seq };
        }
        row.last = Some(write.number);
        if let Some(entry) = &write.entry {
            row.log.retain(|e| e.position != entry.position);
            row.log.push(entry.clone());
            self.accepted.push(entry.clone());
        }
        match &write.to {
            To::Next(to) => (row.at, row.attempts, row.doubt) = (*to, 0, false),
            To::Stay => {}
            To::Park {
                attempts, doubt, ..
            } => {
                (row.attempts, row.doubt) = (*attempts, *doubt);
                (row.nonce, row.state) = (None, State::Paused);
            }
            To::HandBack { attempts, doubt } => {
                self.seen.handed_back += 1;
                (row.attempts, row.doubt) = (*attempts, *doubt);
                (row.nonce, row.state) = (None, State::Paused);
            }
            To::Settle { ending, .. } => (row.nonce, row.state) = (None, ending.state()),
        }
        self.now.mono = self.now.mono.plus(Duration::from_millis(1)).max(Mono(1));
        Written::Done { wake_seq }
    }
}
