//! The machine of one transaction under one claim: forward, compensating, parked or settled.
//!
//! It decides which calls and which write come next. It refuses to know clocks, sockets, users'
//! code and SQL. What is open are the *members* of the open group: one for a step by itself. At
//! most one write is outstanding; the record of a step is also the intent of the next one; a call
//! is ordered only after its intent is durable: with the claim, or with the answer to the write.
//!
//! Everything that happens changes a member; then [`decide`] looks at all of them and orders what
//! follows. So an answer, a wake-up and a replay take the same way.
//!
//! *A transactional step* (run inside the store's own database transaction) needs its record
//! before the commit: clone the machine, hand the clone the outcome, put the write that it orders
//! into that database transaction, and after the commit hand the outcome to the machine itself
//! with the same time and answer the same write with `Done`.

mod claim;
mod decide;
mod member;
mod outcome;
mod port;
mod rest;
mod start;
mod write;

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use self::{
    claim::{members, replay},
    member::{Doing, Member},
};
pub use port::{Asked, Call, Hold, Input, Order, Stopped, Unrunnable};

use super::{
    Attempt, Direction, Payload, Plan, PlannedStep, Position, Retry, Text, Wake as Woken,
    log::{self, Log},
};
use crate::{
    chance,
    id::TransactionId,
    machine::Machine,
    store::{Claimed, Fence, Start, Taken, Write},
    time::{Mono, Now, Wake, Wall},
};

/// One transaction under one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    plan: Option<Arc<Plan>>,
    unrunnable: Option<Unrunnable>,
    id: TransactionId,
    fence: Fence,
    input: Payload,
    log: Log,
    members: Vec<Member>,
    /// An operator's policy instead of the definition's.
    retry: Option<Retry>,
    /// By the database's clock, like all four.
    claimed_at: Wall,
    expires_at: Wall,
    opened_at: Wall,
    progressed_at: Wall,
    /// When the claim came in.
    received: Mono,
    /// Wake-ups that are in `wakes`, and those that somebody saw.
    heard: u64,
    told: u64,
    wakes: Vec<Woken>,
    /// Whether the *row* says that the open intent is in doubt.
    row_doubt: bool,
    /// Why it went back or to a person: the first refusal.
    error: Option<Text>,
    calls: u32,
    writes: u32,
    draining: bool,
    /// The lease is too short for a call: hand back as soon as none is open.
    releasing: bool,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The claim is not told yet.
    Fresh,
    /// Calls, rests and waits are as the members say.
    Open,
    /// A write is ordered and not answered.
    Writing {
        write: Box<Write>,
        /// Sends that the store did not answer.
        unanswered: u32,
        /// When it is sent again.
        resend: Option<Mono>,
    },
    /// The wake-ups are being read.
    Hearing,
    /// Nothing more comes.
    Stopped,
}

impl Transaction {
    /// The machine of a claimed row. `plan` is the definition registered for its saga and version,
    /// if there is one; it is compared with the digest and the history.
    #[must_use]
    pub fn new(plan: Option<Arc<Plan>>, claimed: Claimed) -> Self {
        let (log, unrunnable) = match replay(plan.as_deref(), &claimed) {
            Ok(log) => (log, None),
            Err(why) => (Log::standing(claimed.position), Some(why)),
        };
        let error = claimed.log.iter().find_map(|e| match &e.attempt {
            Attempt::Refused { error, .. } => Some(error.clone()),
            Attempt::Done(_) | Attempt::Skipped | Attempt::Paused { .. } => None,
        });
        let members = members(
            plan.as_deref().filter(|_| unrunnable.is_none()),
            &log,
            &claimed,
        );
        Self {
            plan,
            unrunnable,
            id: claimed.id,
            fence: claimed.fence,
            input: claimed.input,
            log,
            members,
            retry: claimed.retry,
            claimed_at: claimed.claimed_at,
            expires_at: claimed.expires_at,
            opened_at: claimed.opened_at,
            progressed_at: claimed.progressed_at,
            received: Mono::default(),
            heard: claimed.wake_seq,
            told: claimed.wake_seq,
            wakes: claimed.wakes,
            row_doubt: claimed.doubt,
            error,
            calls: 0,
            writes: 0,
            draining: false,
            releasing: false,
            phase: Phase::Fresh,
        }
    }

    /// The machine of a transaction that this process just stored and claimed. Only the lifetime
    /// counts from `now`, so the local clock does.
    #[must_use]
    pub fn started(plan: Arc<Plan>, start: &Start, fence: Fence, now: Now) -> Self {
        let claimed = Claimed {
            id: start.id,
            saga: start.saga.clone(),
            version: start.version,
            digest: start.digest.clone(),
            fence,
            position: log::FIRST,
            doubt: false,
            attempts: 0,
            deaths: 0,
            wake_seq: 0,
            wakes: Vec::new(),
            created_at: now.wall,
            expires_at: now.wall.plus(start.lifetime),
            opened_at: now.wall,
            progressed_at: now.wall,
            retry: None,
            claimed_at: now.wall,
            taken: Taken::Started,
            input: start.input.clone(),
            log: Vec::new(),
        };
        Self::new(Some(plan), claimed)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// The claim's right to write.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// What it was started with.
    #[must_use]
    pub fn input(&self) -> &Payload {
        &self.input
    }

    /// What became of its steps, and the open intent.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Whether something that is open may have been applied.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.members.iter().any(|m| m.doubt && m.then().is_none())
    }

    /// Whether a call is ordered and has not returned: what a drain waits for.
    #[must_use]
    pub fn is_calling(&self) -> bool {
        self.members.iter().any(Member::is_calling)
    }

