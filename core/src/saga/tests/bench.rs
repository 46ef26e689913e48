//! One machine on a bench: facts in, the exact orders out.

use alloc::{format, string::String, sync::Arc, vec, vec::Vec};
use core::time::Duration;

use uuid::Uuid;

use crate::{
    id::{Nonce, SagaName, StepName, TransactionId},
    machine::Machine,
    saga::{
        Attempt, Call, Class, Direction, Entry, Hold, Input, Kind, Order, Outcome, Payload, Plan,
        PlannedStep, Position, Retry, Stopped, Text, Transaction, Wake,
    },
    store::{Capability, Claimed, Fence, Taken, To, Write, Written},
    time::{Mono, Now, Wall},
};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

pub(super) struct Bench {
    pub(super) tx: Transaction,
    pub(super) now: Now,
    /// Calls that are ordered and not answered.
    pub(super) open: Vec<Call>,
    pub(super) sent: Option<Write>,
}

impl Bench {
    /// A transaction of these steps that this process just started, with its first orders.
    pub(super) fn started(steps: Vec<PlannedStep>) -> (Self, Vec<Order>) {
        Self::claimed(steps, |c| c.taken = Taken::Started)
    }

    /// A claim, changed before the machine sees it.
    pub(super) fn claimed(
        steps: Vec<PlannedStep>,
        change: impl FnOnce(&mut Claimed),
    ) -> (Self, Vec<Order>) {
        Self::claimed_by(Some(plan(steps)), change)
    }

    pub(super) fn claimed_by(
        plan: Option<Plan>,
        change: impl FnOnce(&mut Claimed),
    ) -> (Self, Vec<Order>) {
        let mut claimed = claim();
        change(&mut claimed);
        let mut bench = Self {
            tx: Transaction::new(plan.map(Arc::new), claimed),
            now: Now {
                wall: Wall(5_000),
                mono: Mono(1_000),
            },
            open: vec![],
            sent: None,
        };
        let orders = bench.check(Input::Claimed);
        (bench, orders)
    }

    pub(super) fn check(&mut self, input: Input) -> Vec<Order> {
        let mut out = Vec::new();
        self.tx.handle(self.now, input, &mut out);
        for order in &out {
            match order {
                Order::Call(call) => self.open.push(call.clone()),
                Order::Write(write) => self.sent = Some(write.clone()),
                Order::Hear | Order::Abandon { .. } | Order::Stop(_) => {}
            }
        }
        out
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now.mono = self.now.mono.plus(time);
        self.now.wall = self.now.wall.plus(time);
    }

    /// Time passes until the machine wants to be woken.
    pub(super) fn woke(&mut self) -> Vec<Order> {
        let (at, _) = self.tx.wake_at().mono.expect("a deadline");
        self.pass(at.since(self.now.mono));
        self.check(Input::Woke)
    }

    pub(super) fn returned(&mut self, outcome: Outcome) -> Vec<Order> {
        let call = self.open.pop().expect("an open call").call;
        self.check(Input::Returned { call, outcome })
    }

    /// One member of a group gave this.
    pub(super) fn gave(&mut self, seq: u32, outcome: Outcome) -> Vec<Order> {
        let call = self.took(seq);
        self.check(Input::Returned { call, outcome })
    }

    pub(super) fn took(&mut self, seq: u32) -> u32 {
        let open = self.open.iter().position(|c| c.position.seq == seq);
        self.open.remove(open.expect("an open call")).call
    }

    pub(super) fn held(&mut self, by: Hold) -> Vec<Order> {
        let call = self.open.pop().expect("an open call").call;
        self.check(Input::Held { call, by })
    }

    pub(super) fn answered(&mut self, answer: Written) -> Vec<Order> {
        let number = self.sent.as_ref().expect("a write").number;
        self.check(Input::Written { number, answer })
    }

    pub(super) fn stored(&mut self) -> Vec<Order> {
        self.answered(Written::Done { wake_seq: 0 })
    }

    pub(super) fn stored_with(&mut self, wake_seq: u64) -> Vec<Order> {
        self.answered(Written::Done { wake_seq })
    }

    pub(super) fn heard(&mut self, wake_seq: u64, wakes: Vec<Wake>) -> Vec<Order> {
        self.check(Input::Heard { wake_seq, wakes })
    }

    pub(super) fn unreachable(&mut self) -> Vec<Order> {
        let number = self.sent.as_ref().expect("a write").number;
        self.check(Input::Unreachable { number })
    }

    /// The open call is done and its record stored.
    pub(super) fn step_done(&mut self, result: &str) -> Vec<Order> {
        write(&self.returned(done(result)));
        self.stored()
    }
}

pub(super) fn claim() -> Claimed {
    Claimed {
        id: TransactionId(Uuid::from_u128(0x0190_0000_0000_8000_8000_0000_0000_0001)),
        saga: SagaName::new("order").unwrap(),
        version: 1,
        digest: "d1".into(),
        fence: Fence {
            epoch: 1,
            nonce: Nonce(Uuid::from_u128(9)),
        },
        position: forward(0),
        doubt: false,
        attempts: 0,
        deaths: 0,
        wake_seq: 0,
        wakes: vec![],
        created_at: Wall(1_000),
        expires_at: Wall(1_000).plus(HOUR),
        opened_at: Wall(1_000),
        progressed_at: Wall(1_000),
        retry: None,
        claimed_at: Wall(1_000),
        taken: Taken::Due,
        input: Payload::null(),
        log: vec![],
    }
}

