//! What became of calls: answers, refusals to call, and calls that ended with the lease.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use super::{
    Hold, Order, Transaction,
    member::{Doing, Then},
};
use crate::{
    saga::{
        Attempt, Class, Direction, Outcome, Repeat, Text,
        policy::{Failure, Verdict},
    },
    time::{Mono, Now},
};

impl Transaction {
    /// What a call gave. An answer to a call that is not open any more is nobody's.
    pub(super) fn returned(&mut self, now: Now, call: u32, outcome: Outcome) {
        let Some(index) = self.calling(call) else {
            return;
        };
        let member = &mut self.members[index];
        match outcome {
            Outcome::Done(result) => {
                member.attempts = member.attempts.saturating_add(1);
                member.doing = Doing::Ended(Attempt::Done(result), Then::On);
            }
            Outcome::Waits => {
                // Its end may have been heard of while the call was under way.
                let ended = self.has_ended(self.members[index].seq);
                self.members[index].doing = if ended {
                    Doing::Ready
                } else {
                    Doing::Waiting(None)
                };
            }
            Outcome::NotApplied => {
                member.probed = true;
                member.doing = Doing::Ready;
            }
            Outcome::Failed {
                class,
                error,
                retry_after,
            } => self.failed(now.mono, index, (class, error), retry_after, None),
        }
    }

    /// A call was held back, or failed because its target is down.
    pub(super) fn held(&mut self, now: Now, call: u32, by: Hold) {
        let Some(index) = self.calling(call) else {
            return;
        };
        self.releasing |= by == Hold::Lease;
        let member = &mut self.members[index];
        member.doing = match by {
            Hold::Lease => Doing::Ready,
            Hold::Target { target, after } => Doing::Held { target, after },
            Hold::Failing {
                target,
                after,
                class,
                error,
            } => {
                let down = Some((target, after));
                return self.failed(now.mono, index, (class, error), None, down);
            }
        };
        if member.attempts == 0 {
            member.first_call = None;
        }
    }

    /// The lease or the grace period is over: open calls are dropped, and unknown.
    pub(super) fn calls_ended(&mut self, now: Now, out: &mut Vec<Order>) {
        for index in 0..self.members.len() {
            let doubt = self.leaves_doubt(self.members[index].seq);
            let member = &mut self.members[index];
            let Doing::Calling(call) = member.doing else {
                continue;
            };
            out.push(Order::Abandon { call });
            if self.draining {
                member.doubt |= doubt;
                member.doing = Doing::Ready;
            } else {
                let why = Text::new("the lease ended while the call was open");
                self.failed(now.mono, index, (Class::Unknown, why), None, None);
            }
        }
    }

    fn failed(
        &mut self,
        now: Mono,
        index: usize,
        (class, error): (Class, Text),
        retry_after: Option<Duration>,
        down: Option<(String, Duration)>,
    ) {
        let given_up = self.is_giving_up();
        let direction = self.position().direction;
        let Some(step) = self.planned(self.members[index].seq) else {
            return;
        };
        let seed = self.seed(self.members[index].seq);
        let doubt = step.leaves_doubt(direction);
        let member = &mut self.members[index];
        // Whatever a probe fails with says nothing about the action, and it may be asked again.
        let probing = step.repeat == Repeat::Probe && member.doubt && !member.probed;
        let probing = probing && direction == Direction::Forward;
        // What is one commit with its record was not applied without one.
        let atomic = step.has_effects() && !doubt;
        let known = probing || (atomic && class == Class::Unknown);
        let class = if known { Class::Transient } else { class };
        member.attempts = member.attempts.saturating_add(u32::from(down.is_none()));
        if class == Class::Unknown {
            member.doubt |= doubt;
            member.probed = false;
        }
        let failure = Failure {
            direction,
            class,
            attempts: member.attempts,
            inline: member.inline,
            retry_after,
            seed,
        };
        let forward = direction == Direction::Forward;
        let verdict = if forward && member.doubt && step.repeat == Repeat::Never {
            Verdict::Terminate
        } else if given_up {
            Verdict::Backward
        } else {
            failure.verdict(&step)
        };
        let doubt = member.doubt;
        let refused = |error| Attempt::Refused {
            class,
            error,
            doubt,
        };
        member.doing = match (verdict, down) {
            (Verdict::Inline(_) | Verdict::Park(_), Some((target, after))) => {
                Doing::Held { target, after }
            }
            (Verdict::Inline(pause), None) if !self.draining => {
                member.inline += 1;
                Doing::Resting(now.plus(pause))
            }
            (Verdict::Inline(pause) | Verdict::Park(pause), None) => Doing::Paused {
                class,
                error,
                pause,
            },
            (Verdict::Backward, _) => Doing::Ended(refused(error), Then::Back),
            (Verdict::Terminate, _) => Doing::Ended(refused(error), Then::Stop),
        };
    }

    fn calling(&self, call: u32) -> Option<usize> {
        self.members
            .iter()
            .position(|m| m.doing == Doing::Calling(call))
    }
}
