//! Participants behind the barrier, and sub-sagas: effects by step, whatever comes twice, late or
//! after its compensation.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
};

use super::generate::Setting;
use crate::saga::{
    Asked, Call, Class, Direction, Kind, Outcome, Payload, Text, tests::bench::json,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Running,
    Completed,
    Undoing,
    Undone,
}

#[derive(Debug, Default)]
pub(super) struct Participants {
    pub(super) acted: BTreeSet<u32>,
    pub(super) undone: BTreeSet<u32>,
    pub(super) reverted: BTreeSet<u32>,
    pub(super) called: BTreeSet<u32>,
    /// Actions that were answered with a refusal.
    pub(super) refused: BTreeSet<u32>,
    pub(super) children: BTreeMap<u32, Child>,
    pub(super) blocked: u32,
    pub(super) empty: u32,
    flaky: BTreeMap<(Direction, u32), u32>,
}

impl Participants {
    /// A call arrives; says what is answered, and when the end of a sub-saga is due then.
    pub(super) fn arrives(&mut self, setting: &Setting, call: &Call) -> (Outcome, Option<u64>) {
        let at = call.position;
        let part = setting.part(at.seq);
        let kind = &setting.step(at.seq).kind;
        self.called.insert(at.seq);
        match (kind, at.direction, call.asked) {
            (Kind::Decide, ..) => (Outcome::Done(json(&format!("{}", part.case))), None),
            (Kind::Saga, Direction::Forward, _) => self.start(at.seq, part.takes),
            (Kind::Saga, Direction::Compensating, _) => self.undo_child(at.seq, part.takes),
            (_, Direction::Forward, Asked::Probe) => {
                let applied = self.acted.contains(&at.seq);
                let outcome = if applied {
                    result(at.seq)
                } else {
                    Outcome::NotApplied
                };
                (outcome, None)
            }
            (_, Direction::Forward, Asked::Act) => (self.act(setting, at.seq), None),
            (_, Direction::Compensating, _) => (self.undo(setting, at.seq), None),
        }
    }

    /// A repeat of a call that was answered: done already, or undone meanwhile. What was refused is
    /// not asked for again by any repeat.
    pub(super) fn again(&mut self, setting: &Setting, call: &Call) -> Option<u64> {
        let seq = call.position.seq;
        let known = self.acted.contains(&seq) || self.undone.contains(&seq);
        known.then(|| self.arrives(setting, call).1).flatten()
    }

    fn act(&mut self, setting: &Setting, seq: u32) -> Outcome {
        let part = setting.part(seq);
        if self.undone.contains(&seq) {
            self.blocked += 1;
            return failed(Class::Business);
        }
        if self.acted.contains(&seq) {
            return result(seq);
        }
        if self.is_flaky(Direction::Forward, seq, part.flaky) {
            return failed(Class::Transient);
        }
        if let Some(class) = part.refuse {
            self.refused.insert(seq);
            return failed(class);
        }
        self.acted.insert(seq);
        result(seq)
    }

    fn undo(&mut self, setting: &Setting, seq: u32) -> Outcome {
        let part = setting.part(seq);
        if self.is_flaky(Direction::Compensating, seq, part.undo_flaky) {
            return failed(Class::Transient);
        }
        if part.stuck {
            return failed(Class::Persistent);
        }
        if self.undone.insert(seq) {
            if self.acted.contains(&seq) {
                self.reverted.insert(seq);
            } else {
                self.empty += 1;
            }
        }
        Outcome::Done(Payload::null())
    }

    fn start(&mut self, seq: u32, takes: u64) -> (Outcome, Option<u64>) {
        if self.undone.contains(&seq) && !self.children.contains_key(&seq) {
            self.blocked += 1;
            return (failed(Class::Business), None);
        }
        if self.children.contains_key(&seq) {
            return (Outcome::Waits, None);
        }
        self.acted.insert(seq);
        self.children.insert(seq, Child::Running);
        (Outcome::Waits, Some(takes))
    }

    fn undo_child(&mut self, seq: u32, takes: u64) -> (Outcome, Option<u64>) {
        self.undone.insert(seq);
        match self.children.get(&seq) {
            None => {
                self.empty += 1;
                (Outcome::Done(Payload::null()), None)
            }
            Some(Child::Undone) => (Outcome::Done(Payload::null()), None),
            Some(Child::Undoing) => (Outcome::Waits, None),
            Some(Child::Running | Child::Completed) => {
                self.children.insert(seq, Child::Undoing);
                (Outcome::Waits, Some(takes))
            }
        }
    }

    /// A sub-saga comes to an end; `None` when it had another one already.
    pub(super) fn child_ends(&mut self, setting: &Setting, seq: u32) -> Option<bool> {
        let completes = match self.children.get(&seq)? {
            Child::Running => setting.part(seq).refuse.is_none(),
            Child::Undoing => false,
            Child::Completed | Child::Undone => return None,
        };
        if !completes {
            assert!(self.reverted.insert(seq), "a sub-saga was undone twice");
        }
        let end = if completes {
            Child::Completed
        } else {
            Child::Undone
        };
        self.children.insert(seq, end);
        Some(completes)
    }

    fn is_flaky(&mut self, direction: Direction, seq: u32, times: u32) -> bool {
        let failed = self.flaky.entry((direction, seq)).or_default();
        *failed += 1;
        *failed <= times
    }

    /// What is applied and not taken back.
    pub(super) fn left(&self) -> BTreeSet<u32> {
        self.acted.difference(&self.reverted).copied().collect()
    }
}

fn result(seq: u32) -> Outcome {
    Outcome::Done(json(&format!("{seq}")))
}

fn failed(class: Class) -> Outcome {
    Outcome::Failed {
        class,
        error: Text::new("no"),
        retry_after: None,
    }
}
