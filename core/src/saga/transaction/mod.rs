//! The machine of one transaction under one claim: forward, compensating, parked or settled.
//!
//! It decides which call or write comes next. It refuses to know clocks, sockets, users' code and
//! SQL. One order is outstanding at any time: a call or a write. The record of a step is also the
//! intent of the next one; a call is ordered only after its intent is durable: with the claim, or
//! with the answer to the write.
//!
//! *A transactional step* (run inside the store's own database transaction) needs its record
//! before the commit: clone the machine, hand the clone the outcome, put the write that it orders
//! into that database transaction, and after the commit hand the outcome to the machine itself
//! with the same time and answer the same write with `Done`.

mod decide;
mod port;
mod write;

use alloc::{boxed::Box, sync::Arc, vec::Vec};

pub use port::{Call, Hold, Input, Order, Stopped, Unrunnable};

use super::{
    Class, Direction, Outcome, Payload, Plan, Position, Text,
    log::{self, Log},
};
use crate::{
    chance,
    id::TransactionId,
    machine::Machine,
    store::{Capability, Claimed, Fence, Start, Taken, Write},
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
    /// By the database's clock.
    claimed_at: Wall,
    /// By the database's clock.
    expires_at: Wall,
    /// When the claim came in.
    received: Mono,
    wake_seq: u64,
    /// Failed calls of the open intent, earlier claims included.
    attempts: u32,
    /// Inline retries of the open intent in this claim.
    inline: u32,
    /// Whether the *row* says that the open intent is in doubt.
    row_doubt: bool,
    /// When this claim first called the open intent.
    first_call: Option<Wall>,
    calls: u32,
    writes: u32,
    draining: bool,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The claim is not told yet.
    Fresh,
    /// A call is ordered and has not returned.
    Calling(u32),
    /// Between two inline retries.
    Resting(Mono),
    /// A write is ordered and not answered.
    Writing {
        write: Box<Write>,
        /// Sends that the store did not answer.
        unanswered: u32,
        /// When it is sent again.
        resend: Option<Mono>,
    },
    /// Nothing more comes.
    Stopped,
}

impl Transaction {
    /// The machine of a claimed row. `plan` is the definition registered for its saga and version,
    /// if there is one; it is compared with the digest and the history.
    #[must_use]
    pub fn new(plan: Option<Arc<Plan>>, claimed: Claimed) -> Self {
        let doubt = claimed.doubt || claimed.taken == Taken::Orphaned;
        let (log, unrunnable) = match replay(plan.as_deref(), &claimed, doubt) {
            Ok(log) => (log, None),
            Err(why) => (Log::standing(claimed.position, doubt), Some(why)),
        };
        Self {
            plan,
            unrunnable,
            id: claimed.id,
            fence: claimed.fence,
            input: claimed.input,
            log,
            claimed_at: claimed.claimed_at,
            expires_at: claimed.expires_at,
            received: Mono::default(),
            wake_seq: claimed.wake_seq,
            attempts: claimed.attempts,
            inline: 0,
            row_doubt: claimed.doubt,
            first_call: None,
            calls: 0,
            writes: 0,
            draining: false,
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
            created_at: now.wall,
            expires_at: now.wall.plus(start.lifetime),
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

    /// Whether a call is ordered and has not returned: what a drain waits for.
    #[must_use]
    pub fn is_calling(&self) -> bool {
        matches!(self.phase, Phase::Calling(_))
    }

    fn position(&self) -> Position {
        self.log.at()
    }

    /// Whether its lifetime is over, by the database's clock as known here.
    fn expired(&self, now: Now) -> bool {
        self.claimed_at.plus(now.mono.since(self.received)) >= self.expires_at
    }

    /// For the jitter: differs between transactions, intents and directions.
    fn seed(&self) -> u64 {
        let (high, low) = self.id.0.as_u64_pair();
        let at = self.position();
        let turn = match at.direction {
            Direction::Forward => 0,
            Direction::Compensating => 1,
        };
        chance::mixed(high ^ low, u64::from(at.seq) * 2 + turn)
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
                    self.go_on(now, out);
                }
            }
            Input::Returned { call, outcome } => {
                if self.phase == Phase::Calling(call) {
                    self.returned(now, outcome, out);
                }
            }
            Input::Held { call, by } => {
                if self.phase == Phase::Calling(call) {
                    self.held(by, out);
                }
            }
            Input::Written { number, answer } => self.written(now, number, answer, out),
            Input::Unreachable { number } => self.unreachable(now, number),
            Input::CallsEnded => self.calls_ended(now, out),
            Input::Died => self.died(out),
            Input::Drained => {
                self.draining = true;
                if matches!(self.phase, Phase::Resting(_)) {
                    self.go_on(now, out);
                }
            }
            Input::Woke => self.woke(now, out),
        }
        debug_assert!(self.sound(), "{self:?}");
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        match &self.phase {
            Phase::Resting(until) => wake.at_mono(*until, "inline retry"),
            Phase::Writing {
                resend: Some(at), ..
            } => wake.at_mono(*at, "send a write again"),
            Phase::Fresh
            | Phase::Calling(_)
            | Phase::Writing { resend: None, .. }
            | Phase::Stopped => {}
        }
        wake
    }
}

