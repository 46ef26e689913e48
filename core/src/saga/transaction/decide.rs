//! Which call or record follows from where the transaction stands and from what a call gave.

use alloc::{format, vec::Vec};
use core::time::Duration;

use super::{Call, Hold, Order, Phase, Transaction};
use crate::{
    saga::{
        Attempt, Class, Direction, Ending, Entry, IdempotencyKey, Outcome, Payload, PlannedStep,
        Position, Recovery, Text,
        log::Status,
        policy::{Failure, Verdict},
    },
    store::To,
    time::Now,
};

/// What nobody here can run is looked at again after this (`design.md` section 4).
const UNRUNNABLE_PAUSE: Duration = Duration::from_secs(60);

impl Transaction {
    /// Goes on from the open intent, which is durable.
    pub(super) fn go_on(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.draining {
            return self.hand_back(out);
        }
        if self.expired(now) {
            return self.expire(out);
        }
        if let Some(why) = &self.unrunnable {
            let why = Text::new(&format!("can't be run here: {why:?}"));
            return self.park(UNRUNNABLE_PAUSE, why, None, out);
        }
        let at = self.position();
        let Some(step) = self.planned(at.seq) else {
            return self.settle(Ending::Completed(Payload::null()), None, None, out);
        };
        match at.direction {
            Direction::Forward if self.log.doubt() && step.recovery == Recovery::Irreversible => {
                let why = "may have been applied, and must not be repeated: ask a person";
                self.terminate(now, &step, Class::Unknown, Text::new(why), out);
            }
            Direction::Forward => self.call(now, step, out),
            Direction::Compensating => match (step.compensate, step.recovery) {
                (Some(_), _) => self.call(now, step, out),
                (None, Recovery::Irreversible) => {
                    let why = "can't be undone: ask a person";
                    self.terminate(now, &step, Class::Persistent, Text::new(why), out);
                }
                (None, Recovery::Hybrid | Recovery::ForwardOnly | Recovery::BackwardFirst) => {
                    self.downwards(now, &step, Attempt::Skipped, 0, out);
                }
            },
        }
    }

    /// What a call gave.
    pub(super) fn returned(&mut self, now: Now, outcome: Outcome, out: &mut Vec<Order>) {
        let Some(step) = self.planned(self.position().seq) else {
            return;
        };
        match (outcome, self.position().direction) {
            (Outcome::Done(result), Direction::Forward) => self.upwards(now, &step, result, out),
            (Outcome::Done(result), Direction::Compensating) => {
                let calls = self.attempts.saturating_add(1);
                self.downwards(now, &step, Attempt::Done(result), calls, out);
            }
            (
                Outcome::Failed {
                    class,
                    error,
                    retry_after,
                },
                Direction::Forward | Direction::Compensating,
            ) => self.failed(now, &step, (class, error), retry_after, out),
        }
    }

    /// A call was not made.
    pub(super) fn held(&mut self, by: Hold, out: &mut Vec<Order>) {
        match by {
            Hold::Lease => self.hand_back(out),
            Hold::Target { target, after } => {
                let why = Text::new(&format!("waits for {target}"));
                self.park(after, why, Some(target), out);
            }
        }
    }

    fn failed(
        &mut self,
        now: Now,
        step: &PlannedStep,
        (class, error): (Class, Text),
        retry_after: Option<Duration>,
        out: &mut Vec<Order>,
    ) {
        self.attempts = self.attempts.saturating_add(1);
        if class == Class::Unknown {
            self.log.put_in_doubt();
        }
        let failure = Failure {
            direction: self.position().direction,
            class,
            attempts: self.attempts,
            inline: self.inline,
            retry_after,
            seed: self.seed(),
        };
        match failure.verdict(step) {
            Verdict::Inline(pause) if !self.draining => {
                self.inline += 1;
                self.phase = Phase::Resting(now.mono.plus(pause));
            }
            Verdict::Inline(pause) | Verdict::Park(pause) => {
                let paused = Attempt::Paused {
                    class,
                    error: error.clone(),
                };
                let entry = self.entry(now, step, paused, self.attempts);
                self.park_with(pause, error, None, Some(entry), out);
            }
            Verdict::Backward => self.backward(now, step, class, error, out),
            Verdict::Terminate => self.terminate(now, step, class, error, out),
        }
    }

