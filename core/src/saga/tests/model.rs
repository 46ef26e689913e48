//! The reference model: what a script of answers and deaths must lead to, without writes, claims
//! or machines. It is short so that it can be read against `design.md` section 4.

use alloc::{collections::BTreeSet, vec::Vec};

use super::script::{Answer, Fate, Script};
use crate::saga::{Class, Direction, PlannedStep, Recovery, State};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) state: State,
    /// Actions that happened at once.
    pub(super) acted: BTreeSet<u32>,
    /// Compensations that answered "done".
    pub(super) undone: BTreeSet<u32>,
    pub(super) calls: u32,
}

/// One action or compensation until it has an end.
enum End {
    Done,
    Failed { doubt: bool },
    Stuck,
}

struct Model<'a> {
    plan: &'a [PlannedStep],
    script: Script,
    acted: BTreeSet<u32>,
    undone: BTreeSet<u32>,
    calls: u32,
    /// The process died with the next intent open.
    orphaned: bool,
}

pub(super) fn expect(plan: &[PlannedStep], script: Script) -> Expected {
    let mut model = Model {
        plan,
        script,
        acted: BTreeSet::new(),
        undone: BTreeSet::new(),
        calls: 0,
        orphaned: false,
    };
    let state = model.run();
    let Model {
        acted,
        undone,
        calls,
        ..
    } = model;
    Expected {
        state,
        acted,
        undone,
        calls,
    }
}

impl Model<'_> {
    fn run(&mut self) -> State {
        let all: Vec<u32> = (0..).take(self.plan.len()).collect();
        for k in all {
            match self.one(Direction::Forward, k) {
                End::Done => {}
                End::Failed { doubt } => return self.back(k + u32::from(doubt)),
                End::Stuck => return State::Terminated,
            }
        }
        State::Completed
    }

    fn back(&mut self, above: u32) -> State {
        for k in (0..above).rev() {
            let step = &self.plan[usize::try_from(k).unwrap()];
            match (step.compensate, step.recovery) {
                (Some(_), _) => match self.one(Direction::Compensating, k) {
                    End::Done => {}
                    End::Failed { .. } | End::Stuck => return State::Terminated,
                },
                (None, Recovery::Irreversible) => return State::Terminated,
                // A death does not survive a step that is only passed.
                (None, _) => self.orphaned = false,
            }
        }
        State::Compensated
    }

    fn one(&mut self, direction: Direction, k: u32) -> End {
        let step = self.plan[usize::try_from(k).unwrap()].clone();
        let forward = direction == Direction::Forward;
        let retry = if forward {
            step.retry
        } else {
            step.compensate.unwrap()
        };
        let mut doubt = core::mem::take(&mut self.orphaned);
        // Stored with a pause; what was counted since is lost with the process.
        let (mut stored, mut attempts, mut inline) = (0, 0, 0);
        loop {
            if forward && doubt && step.recovery == Recovery::Irreversible {
                return End::Stuck;
            }
            self.calls += 1;
            let turn = self.script.next(direction, k);
            let class = self.answered(forward, k, turn.answer);
            if turn.fate == Fate::DiesBeforeTheRecord {
                (doubt, attempts, inline) = (true, stored, 0);
                continue;
            }
            let Some(class) = class else {
                self.orphaned = turn.fate == Fate::DiesAfterTheRecord;
                return End::Done;
            };
            attempts += 1;
            doubt |= class == Class::Unknown;
            let spent = |limit: Option<u32>| limit.is_some_and(|most| attempts >= most);
            let refused = matches!(class, Class::Business | Class::Persistent);
            let (again, else_stuck) = match (forward, step.recovery) {
                (false, _) => (!refused && !spent(retry.attempts), true),
                (true, Recovery::ForwardOnly) => (true, true),
                (true, Recovery::BackwardFirst) => (false, false),
                (true, Recovery::Hybrid) => (!refused && !spent(retry.attempts), false),
                (true, Recovery::Irreversible) => {
                    (class == Class::Transient && !spent(retry.attempts), true)
                }
            };
            if !again && else_stuck {
                return End::Stuck;
            }
            if !again {
                self.orphaned = turn.fate == Fate::DiesAfterTheRecord;
                return End::Failed { doubt };
            }
            if class == Class::Transient && inline < retry.inline && turn.fate != Fate::Drains {
                inline += 1;
                if turn.fate == Fate::DiesAfterTheRecord {
                    (doubt, attempts, inline) = (true, stored, 0);
                }
            } else {
                (stored, inline) = (attempts, 0);
            }
        }
    }

    /// The participant's part: what is done stays done, and answers so.
    fn answered(&mut self, forward: bool, k: u32, answer: Answer) -> Option<Class> {
        let effects = if forward {
            &mut self.acted
        } else {
            &mut self.undone
        };
        match answer {
            Answer::Unknown { applied } => {
                if applied {
                    effects.insert(k);
                }
                Some(Class::Unknown)
            }
            Answer::Refused(class) if !effects.contains(&k) => Some(class),
            Answer::Ok | Answer::Refused(_) => {
                effects.insert(k);
                None
            }
        }
    }
}