    fn position(&self) -> Position {
        self.log.at()
    }

    /// The step, with the operator's policy of retries where there is one.
    fn planned(&self, seq: u32) -> Option<PlannedStep> {
        let mut step = self.plan.as_ref()?.step(seq)?.clone();
        if let Some(retry) = self.retry {
            step.retry = retry;
            step.compensate = step.compensate.map(|_| retry);
        }
        Some(step)
    }

    /// Whether a call of it that left no record may have been applied.
    fn leaves_doubt(&self, seq: u32) -> bool {
        let step = self.plan.as_ref().and_then(|plan| plan.step(seq));
        step.is_some_and(|step| step.leaves_doubt(self.position().direction))
    }

    /// Whether what is open is no group, so that the row tells its attempts and doubt.
    fn is_alone(&self) -> bool {
        self.plan.as_ref().is_none_or(|p| self.log.is_alone(p)) || self.unrunnable.is_some()
    }

    /// The database's clock, as known here.
    fn database_now(&self, now: Now) -> Wall {
        self.claimed_at.plus(now.mono.since(self.received))
    }

    /// For the jitter: differs between transactions, intents and directions.
    fn seed(&self, seq: u32) -> u64 {
        let (high, low) = self.id.0.as_u64_pair();
        let turn = match self.position().direction {
            Direction::Forward => 0,
            Direction::Compensating => 1,
        };
        chance::mixed(high ^ low, u64::from(seq) * 2 + turn)
    }

    fn stop(&mut self, why: Stopped, out: &mut Vec<Order>) {
        self.phase = Phase::Stopped;
        out.push(Order::Stop(why));
    }
}

impl Machine for Transaction {
    type Input = Input;
    type Order = Order;

    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Order>) {
        match input {
            Input::Claimed => {
                if self.phase == Phase::Fresh {
                    self.received = now.mono;
                    self.phase = Phase::Open;
                }
            }
            Input::Returned { call, outcome } => self.returned(now, call, outcome),
            Input::Held { call, by } => self.held(now, call, by),
            Input::Written { number, answer } => self.written(now, number, answer, out),
            Input::Unreachable { number } => self.unreachable(now, number),
            Input::Heard { wake_seq, wakes } => self.listened(wake_seq, wakes),
            Input::Woken { wake_seq } => self.told = self.told.max(wake_seq),
            Input::CallsEnded => self.calls_ended(now, out),
            Input::Died => self.died(out),
            Input::Drained => self.draining = true,
            Input::Woke => self.woke(now, out),
        }
        if self.phase == Phase::Open {
            self.decide(now, out);
        }
        debug_assert!(self.sound(), "{self:?}");
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        match &self.phase {
            Phase::Writing {
                resend: Some(at), ..
            } => wake.at_mono(*at, "send a write again"),
            Phase::Open => {
                for member in &self.members {
                    match &member.doing {
                        Doing::Resting(until) => wake.at_mono(*until, "inline retry"),
                        Doing::Waiting(Some(until)) => {
                            let left = until.since(self.claimed_at);
                            wake.at_mono(self.received.plus(left), "a wait's end");
                        }
                        Doing::Ready
                        | Doing::Calling(_)
                        | Doing::Waiting(None)
                        | Doing::Held { .. }
                        | Doing::Paused { .. }
                        | Doing::Ended(..)
                        | Doing::Recorded(_) => {}
                    }
                }
            }
            Phase::Fresh
            | Phase::Writing { resend: None, .. }
            | Phase::Hearing
            | Phase::Stopped => {}
        }
        wake
    }
}

impl Transaction {
    fn listened(&mut self, wake_seq: u64, wakes: Vec<Woken>) {
        if self.phase != Phase::Hearing {
            return;
        }
        self.heard = wake_seq.max(self.heard);
        self.told = self.told.max(self.heard);
        self.wakes = wakes;
        self.phase = Phase::Open;
        // What waited looks again whether it still has to.
        for member in &mut self.members {
            if matches!(member.doing, Doing::Waiting(_)) {
                member.doing = Doing::Ready;
            }
        }
    }

    fn died(&mut self, out: &mut Vec<Order>) {
        if self.phase == Phase::Stopped {
            return;
        }
        for member in &self.members {
            if let Doing::Calling(call) = member.doing {
                out.push(Order::Abandon { call });
            }
        }
        self.stop(Stopped::Lost, out);
    }

    fn woke(&mut self, now: Now, out: &mut Vec<Order>) {
        let clock = self.database_now(now);
        for member in &mut self.members {
            let over = match &member.doing {
                Doing::Resting(until) => *until <= now.mono,
                Doing::Waiting(Some(until)) => *until <= clock,
                Doing::Ready
                | Doing::Calling(_)
                | Doing::Waiting(None)
                | Doing::Held { .. }
                | Doing::Paused { .. }
                | Doing::Ended(..)
                | Doing::Recorded(_) => false,
            };
            if over {
                member.doing = Doing::Ready;
            }
        }
        if let Phase::Writing { write, resend, .. } = &mut self.phase
            && resend.is_some_and(|at| at <= now.mono)
        {
            *resend = None;
            out.push(Order::Write((**write).clone()));
        }
    }

    /// What holds after every input.
    fn sound(&self) -> bool {
        let calls = self.unrunnable.is_none() || !self.is_calling();
        calls
            && match &self.phase {
                Phase::Writing { write, .. } => write.from == self.position(),
                Phase::Fresh | Phase::Open | Phase::Hearing | Phase::Stopped => true,
            }
    }
}
