//! What the machine of a transaction is told, and what it orders.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use crate::{
    id::StepName,
    saga::{Class, IdempotencyKey, Outcome, Payload, Position, State, Text, Wake},
    store::{Capability, Write, Written},
};

/// Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The row is ours: the first input, given once.
    Claimed,
    /// A call gave this. A panic, a passed time limit and a dropped future are
    /// `Failed { class: Unknown }`. Answers to calls that are not open any more are dropped.
    Returned {
        /// From the order.
        call: u32,
        /// What it gave.
        outcome: Outcome,
    },
    /// A call was not made because something holds it back, or it failed at a target that is down.
    /// It uses up no attempt.
    Held {
        /// From the order.
        call: u32,
        /// What holds it.
        by: Hold,
    },
    /// The store answered a write.
    Written {
        /// From the order.
        number: u32,
        /// The answer.
        answer: Written,
    },
    /// The store did not answer a write: it may be committed or not. It is sent again.
    Unreachable {
        /// From the order.
        number: u32,
    },
    /// All wake-ups of the row, oldest first.
    Heard {
        /// The row's count when they were read.
        wake_seq: u64,
        /// What they were.
        wakes: Vec<Wake>,
    },
    /// Somebody saw that the row has more wake-ups than it had.
    Woken {
        /// How many.
        wake_seq: u64,
    },
    /// The local lease (or the grace period) is over: calls that are open are unknown.
    CallsEnded,
    /// The own process was declared dead: the row is somebody else's.
    Died,
    /// The process is about to go.
    Drained,
    /// Time passed.
    Woke,
}

/// What holds a call back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Less than a third of the lease is left and it was not renewed in time: hand back.
    Lease,
    /// The breaker of its target is open: park.
    Target {
        /// The target.
        target: String,
        /// When to look at it again at the latest.
        after: Duration,
    },
    /// The call *was* made and failed, and the breaker says that its target is down: a pause
    /// becomes a wait for the target, and no attempt is used up. What such an answer means for the
    /// doubt, and whether it is a pause at all, stays as it is.
    Failing {
        /// The target.
        target: String,
        /// When to look at it again at the latest.
        after: Duration,
        /// Of the failure.
        class: Class,
        /// For people.
        error: Text,
    },
}

/// Orders, to be performed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Send this to the store; answer with [`Input::Written`] or [`Input::Unreachable`].
    Write(Write),
    /// Call a participant; answer with [`Input::Returned`] or [`Input::Held`]. Its intent is
    /// durable. Start it only while a third of the local lease is left; wait for that up to the
    /// lease's end.
    Call(Call),
    /// Read the row's wake-ups; answer with [`Input::Heard`], however long it takes.
    Hear,
    /// Drop this call: nobody listens to it any more.
    Abandon {
        /// From the order.
        call: u32,
    },
    /// Nothing more comes; drop the machine.
    Stop(Stopped),
}

/// One call of an action or a compensation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Counts the calls of this claim from 1.
    pub call: u32,
    /// Action or compensation, of which intent.
    pub position: Position,
    /// Of which step.
    pub step: StepName,
    /// The action or compensation itself, or its probe.
    pub asked: Asked,
    /// Which attempt of this intent it is, from 1 (for people and headers).
    pub attempt: u32,
    /// Sent with the call; the same for every attempt.
    pub key: IdempotencyKey,
    /// For a compensation: what the action returned; none when the action was in doubt.
    pub result_of_action: Option<Payload>,
    /// Results of the actions done so far, by step, oldest first: with the input they are the
    /// snapshot (R18). Those undone already are not among them.
    pub results: Vec<(StepName, Payload)>,
    /// Afterwards the outcome is unknown: drop the call and say so.
    pub time_limit: Duration,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Do it, or undo it.
    Act,
    /// Say whether the action was applied ([`Outcome::Done`] with its result, or
    /// [`Outcome::NotApplied`]); change nothing.
    Probe,
}

/// Why nothing more comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The end.
    Settled(State),
    /// Parked: it will be claimed again.
    Parked,
    /// Handed back to anyone, due at once.
    HandedBack,
    /// The row belongs to somebody else: forget it.
    Lost,
    /// Parked without an attempt because it can't be run here; to be reported.
    Unrunnable(Unrunnable),
    /// The store refuses even the bare record: the row stays owned, and is a stray to the lease.
    Refused(Text),
    /// The store took a record that fits no history known here, which is a bug. Nothing is called
    /// on such ground: a row that is still owned is a stray to the lease.
    Inconsistent(Text),
}

/// Why a transaction can't be run here (R17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unrunnable {
    /// No definition of this saga and version is registered.
    Missing(Capability),
    /// The definition is another than it was started with, or did not make this history.
    Mismatch(Text),
}
