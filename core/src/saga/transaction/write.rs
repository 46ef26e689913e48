//! Writes and their answers: numbered, sent again until answered, and decided anew when something
//! woke the transaction meanwhile.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::time::Duration;

use super::{
    Order, Phase, Stopped, Transaction,
    member::{Doing, Member, Then},
};
use crate::{
    chance,
    saga::{Attempt, Class, Direction, Ending, Entry, Payload, PlannedStep, Text, log::Illegal},
    store::{To, Write, Written},
    time::Now,
};

/// A write that was not answered is sent again after this, doubling …
const RESEND: Duration = Duration::from_millis(50);
/// … up to this: a third of the owner's default lease, so that it is tried within each.
const LONGEST_RESEND: Duration = Duration::from_secs(2);

impl Transaction {
    pub(super) fn write(&mut self, to: To, entry: Option<Entry>, out: &mut Vec<Order>) {
        self.writes = self.writes.saturating_add(1);
        let write = Write {
            id: self.id,
            fence: self.fence,
            number: self.writes,
            from: self.position(),
            wake_seq: self.heard,
            to,
            entry,
        };
        out.push(Order::Write(write.clone()));
        self.phase = Phase::Writing {
            write: Box::new(write),
            unanswered: 0,
            resend: None,
        };
    }

    pub(super) fn settle(
        &mut self,
        ending: Ending,
        why: Option<Text>,
        entry: Option<Entry>,
        out: &mut Vec<Order>,
    ) {
        self.write(To::Settle { ending, why }, entry, out);
    }

    pub(super) fn pause(
        &mut self,
        after: Duration,
        (attempts, doubt): (u32, bool),
        why: Text,
        waiting_on: Option<String>,
        entry: Option<Entry>,
        out: &mut Vec<Order>,
    ) {
        let to = To::Park {
            after,
            attempts,
            doubt,
            why,
            waiting_on,
        };
        self.write(to, entry, out);
    }

    /// The store could not be reached or did not say: the same write again, later.
    pub(super) fn unreachable(&mut self, now: Now, number: u32) {
        let seed = self.seed(self.position().seq);
        if let Phase::Writing {
            write,
            unanswered,
            resend: resend @ None,
        } = &mut self.phase
            && write.number == number
        {
            *unanswered = unanswered.saturating_add(1);
            let floor = chance::FLOOR;
            let pause = chance::pause(seed, *unanswered, RESEND, LONGEST_RESEND, floor);
            *resend = Some(now.mono.plus(pause));
        }
    }

    pub(super) fn written(&mut self, now: Now, number: u32, answer: Written, out: &mut Vec<Order>) {
        let Phase::Writing { write, .. } = &self.phase else {
            return;
        };
        if write.number != number {
            return;
        }
        let write = Write::clone(write);
        self.phase = Phase::Open;
        match answer {
            Written::Done { wake_seq } | Written::Already { wake_seq } => {
                self.told = self.told.max(wake_seq);
                self.committed(now, write, out);
            }
            Written::Lost => self.stop(Stopped::Lost, out),
            // Nothing was written: it is decided anew, with what woke it.
            Written::Woken { wake_seq } => self.told = self.told.max(wake_seq),
            Written::Invalid(why) => self.invalid(write, why, out),
        }
    }

    fn committed(&mut self, now: Now, write: Write, out: &mut Vec<Order>) {
        if let Err(illegal) = self.follow(&write) {
            return self.inconsistent(&illegal, out);
        }
        match write.to {
            To::Next(to) => {
                self.members = self.opened(to.direction);
                self.opened_at = self.database_now(now);
                self.progressed_at = self.opened_at;
                self.row_doubt = false;
            }
            To::Stay => self.stayed(now, write.entry),
            To::Park { .. } => {
                let why = self.unrunnable.take();
                self.stop(why.map_or(Stopped::Parked, Stopped::Unrunnable), out);
            }
            To::Settle { ending, .. } => self.stop(Stopped::Settled(ending.state()), out),
            To::HandBack { .. } => self.stop(Stopped::HandedBack, out),
        }
    }

    /// The log says what was stored.
    fn follow(&mut self, write: &Write) -> Result<(), Illegal> {
        let Some(plan) = &self.plan else {
            return Ok(());
        };
        if let Some(entry) = &write.entry {
            self.log.record(plan, entry.position, &entry.attempt)?;
        }
        match write.to {
            To::Next(to) => self.log.intend(plan, to),
            To::Stay | To::Park { .. } | To::Settle { .. } | To::HandBack { .. } => Ok(()),
        }
    }

