//! What follows from how the open members stand: a record, the next intent, a pause, the end.
//!
//! One function looks at all members after every fact. Outcomes are recorded before anything else
//! is decided, so that nothing that is known gets lost; what a person or the lifetime wants comes
//! before new calls.

use alloc::{format, vec::Vec};
use core::time::Duration;

use super::{
    Order, Phase, Transaction,
    member::{Doing, Member, Then},
};
use crate::{
    saga::{
        Attempt, Class, Direction, Ending, Entry, Kind, Payload, Plan, Position, Repeat, Text,
        Wake, log::Log,
    },
    store::To,
    time::Now,
};

/// What nobody here can run is looked at again after this (`design.md` section 4).
const UNRUNNABLE_PAUSE: Duration = Duration::from_secs(60);

impl Transaction {
    /// Orders what follows. Each turn of the loop gives a member an outcome or is the last.
    pub(super) fn decide(&mut self, now: Now, out: &mut Vec<Order>) {
        loop {
            if self.told > self.heard {
                self.phase = Phase::Hearing;
                return out.push(Order::Hear);
            }
            if let Some(ended) = self.members.iter().position(is_ended) {
                return self.record(now, ended, out);
            }
            let recorded = self.members.iter().all(|m| m.then().is_some());
            if recorded && self.unrunnable.is_none() {
                return self.conclude(None, out);
            }
            if self.is_stopping() {
                return self.come_to_rest(now, out);
            }
            if self.draining || self.releasing {
                return self.leave(now, out);
            }
            if let Some(why) = self.over(now) {
                return self.expire(now, why, out);
            }
            if let Some(why) = &self.unrunnable {
                let why = Text::new(&format!("can't be run here: {why:?}"));
                let (attempts, doubt) = self.row();
                return self.pause(UNRUNNABLE_PAUSE, (attempts, doubt), why, None, None, out);
            }
            if self.give_up() || self.start_ready(now, out) {
                continue;
            }
            let busy = |m: &Member| m.is_calling() || matches!(m.doing, Doing::Resting(_));
            if !self.members.iter().any(busy) {
                self.park(now, out);
            }
            return;
        }
    }

    /// Whether some member sent the transaction to a person.
    fn is_stopping(&self) -> bool {
        self.members.iter().any(|m| m.then() == Some(Then::Stop))
    }

    /// Whether actions that failed are not tried again: another one of the group failed for good,
    /// or somebody cancelled.
    pub(super) fn is_giving_up(&self) -> bool {
        let back = |m: &Member| m.then() == Some(Then::Back);
        self.position().direction == Direction::Forward
            && (self.cancelled().is_some() || self.members.iter().any(back))
    }

    /// Who cancelled it and why.
    pub(super) fn cancelled(&self) -> Option<Text> {
        self.wakes.iter().find_map(|wake| match wake {
            Wake::Cancel { why } => Some(why.clone()),
            Wake::Signal { .. } | Wake::Child { .. } => None,
        })
    }

    /// Gives every member that is not being called its outcome, when the group is given up.
    fn give_up(&mut self) -> bool {
        if !self.is_giving_up() {
            return false;
        }
        let (cancelled, plan) = (self.cancelled(), self.plan.clone());
        self.doubt_begun();
        let mut changed = false;
        for member in &mut self.members {
            if member.is_calling() || member.then().is_some() {
                continue;
            }
            let doubt = member.doubt;
            let attempt = match (&member.doing, &cancelled) {
                (_, Some(why)) => refused(Class::Business, why.clone(), doubt),
                (Doing::Paused { class, error, .. }, None) => refused(*class, error.clone(), doubt),
                _ if !member.was_called() => Attempt::Skipped,
                _ => {
                    let class = if doubt {
                        Class::Unknown
                    } else {
                        Class::Transient
                    };
                    refused(
                        class,
                        Text::new("given up: another step of its group failed"),
                        doubt,
                    )
                }
            };
            // What must not be repeated goes to a person, whoever gave it up.
            let never = plan.as_ref().and_then(|p| p.step(member.seq));
            let never = never.is_some_and(|s| s.repeat == Repeat::Never);
            let then = if doubt && never {
                Then::Stop
            } else {
                Then::Back
            };
            member.doing = Doing::Ended(attempt, then);
            changed = true;
        }
        changed
    }

    /// A transaction of its own without an end here may have been started, by an earlier claim too.
    pub(super) fn doubt_begun(&mut self) {
        let plan = self.plan.as_ref();
        let begun = |seq| plan.and_then(|p| p.step(seq)).map(|s| &s.kind) == Some(&Kind::Saga);
        for member in &mut self.members {
            member.doubt |= member.then().is_none() && begun(member.seq);
        }
    }