pub(super) fn plan(steps: Vec<PlannedStep>) -> Plan {
    let runs = Capability {
        saga: SagaName::new("order").unwrap(),
        version: 1,
        digest: "d1".into(),
    };
    Plan::new(runs, steps).unwrap()
}

pub(super) fn name(seq: u32) -> StepName {
    StepName::new(format!("s{seq}")).unwrap()
}

/// A step without inline retries and with three attempts.
pub(super) fn step(seq: u32) -> PlannedStep {
    let retry = Retry {
        inline: 0,
        attempts: Some(3),
        ..Retry::ACTION
    };
    let undo = Retry {
        inline: 0,
        ..Retry::COMPENSATION
    };
    PlannedStep {
        retry,
        compensate: Some(undo),
        ..PlannedStep::new(name(seq))
    }
}

pub(super) fn steps(n: u32) -> Vec<PlannedStep> {
    (0..n).map(step).collect()
}

/// Steps that are open together.
pub(super) fn group(seqs: core::ops::Range<u32>) -> Vec<PlannedStep> {
    let member = |seq| PlannedStep {
        group: Some(1),
        ..step(seq)
    };
    seqs.map(member).collect()
}

pub(super) fn kind(seq: u32, kind: Kind) -> PlannedStep {
    PlannedStep { kind, ..step(seq) }
}

/// Waits so many seconds.
pub(super) fn timer(seq: u32, seconds: u64) -> PlannedStep {
    kind(seq, Kind::Timer(Duration::from_secs(seconds)))
}

/// Waits for the signal of its name so many seconds.
pub(super) fn signal(seq: u32, seconds: u64, otherwise: Option<&str>) -> PlannedStep {
    let within = Some(Duration::from_secs(seconds));
    let otherwise = otherwise.map(json);
    kind(seq, Kind::Signal { within, otherwise })
}

pub(super) fn signalled(seq: u32, body: &str) -> Wake {
    let (name, body) = (name(seq), json(body));
    Wake::Signal { name, body }
}

pub(super) fn child(seq: u32, end: Result<&str, &str>) -> Wake {
    let (step, end) = (name(seq), end.map(json).map_err(Text::new));
    Wake::Child { step, end }
}

pub(super) fn cancel() -> Wake {
    Wake::Cancel {
        why: Text::new("no"),
    }
}

/// Only calls, of these intents.
pub(super) fn calls(orders: &[Order]) -> Vec<Position> {
    let position = |order: &Order| match order {
        Order::Call(call) => call.position,
        Order::Write(_) | Order::Hear | Order::Abandon { .. } | Order::Stop(_) => {
            panic!("no call: {order:?}")
        }
    };
    orders.iter().map(position).collect()
}

pub(super) fn paused(class: Class, doubt: bool) -> Attempt {
    Attempt::Paused {
        class,
        error: Text::new("no"),
        doubt,
    }
}

/// Which intent a record is of, and how it ended.
pub(super) fn record(write: &Write) -> (Position, Attempt) {
    let entry = write.entry.as_ref().expect("a record");
    (entry.position, entry.attempt.clone())
}

pub(super) fn forward(seq: u32) -> Position {
    let direction = Direction::Forward;
    Position { direction, seq }
}

pub(super) fn undo(seq: u32) -> Position {
    let direction = Direction::Compensating;
    Position { direction, seq }
}

pub(super) fn json(text: &str) -> Payload {
    Payload::new(text).unwrap()
}

pub(super) fn done(result: &str) -> Outcome {
    Outcome::Done(json(result))
}

pub(super) fn failed(class: Class) -> Outcome {
    Outcome::Failed {
        class,
        error: Text::new("no"),
        retry_after: None,
    }
}

pub(super) fn refused(class: Class, doubt: bool) -> Attempt {
    Attempt::Refused {
        class,
        error: Text::new("no"),
        doubt,
    }
}

pub(super) fn entry(position: Position, attempt: Attempt) -> Entry {
    Entry {
        position,
        step: name(position.seq),
        attempt,
        attempts: 1,
        started_at: Wall(5_000),
        ended_at: Wall(5_000),
    }
}

/// The one order, a call.
pub(super) fn call(orders: &[Order]) -> Call {
    match orders {
        [Order::Call(call)] => call.clone(),
        other => panic!("not one call: {other:?}"),
    }
}

/// The one order, a write.
pub(super) fn write(orders: &[Order]) -> Write {
    match orders {
        [Order::Write(write)] => write.clone(),
        other => panic!("not one write: {other:?}"),
    }
}

pub(super) fn attempt(write: &Write) -> Attempt {
    write.entry.as_ref().expect("a record").attempt.clone()
}

/// A pause and whether the open intent is in doubt.
pub(super) fn parked(write: &Write) -> (Duration, u32, bool) {
    match &write.to {
        To::Park {
            after,
            attempts,
            doubt,
            ..
        } => (*after, *attempts, *doubt),
        other @ (To::Next(_) | To::Stay | To::Settle { .. } | To::HandBack { .. }) => {
            panic!("not parked: {other:?}")
        }
    }
}

pub(super) fn settled(write: &Write) -> String {
    match &write.to {
        To::Settle { ending, .. } => format!("{:?}", ending.state()),
        other @ (To::Next(_) | To::Stay | To::Park { .. } | To::HandBack { .. }) => {
            panic!("not settled: {other:?}")
        }
    }
}

pub(super) fn stopped(why: Stopped) -> Vec<Order> {
    vec![Order::Stop(why)]
}
