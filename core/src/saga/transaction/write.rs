//! Writes and their answers: numbered, sent again until answered, and decided anew when something
//! woke the transaction meanwhile.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::time::Duration;

use super::{Order, Phase, Stopped, Transaction};
use crate::{
    chance,
    saga::{Attempt, Class, Direction, Ending, Entry, Payload, Recovery, Text},
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
            wake_seq: self.wake_seq,
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

    pub(super) fn park(
        &mut self,
        after: Duration,
        why: Text,
        waiting_on: Option<String>,
        out: &mut Vec<Order>,
    ) {
        self.park_with(after, why, waiting_on, None, out);
    }

    pub(super) fn park_with(
        &mut self,
        after: Duration,
        why: Text,
        waiting_on: Option<String>,
        entry: Option<Entry>,
        out: &mut Vec<Order>,
    ) {
        let to = To::Park {
            after,
            attempts: self.attempts,
            doubt: self.log.doubt(),
            why,
            waiting_on,
        };
        self.write(to, entry, out);
    }

    pub(super) fn hand_back(&mut self, out: &mut Vec<Order>) {
        let to = To::HandBack {
            attempts: self.attempts,
            doubt: self.log.doubt(),
        };
        self.write(to, None, out);
    }

    /// The store could not be reached or did not say: the same write again, later.
    pub(super) fn unreachable(&mut self, now: Now, number: u32) {
        let seed = self.seed();
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
        match answer {
            Written::Done { wake_seq } | Written::Already { wake_seq } => {
                self.wake_seq = wake_seq;
                self.committed(now, write, out);
            }
            Written::Lost => self.stop(Stopped::Lost, out),
            Written::Woken { wake_seq } => {
                self.wake_seq = wake_seq;
                self.woken(write, out);
            }
            Written::Invalid(why) => self.invalid(now, write, why, out),
        }
    }

    fn committed(&mut self, now: Now, write: Write, out: &mut Vec<Order>) {
        let recorded = match &write.entry {
            Some(entry) => self.log.record(entry.position, &entry.attempt),
            None => Ok(()),
        };
        let moved = match &write.to {
            To::Next(to) => recorded.and_then(|()| self.log.intend(*to)),
            To::Park { .. } | To::Settle { .. } | To::HandBack { .. } => recorded,
        };
        if let Err(illegal) = moved {
            let why = Text::new(&format!("stored, but no such history exists: {illegal}"));
            return self.stop(Stopped::Inconsistent(why), out);
        }
        match write.to {
            To::Next(_) => {
                self.attempts = 0;
                self.inline = 0;
                self.row_doubt = false;
                self.first_call = None;
                self.go_on(now, out);
            }
            To::Park { .. } => {
                let why = self.unrunnable.take();
                self.stop(why.map_or(Stopped::Parked, Stopped::Unrunnable), out);
            }
            To::Settle { ending, .. } => self.stop(Stopped::Settled(ending.state()), out),
            To::HandBack { .. } => self.stop(Stopped::HandedBack, out),
        }
    }

    /// Parking: what woke it would have made it due at once, so it is. Settling: again, seeing it.
    fn woken(&mut self, write: Write, out: &mut Vec<Order>) {
        let to = match write.to {
            To::Park {
                attempts,
                doubt,
                why,
                waiting_on,
                ..
            } => To::Park {
                after: Duration::ZERO,
                attempts,
                doubt,
                why,
                waiting_on,
            },
            to @ (To::Settle { .. } | To::HandBack { .. } | To::Next(_)) => to,
        };
        self.write(to, write.entry, out);
    }

    /// The record can't be stored. An action that is done all the same is undone; a compensation
    /// that is done is recorded without its result.
    fn invalid(&mut self, now: Now, write: Write, why: Text, out: &mut Vec<Order>) {
        let at = self.position();
        let step = self.plan.as_ref().and_then(|p| p.step(at.seq)).cloned();
        let (Some(mut entry), Some(step)) = (write.entry, step) else {
            return self.stop(Stopped::Refused(why), out);
        };
        match (&entry.attempt, at.direction) {
            (Attempt::Done(_), Direction::Forward) => {
                self.attempts = self.attempts.saturating_add(1);
                self.log.put_in_doubt();
                let class = Class::Persistent;
                match step.recovery {
                    Recovery::Hybrid | Recovery::BackwardFirst => {
                        self.backward(now, &step, class, why, out);
                    }
                    Recovery::ForwardOnly | Recovery::Irreversible => {
                        self.terminate(now, &step, class, why, out);
                    }
                }
            }
            (Attempt::Done(result), Direction::Compensating) if *result != Payload::null() => {
                entry.attempt = Attempt::Done(Payload::null());
                self.write(write.to, Some(entry), out);
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
        tx.log = Log::standing(elsewhere, false);
        out.clear();
        let answer = Written::Done { wake_seq: 0 };
        tx.handle(now, Input::Written { number: 1, answer }, &mut out);
        assert!(
            matches!(&out[..], [Order::Stop(Stopped::Inconsistent(_))]),
            "{out:?}"
        );
    }
}