impl Transaction {
    fn calls_ended(&mut self, now: Now, out: &mut Vec<Order>) {
        let Phase::Calling(call) = self.phase else {
            return;
        };
        out.push(Order::Abandon { call });
        self.log.put_in_doubt();
        if self.draining {
            return self.hand_back(out);
        }
        let outcome = Outcome::Failed {
            class: Class::Unknown,
            error: Text::new("the lease ended while the call was open"),
            retry_after: None,
        };
        self.returned(now, outcome, out);
    }

    fn died(&mut self, out: &mut Vec<Order>) {
        match self.phase {
            Phase::Stopped => return,
            Phase::Calling(call) => out.push(Order::Abandon { call }),
            Phase::Fresh | Phase::Resting(_) | Phase::Writing { .. } => {}
        }
        self.stop(Stopped::Lost, out);
    }

    fn woke(&mut self, now: Now, out: &mut Vec<Order>) {
        match &mut self.phase {
            Phase::Resting(until) if *until <= now.mono => self.go_on(now, out),
            Phase::Writing { write, resend, .. } if resend.is_some_and(|at| at <= now.mono) => {
                *resend = None;
                out.push(Order::Write((**write).clone()));
            }
            Phase::Fresh
            | Phase::Calling(_)
            | Phase::Resting(_)
            | Phase::Writing { .. }
            | Phase::Stopped => {}
        }
    }

    fn stop(&mut self, why: Stopped, out: &mut Vec<Order>) {
        self.phase = Phase::Stopped;
        out.push(Order::Stop(why));
    }

    /// What holds after every input.
    fn sound(&self) -> bool {
        match &self.phase {
            Phase::Writing { write, .. } => write.from == self.position(),
            Phase::Calling(call) => self.unrunnable.is_none() && *call == self.calls,
            Phase::Fresh | Phase::Resting(_) | Phase::Stopped => true,
        }
    }
}

/// Rebuilds the history, or says why it can't be run by this definition (G12).
fn replay(plan: Option<&Plan>, claimed: &Claimed, doubt: bool) -> Result<Log, Unrunnable> {
    let wanted = Capability {
        saga: claimed.saga.clone(),
        version: claimed.version,
        digest: claimed.digest.clone(),
    };
    let Some(plan) = plan else {
        return Err(Unrunnable::Missing(wanted));
    };
    if *plan.runs() != wanted {
        let text = alloc::format!(
            "started with {} v{} ({}), here is {} v{} ({})",
            wanted.saga,
            wanted.version,
            wanted.digest,
            plan.runs().saga,
            plan.runs().version,
            plan.runs().digest
        );
        return Err(Unrunnable::Mismatch(Text::new(&text)));
    }
    log::named(&claimed.log, plan)
        .and_then(|()| Log::replay(&claimed.log, claimed.position, doubt))
        .and_then(|log| log::within(&log, plan).map(|()| log))
        .map_err(|why| Unrunnable::Mismatch(Text::new(&alloc::format!("{why}"))))
}
