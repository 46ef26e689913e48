//! What a member that is ready does: a call, a wait, or an outcome that needs neither.

use alloc::{format, vec::Vec};
use core::time::Duration;

use super::{
    Asked, Call, Order, Transaction,
    member::{Doing, Then},
};
use crate::{
    id::StepName,
    saga::{
        Attempt, Class, Direction, IdempotencyKey, Kind, Payload, PlannedStep, Position, Recovery,
        Repeat, Text, Wake, log::Status,
    },
    time::Now,
};

/// A wait that ends within this is not worth letting go of the transaction.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// What a ready member does.
enum Turn {
    Call(Asked),
    Wait(Doing),
    End(Attempt, Then),
}

impl Transaction {
    /// Starts every member that is ready; says whether one of them has its outcome already. Then
    /// nothing is called yet: what was decided may send the whole group back.
    pub(super) fn start_ready(&mut self, now: Now, out: &mut Vec<Order>) -> bool {
        let mut calls = Vec::new();
        let mut ended = false;
        for index in 0..self.members.len() {
            if self.members[index].doing != Doing::Ready {
                continue;
            }
            let Some(step) = self.planned(self.members[index].seq) else {
                continue;
            };
            let turn = match self.position().direction {
                Direction::Forward => self.act(now, index, &step),
                Direction::Compensating => self.undo(&step),
            };
            match turn {
                Turn::Call(asked) => calls.push((index, step, asked)),
                Turn::Wait(doing) => self.members[index].doing = doing,
                Turn::End(attempt, then) => {
                    self.members[index].doing = Doing::Ended(attempt, then);
                    ended = true;
                }
            }
        }
        if !ended {
            for (index, step, asked) in calls {
                self.call(now, index, step, asked, out);
            }
        }
        ended
    }

    fn act(&self, now: Now, index: usize, step: &PlannedStep) -> Turn {
        let member = &self.members[index];
        match &step.kind {
            Kind::Timer(after) => self.wait(now, *after).unwrap_or_else(done_null),
            Kind::Signal { within, otherwise } => {
                if let Some(body) = self.signal(&step.name) {
                    return Turn::End(Attempt::Done(body), Then::On);
                }
                let Some(within) = within else {
                    return Turn::Wait(Doing::Waiting(None));
                };
                self.wait(now, *within).unwrap_or_else(|| match otherwise {
                    Some(result) => Turn::End(Attempt::Done(result.clone()), Then::On),
                    None => {
                        let error = format!("no signal {} within {within:?}", step.name);
                        let error = Text::new(&error);
                        refused(Class::Business, error, false, step)
                    }
                })
            }
            Kind::Saga => match self.child(&step.name) {
                Some(Ok(result)) => Turn::End(Attempt::Done(result), Then::On),
                Some(Err(why)) => refused(Class::Business, why, false, step),
                None => Turn::Call(Asked::Act),
            },
            Kind::Action | Kind::Decide if member.doubt => match (step.repeat, step.recovery) {
                (Repeat::Probe, _) if !member.probed => Turn::Call(Asked::Probe),
                (Repeat::Never, _) | (Repeat::Key, Recovery::Irreversible) => {
                    let why = "may have been applied, and must not be repeated: ask a person";
                    let attempt = Attempt::Refused {
                        class: Class::Unknown,
                        error: Text::new(why),
                        doubt: true,
                    };
                    Turn::End(attempt, Then::Stop)
                }
                (Repeat::Probe | Repeat::Key, _) => Turn::Call(Asked::Act),
            },
            Kind::Action | Kind::Decide => Turn::Call(Asked::Act),
        }
    }

    fn undo(&self, step: &PlannedStep) -> Turn {
        if step.kind == Kind::Saga && self.child_ended(step) {
            return done_null();
        }
        match (step.compensate, step.recovery) {
            (Some(_), _) => Turn::Call(Asked::Act),
            (None, Recovery::Irreversible) => {
                let attempt = Attempt::Refused {
                    class: Class::Persistent,
                    error: Text::new("can't be undone: ask a person"),
                    doubt: false,
                };
                Turn::End(attempt, Then::Stop)
            }
            (None, Recovery::Hybrid | Recovery::ForwardOnly | Recovery::BackwardFirst) => {
                Turn::End(Attempt::Skipped, Then::On)
            }
        }
    }