    fn opened(&self, direction: Direction) -> Vec<Member> {
        let Some(plan) = &self.plan else {
            return Vec::new();
        };
        let fresh = |seq| Member::new(seq, 0, false);
        match direction {
            Direction::Forward => self.log.open(plan).map(fresh).collect(),
            Direction::Compensating => Vec::from([fresh(self.log.at().seq)]),
        }
    }

    /// One member's record is stored.
    fn stayed(&mut self, now: Now, entry: Option<Entry>) {
        let Some(entry) = entry else {
            return;
        };
        let clock = self.database_now(now);
        let Some(member) = self
            .members
            .iter_mut()
            .find(|m| m.seq == entry.position.seq)
        else {
            return;
        };
        member.told = (member.attempts, member.doubt);
        if let Doing::Ended(_, then) = member.doing {
            member.doing = Doing::Recorded(then);
            self.progressed_at = clock;
        }
    }

    /// The record can't be stored. An action that is done all the same is undone, or goes to a
    /// person; a compensation that is done is recorded without its result.
    fn invalid(&mut self, write: Write, why: Text, out: &mut Vec<Order>) {
        let entry = write.entry;
        let seq = entry.as_ref().map(|e| e.position.seq);
        let step = seq.and_then(|seq| self.planned(seq));
        let effects = step.as_ref().is_some_and(PlannedStep::has_effects);
        let member = self.members.iter_mut().find(|m| Some(m.seq) == seq);
        let (Some(entry), Some(step), Some(member)) = (entry, step, member) else {
            return self.stop(Stopped::Refused(why), out);
        };
        match (entry.attempt, entry.position.direction) {
            (Attempt::Done(_), Direction::Forward) => {
                member.doubt |= effects;
                let stops = step.stops_when(member.doubt);
                let then = if stops { Then::Stop } else { Then::Back };
                let refused = Attempt::Refused {
                    class: Class::Persistent,
                    error: why,
                    doubt: member.doubt,
                };
                member.doing = Doing::Ended(refused, then);
            }
            (Attempt::Done(result), Direction::Compensating) if result != Payload::null() => {
                member.doing = Doing::Ended(Attempt::Done(Payload::null()), Then::On);
            }
            (
                Attempt::Done(_)
                | Attempt::Refused { .. }
                | Attempt::Skipped
                | Attempt::Paused { .. },
                Direction::Forward | Direction::Compensating,
            ) => self.stop(Stopped::Refused(why), out),
        }
    }

    pub(super) fn inconsistent(&mut self, illegal: &Illegal, out: &mut Vec<Order>) {
        let why = Text::new(&format!("stored, but no such history exists: {illegal}"));
        self.stop(Stopped::Inconsistent(why), out);
    }
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec};

    use uuid::Uuid;

    use super::*;
    use crate::{
        id::{Nonce, SagaName, StepName, TransactionId},
        machine::Machine,
        saga::{Direction, Input, Outcome, Plan, PlannedStep, Position, log::Log},
        store::{Capability, Fence, Start},
        token::Token,
    };

    #[test]
    fn a_history_that_cannot_be_ends_the_run_instead_of_calling_again() {
        let step = |name| PlannedStep::new(StepName::new(name).unwrap());
        let runs = Capability {
            saga: SagaName::new("s").unwrap(),
            version: 1,
            digest: "d".into(),
        };
        let start = Start {
            id: TransactionId(Uuid::nil()),
            token: Token(0),
            saga: runs.saga.clone(),
            version: runs.version,
            digest: runs.digest.clone(),
            key: "k".into(),
            input: Payload::null(),
            lifetime: Duration::from_secs(60),
            claim: None,
        };
        let fence = Fence {
            epoch: 1,
            nonce: Nonce(Uuid::nil()),
        };
        let plan = Plan::new(runs, vec![step("a"), step("b")]).unwrap();
        let now = Now::default();
        let mut tx = Transaction::started(Arc::new(plan), &start, fence, now);
        let mut out = Vec::new();
        tx.handle(now, Input::Claimed, &mut out);
        let outcome = Outcome::Done(Payload::null());
        tx.handle(now, Input::Returned { call: 1, outcome }, &mut out);
        let elsewhere = Position {
            direction: Direction::Compensating,
            seq: 9,
        };
        tx.log = Log::standing(elsewhere);
        out.clear();
        let answer = Written::Done { wake_seq: 0 };
        tx.handle(now, Input::Written { number: 1, answer }, &mut out);
        assert!(
            matches!(&out[..], [Order::Stop(Stopped::Inconsistent(_))]),
            "{out:?}"
        );
    }
}