    /// The record of a member's outcome; the last one is also the next intent, or the end.
    fn record(&mut self, now: Now, ended: usize, out: &mut Vec<Order>) {
        let others = self.members.iter().enumerate().filter(|(i, _)| *i != ended);
        let last = others
            .map(|(_, m)| m)
            .all(|m| matches!(m.doing, Doing::Recorded(_)));
        let member = &self.members[ended];
        let Doing::Ended(attempt, _) = &member.doing else {
            return;
        };
        let Some(entry) = self.entry(now, member, attempt.clone()) else {
            return;
        };
        if let Attempt::Refused { error, .. } = &entry.attempt
            && (self.error.is_none() || member.then() == Some(Then::Stop))
        {
            self.error = Some(error.clone());
        }
        if last {
            self.conclude(Some(entry), out);
        } else {
            self.write(To::Stay, Some(entry), out);
        }
    }

    /// Every member has an outcome: up, down, or the end.
    fn conclude(&mut self, entry: Option<Entry>, out: &mut Vec<Order>) {
        let Some(plan) = self.plan.clone() else {
            return;
        };
        // What the log will say once this is stored; the log itself waits for the answer.
        let mut log = self.log.clone();
        if let Some(entry) = &entry
            && let Err(illegal) = log.record(&plan, entry.position, &entry.attempt)
        {
            return self.inconsistent(&illegal, out);
        }
        let at = self.position();
        let any = |then| self.members.iter().any(|m| m.then() == Some(then));
        if any(Then::Stop) {
            return self.settle(Ending::Terminated, self.error.clone(), entry, out);
        }
        let back = self.is_giving_up();
        let next = match at.direction {
            Direction::Forward if back => {
                let above = plan.group(at.seq).end;
                log.below(&plan, above)
                    .map(|seq| (Direction::Compensating, seq))
            }
            Direction::Forward => log.above(&plan).map(|seq| (Direction::Forward, seq)),
            Direction::Compensating => log
                .below(&plan, at.seq)
                .map(|seq| (Direction::Compensating, seq)),
        };
        match next {
            Some((direction, seq)) => {
                self.write(To::Next(Position { direction, seq }), entry, out);
            }
            None if at.direction == Direction::Forward && !back => {
                self.settle(Ending::Completed(result(&plan, &log)), None, entry, out);
            }
            None => {
                let why = self.cancelled().or_else(|| self.error.clone());
                self.settle(Ending::Compensated, why, entry, out);
            }
        }
    }

    /// Why nothing more may be started, once a limit is over.
    fn over(&self, now: Now) -> Option<Text> {
        let clock = self.database_now(now);
        if clock >= self.expires_at {
            return Some(Text::new("its lifetime is over"));
        }
        let limit = self.idle_limit()?;
        let idle = clock.since(self.progressed_at) >= limit;
        idle.then(|| Text::new(&format!("no progress for {limit:?}")))
    }

    /// The limit of time without progress; none while it waits for people, timers or others.
    pub(super) fn idle_limit(&self) -> Option<Duration> {
        let plan = self.plan.as_ref()?;
        let limit = plan.idle_limit()?;
        let waits = |m: &Member| {
            let kind = plan.step(m.seq).map(|s| &s.kind);
            let outside = matches!(
                kind,
                Some(Kind::Timer(_) | Kind::Signal { .. } | Kind::Saga)
            );
            outside && m.then().is_none()
        };
        (!self.members.iter().any(waits)).then_some(limit)
    }

    pub(super) fn entry(&self, now: Now, member: &Member, attempt: Attempt) -> Option<Entry> {
        let step = self.planned(member.seq)?;
        Some(Entry {
            position: Position {
                seq: member.seq,
                ..self.position()
            },
            step: step.name,
            attempt,
            attempts: member.attempts,
            started_at: member.first_call.unwrap_or(now.wall),
            ended_at: now.wall,
        })
    }
}

fn is_ended(member: &Member) -> bool {
    matches!(member.doing, Doing::Ended(..))
}

fn refused(class: Class, error: Text, doubt: bool) -> Attempt {
    Attempt::Refused {
        class,
        error,
        doubt,
    }
}

/// The saga's result: what the last step gave that gives something.
fn result(plan: &Plan, log: &Log) -> Payload {
    let gives = |seq: &u32| {
        plan.step(*seq).is_some_and(|step| match step.kind {
            Kind::Action | Kind::Saga | Kind::Signal { .. } => true,
            Kind::Decide | Kind::Timer(_) => false,
        })
    };
    let all = u32::try_from(log.statuses().len()).unwrap_or(u32::MAX);
    let done = |seq: u32| log.result(seq).cloned();
    (0..all)
        .rev()
        .filter(gives)
        .find_map(done)
        .unwrap_or_else(Payload::null)
}