    /// A wait from when the intent was stored; `None` when it is over.
    fn wait(&self, now: Now, length: Duration) -> Option<Turn> {
        let until = self.opened_at.plus(length);
        let left = until.since(self.database_now(now));
        if left.is_zero() {
            None
        } else if left <= SHORT_WAIT {
            Some(Turn::Wait(Doing::Resting(now.mono.plus(left))))
        } else {
            Some(Turn::Wait(Doing::Waiting(Some(until))))
        }
    }

    /// The first signal of this name.
    fn signal(&self, step: &StepName) -> Option<Payload> {
        self.wakes.iter().find_map(|wake| match wake {
            Wake::Signal { name, body } if name == step => Some(body.clone()),
            Wake::Signal { .. } | Wake::Child { .. } | Wake::Cancel { .. } => None,
        })
    }

    /// How the sub-saga of this step ended last.
    fn child(&self, name: &StepName) -> Option<Result<Payload, Text>> {
        self.wakes.iter().rev().find_map(|wake| match wake {
            Wake::Child { step, end } if step == name => Some(end.clone()),
            Wake::Signal { .. } | Wake::Child { .. } | Wake::Cancel { .. } => None,
        })
    }

    /// Whether the sub-saga of an open step came to the end that is waited for.
    pub(super) fn has_ended(&self, seq: u32) -> bool {
        self.planned(seq)
            .is_some_and(|step| self.child_ended(&step))
    }

    fn child_ended(&self, step: &PlannedStep) -> bool {
        match (self.position().direction, self.child(&step.name)) {
            (Direction::Forward, end) => end.is_some(),
            (Direction::Compensating, end) => matches!(end, Some(Err(_))),
        }
    }

    fn call(
        &mut self,
        now: Now,
        index: usize,
        step: PlannedStep,
        asked: Asked,
        out: &mut Vec<Order>,
    ) {
        let at = self.position();
        let results = self.results();
        self.calls = self.calls.saturating_add(1);
        let call = self.calls;
        let member = &mut self.members[index];
        member.first_call.get_or_insert(now.wall);
        member.doing = Doing::Calling(call);
        let position = Position {
            seq: member.seq,
            ..at
        };
        let result_of_action = match at.direction {
            Direction::Forward => None,
            Direction::Compensating => self.log.result(position.seq).cloned(),
        };
        out.push(Order::Call(Call {
            call,
            position,
            asked,
            attempt: member.attempts.saturating_add(1),
            key: IdempotencyKey::new(self.id, position.direction, &step.name),
            result_of_action,
            results,
            time_limit: step.time_limit,
            step: step.name,
        }));
    }

    fn results(&self) -> Vec<(StepName, Payload)> {
        let Some(plan) = &self.plan else {
            return Vec::new();
        };
        let of = |(step, status): (&PlannedStep, &Status)| match status {
            Status::Completed(result) => Some((step.name.clone(), result.clone())),
            Status::Pending
            | Status::Running
            | Status::Failed { .. }
            | Status::Compensating { .. }
            | Status::Compensated
            | Status::Skipped => None,
        };
        let all = plan.steps().iter().zip(self.log.statuses());
        all.filter_map(of).collect()
    }
}

fn done_null() -> Turn {
    Turn::End(Attempt::Done(Payload::null()), Then::On)
}

/// A refusal that no call gave: back, or to a person when the step never goes back.
fn refused(class: Class, error: Text, doubt: bool, step: &PlannedStep) -> Turn {
    let then = if step.stops() { Then::Stop } else { Then::Back };
    let attempt = Attempt::Refused {
        class,
        error,
        doubt,
    };
    Turn::End(attempt, then)
}
