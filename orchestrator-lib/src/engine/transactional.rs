//! Steps inside the store's own database transaction: the step's SQL and its record are one
//! commit.
//!
//! Decides nothing about the transaction: what is recorded is ordered by a copy of its machine,
//! which takes the machine's place when the record is committed. Until that is known nothing else
//! is told to the machine, so the two can't part.

use std::{pin::Pin, sync::Arc, time::Duration};

use ring_core::{
    machine::Machine as _,
    saga::{Attempt, Call, Class, Direction, Input, Order, Outcome, Payload, Text, Transaction},
    store::{To, Write, Written},
};
use ring_shell::clock;

use super::{Engine, call::Caller};
use crate::{
    error::chain,
    saga::Definition,
    step::transactional::Lent,
    store::{self, Fate, Limits, Open},
};

/// What a call gave.
pub(super) enum Said {
    /// Something for the machine.
    Fact(Input),
    /// Its SQL is done, in a database transaction that is still open.
    Ready(Box<Ready>),
}

/// A step that is done as soon as it is committed.
pub(super) struct Ready {
    pub(super) call: Call,
    result: Payload,
    open: Open,
    took: Duration,
}

/// A step that is being committed.
pub(super) struct Committing {
    machine: Box<Transaction>,
    call: Call,
    number: u32,
    to: To,
    took: Duration,
    fate: Pin<Box<dyn Future<Output = Fate> + Send>>,
}

/// Whether a ready step can be committed now.
pub(super) enum Turn {
    /// It is under way.
    Commit(Committing),
    /// The machine has a write or a question open: later.
    Wait(Box<Ready>),
    /// The machine records something else: it is told, and the SQL is undone.
    Told(Input),
}

/// What follows from a fate.
pub(super) enum Next {
    /// Committed, or lost: the copy goes on, and this is what its last write was.
    Follow(Box<Transaction>, To, Input),
    /// Undone: the machine hears it.
    Tell(Input),
    /// Something woke the transaction when it was to settle: the machine hears that, and the call
    /// is made again.
    Again(Call, Input),
}

/// Whether the call runs in the store's transaction.
pub(super) fn is_transactional(definition: &Definition, call: &Call) -> bool {
    let step = definition.steps.get(&call.step);
    step.is_some_and(|step| match call.position.direction {
        Direction::Forward => step.atomic,
        Direction::Compensating => step.atomic_compensation,
    })
}

/// Runs the step's SQL; on an error it is undone.
pub(super) async fn made(engine: &Engine, mut caller: Caller, call: Call) -> Said {
    let began = clock::now().mono;
    let open = match engine.store.begin(engine.step_limits()).await {
        Ok(open) => open,
        Err(error) => return Said::Fact(undone(call.call, &error)),
    };
    caller.shared.put(Lent::new(open.hand_out()));
    let given = caller.make(call.clone()).await;
    let Input::Returned {
        outcome: Outcome::Done(result),
        ..
    } = &given
    else {
        engine.store.roll_back(open).await;
        engine.called(&given, clock::now().mono.since(began));
        return Said::Fact(given);
    };
    Said::Ready(Box::new(Ready {
        call,
        result: result.clone(),
        open,
        took: clock::now().mono.since(began),
    }))
}

impl Ready {
    /// Begins the commit, when the machine would record this step now.
    pub(super) fn turn(self, engine: &Arc<Engine>, machine: &Transaction) -> Turn {
        let mut copy = machine.clone();
        let mut orders = Vec::new();
        let done = Input::Returned {
            call: self.call.call,
            outcome: Outcome::Done(self.result.clone()),
        };
        copy.handle(clock::now(), done.clone(), &mut orders);
        let write = match orders.pop() {
            None => return Turn::Wait(Box::new(self)),
            Some(Order::Write(write)) if orders.is_empty() && self.is_recorded_by(&write) => write,
            Some(_) => return Turn::Told(done),
        };
        let (engine, open) = (Arc::clone(engine), self.open);
        let (number, to) = (write.number, write.to.clone());
        Turn::Commit(Committing {
            machine: Box::new(copy),
            call: self.call,
            number,
            to,
            took: self.took,
            fate: Box::pin(async move {
                let limits = engine.step_limits();
                engine.store.commit(open, &write, limits).await
            }),
        })
    }

    fn is_recorded_by(&self, write: &Write) -> bool {
        write.entry.as_ref().is_some_and(|entry| {
            entry.position == self.call.position && matches!(entry.attempt, Attempt::Done(_))
        })
    }
}

impl Committing {
    /// Completes when it is known what became of it.
    pub(super) async fn fate(&mut self) -> Fate {
        self.fate.as_mut().await
    }

    pub(super) fn next(self, engine: &Engine, fate: Fate) -> Next {
        let call = self.call.call;
        let told = match fate {
            Fate::Written(Written::Woken { wake_seq }) => {
                return Next::Again(self.call, Input::Woken { wake_seq });
            }
            Fate::Written(Written::Invalid(why)) => failed(call, Class::Persistent, why),
            Fate::Written(
                answer @ (Written::Done { .. } | Written::Already { .. } | Written::Lost),
            ) => {
                engine.called_so("done", self.took);
                let number = self.number;
                return Next::Follow(self.machine, self.to, Input::Written { number, answer });
            }
            Fate::Undone(error) => {
                tracing::debug!(key = self.call.key.as_str(), error = %chain(&error), "undone");
                undone(call, &error)
            }
            Fate::Torn => {
                let why = "the step committed or rolled back the store's transaction itself: \
                           return instead. What it committed is not undone";
                tracing::error!(step = %self.call.step, key = self.call.key.as_str(), why);
                failed(call, Class::Persistent, Text::new(why))
            }
        };
        engine.called(&told, self.took);
        Next::Tell(told)
    }
}

impl Engine {
    fn step_limits(&self) -> Limits {
        Limits::within(self.timing.owner_lease)
    }
}

/// Nothing of it was applied. What the database refuses for good (a constraint at the commit) it
/// refuses again.
fn undone(call: u32, error: &store::Error) -> Input {
    let class = if error.refused_data() {
        Class::Persistent
    } else {
        Class::Transient
    };
    failed(call, class, Text::new(&chain(error)))
}

fn failed(call: u32, class: Class, error: Text) -> Input {
    Input::Returned {
        call,
        outcome: Outcome::Failed {
            class,
            error,
            retry_after: None,
        },
    }
}