    /// An action is done: its record is the intent of the next one, or the end.
    fn upwards(&mut self, now: Now, step: &PlannedStep, result: Payload, out: &mut Vec<Order>) {
        let calls = self.attempts.saturating_add(1);
        let entry = self.entry(now, step, Attempt::Done(result.clone()), calls);
        let next = self.position().seq.saturating_add(1);
        if self.planned(next).is_some() {
            let to = Position {
                direction: Direction::Forward,
                seq: next,
            };
            self.write(To::Next(to), Some(entry), out);
        } else {
            self.settle(Ending::Completed(result), None, Some(entry), out);
        }
    }

    /// A compensation is done or passed: the one below comes, or the end.
    fn downwards(
        &mut self,
        now: Now,
        step: &PlannedStep,
        attempt: Attempt,
        calls: u32,
        out: &mut Vec<Order>,
    ) {
        let entry = self.entry(now, step, attempt, calls);
        self.below(self.position().seq, entry, None, out);
    }

    /// The action failed for good: compensation starts at it when it is in doubt, else below it.
    pub(super) fn backward(
        &mut self,
        now: Now,
        step: &PlannedStep,
        class: Class,
        error: Text,
        out: &mut Vec<Order>,
    ) {
        let doubt = self.log.doubt();
        let why = error.clone();
        let refused = Attempt::Refused {
            class,
            error,
            doubt,
        };
        let entry = self.entry(now, step, refused, self.attempts);
        let above = self.position().seq.saturating_add(u32::from(doubt));
        self.below(above, entry, Some(why), out);
    }

    fn below(&mut self, above: u32, entry: Entry, why: Option<Text>, out: &mut Vec<Order>) {
        match above.checked_sub(1) {
            Some(seq) => {
                let direction = Direction::Compensating;
                self.write(To::Next(Position { direction, seq }), Some(entry), out);
            }
            None => self.settle(Ending::Compensated, why, Some(entry), out),
        }
    }

    pub(super) fn terminate(
        &mut self,
        now: Now,
        step: &PlannedStep,
        class: Class,
        error: Text,
        out: &mut Vec<Order>,
    ) {
        let why = error.clone();
        let refused = Attempt::Refused {
            class,
            error,
            doubt: self.log.doubt(),
        };
        let entry = self.entry(now, step, refused, self.attempts);
        self.settle(Ending::Terminated, Some(why), Some(entry), out);
    }

    /// The lifetime is over. A doubt that the row does not know yet is stored first: the pause is
    /// due at once, and whoever claims it then disables it.
    fn expire(&mut self, out: &mut Vec<Order>) {
        let why = Text::new("its lifetime is over");
        if self.log.doubt() != self.row_doubt {
            self.park(Duration::ZERO, why, None, out);
        } else {
            self.settle(Ending::Disabled, Some(why), None, out);
        }
    }

    fn call(&mut self, now: Now, step: PlannedStep, out: &mut Vec<Order>) {
        let position = self.position();
        self.calls = self.calls.saturating_add(1);
        self.first_call.get_or_insert(now.wall);
        self.phase = Phase::Calling(self.calls);
        let result_of_action = match position.direction {
            Direction::Forward => None,
            Direction::Compensating => self.log.result(position.seq).cloned(),
        };
        out.push(Order::Call(Call {
            call: self.calls,
            position,
            attempt: self.attempts.saturating_add(1),
            key: IdempotencyKey::new(self.id, position.direction, &step.name),
            result_of_action,
            results: self.results(),
            time_limit: step.time_limit,
            step: step.name,
        }));
    }

    fn results(&self) -> Vec<(crate::id::StepName, Payload)> {
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
        plan.steps()
            .iter()
            .zip(self.log.statuses())
            .filter_map(of)
            .collect()
    }

    fn planned(&self, seq: u32) -> Option<PlannedStep> {
        self.plan.as_ref()?.step(seq).cloned()
    }

    fn entry(&self, now: Now, step: &PlannedStep, attempt: Attempt, attempts: u32) -> Entry {
        Entry {
            position: self.position(),
            step: step.name.clone(),
            attempt,
            attempts,
            started_at: self.first_call.unwrap_or(now.wall),
            ended_at: now.wall,
        }
    }
}
