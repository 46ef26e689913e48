//! One transaction, one task: drives its machine and performs its orders.
//!
//! Decides nothing: the machine orders calls and at most one write; here they are awaited
//! beside the lease, the drain, wake-ups and the clock. A write under way is never dropped: only its answer
//! ends it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use ring_core::{
    id::{StepName, TargetName, TransactionId},
    machine::Machine as _,
    saga::{Call, Ending, Hold, Input, Order, Payload, Stopped, Transaction},
    store::{To, Write},
};
use ring_shell::clock;
use tokio::sync::watch;

use super::{
    Engine,
    call::Caller,
    child::Nursery,
    inflight::Slot,
    lease::Fate,
    transactional::{Committing, Next, Ready, Said, Turn, is_transactional, made},
};
use crate::{context::Here, error::chain, saga::Definition, telemetry::WRITE_SECONDS};

type Answer = Pin<Box<dyn Future<Output = Input> + Send>>;

/// Nothing to wait for by the clock.
const NEVER: Duration = Duration::from_secs(3600);

/// Wake-ups that could not be read are read again after this, doubling …
const FIRST_HEARING: Duration = Duration::from_millis(50);
/// … up to this, as for writes.
const LAST_HEARING: Duration = Duration::from_secs(2);

/// A call under way.
struct Calling {
    number: u32,
    answer: Pin<Box<dyn Future<Output = Said> + Send>>,
}

impl Future for Calling {
    type Output = Said;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Said> {
        self.answer.as_mut().poll(cx)
    }
}

/// How a run ended.
pub(super) struct Ran {
    pub(super) stopped: Stopped,
    /// The result, when it completed here.
    pub(super) result: Option<Payload>,
    /// Why it settled, for people.
    pub(super) why: Option<String>,
}

/// A transaction that runs here.
pub(super) struct Run {
    engine: Arc<Engine>,
    definition: Option<Arc<Definition>>,
    machine: Transaction,
    here: Here,
    fates: watch::Receiver<Fate>,
    seen: Fate,
    slot: Slot,
    calls: FuturesUnordered<Calling>,
    /// Steps whose SQL is done and not committed.
    ready: Vec<Ready>,
    /// While one is being committed, nothing but the own death is told to the machine.
    commit: Option<Committing>,
    write: Option<Answer>,
    hear: Option<Answer>,
    last: Option<To>,
}

impl Run {
    pub(super) fn new(
        engine: Arc<Engine>,
        definition: Option<Arc<Definition>>,
        machine: Transaction,
        here: Here,
        slot: Slot,
    ) -> Self {
        let mut fates = engine.lease.fates();
        let seen = *fates.borrow_and_update();
        // An incarnation that died before this is seen at the first look.
        fates.mark_changed();
        Self {
            engine,
            definition,
            machine,
            here,
            fates,
            seen,
            slot,
            calls: FuturesUnordered::new(),
            ready: Vec::new(),
            commit: None,
            write: None,
            hear: None,
            last: None,
        }
    }

    /// Runs it until nothing more comes.
    pub(super) async fn run(mut self) -> Ran {
        let mut input = Input::Claimed;
        let mut orders = Vec::new();
        if self.seen.drained {
            // What a look brought to a node that leaves goes back before anything is called.
            self.machine
                .handle(clock::now(), Input::Drained, &mut orders);
        }
        loop {
            self.machine.handle(clock::now(), input, &mut orders);
            for order in orders.drain(..) {
                if let Some(stopped) = self.perform(order) {
                    return self.ran(stopped);
                }
            }
            self.slot.calling(self.machine.is_calling());
            input = self.next().await;
        }
    }

    fn perform(&mut self, order: Order) -> Option<Stopped> {
        match order {
            Order::Write(write) => {
                self.last = Some(write.to.clone());
                self.write = Some(Box::pin(written(Arc::clone(&self.engine), write)));
            }
            Order::Call(call) => self.call(call),
            Order::Hear => {
                let (engine, id) = (Arc::clone(&self.engine), self.machine.id());
                self.hear = Some(Box::pin(heard(engine, id)));
            }
            Order::Abandon { call } => {
                let all = std::mem::take(&mut self.calls);
                self.calls = all.into_iter().filter(|c| c.number != call).collect();
                self.ready.retain(|ready| ready.call.call != call);
            }
            Order::Stop(stopped) => return Some(stopped),
        }
        None
    }

    fn call(&mut self, call: Call) {
        let number = call.call;
        // The machine calls only what a definition planned.
        if let Some(definition) = self.definition.clone() {
            let answer = self.calling(definition, call);
            self.calls.push(Calling { number, answer });
        }
    }

    fn calling(
        &self,
        definition: Arc<Definition>,
        call: Call,
    ) -> Pin<Box<dyn Future<Output = Said> + Send>> {
        let transactional = is_transactional(&definition, &call);
        let caller = Caller {
            definition,
            here: self.here.clone(),
            input: self.machine.input().clone(),
            shared: self.engine.shared.clone(),
            children: Arc::new(Nursery::new(
                Arc::clone(&self.engine),
                self.machine.id(),
                self.machine.fence(),
            )),
        };
        let engine = Arc::clone(&self.engine);
        // The store itself is what a transactional step calls.
        let target = self.target(&call.step).filter(|_| !transactional).cloned();
        let id = self.here.transaction;
        Box::pin(async move {
            let number = call.call;
            let held = |by| Said::Fact(Input::Held { call: number, by });
            let ticket = match target {
                Some(target) => match engine.ticket(target, id, call.attempt > 1).await {
                    Ok(ticket) => Some(ticket),
                    Err(by) => return held(by),
                },
                None => None,
            };
            if !engine.lease.may_start().await {
                return held(Hold::Lease);
            }
            if transactional {
                return made(&engine, caller, call).await;
            }
            let began = clock::now().mono;
            let input = caller.make(call).await;
            engine.called(&input, clock::now().mono.since(began));
            Said::Fact(match ticket {
                Some(ticket) => ticket.ended(input),
                None => input,
            })
        })
    }

    /// What a step calls.
    fn target(&self, step: &StepName) -> Option<&TargetName> {
        self.definition.as_ref()?.steps.get(step)?.target()
    }

    /// The next fact: the lease's and the drain's come first.
    async fn next(&mut self) -> Input {
        loop {
            self.commit_ready();
            if let Some(commit) = self.commit.take() {
                return self.committed(commit).await;
            }
            let sleep = match self.machine.wake_at().after(clock::now()) {
                Some((sleep, _)) => sleep,
                None => NEVER,
            };
            tokio::select! {
                biased;
                changed = self.fates.changed() => {
                    if changed.is_err() {
                        // The engine is gone, and soon this task is.
                        return Input::Died;
                    }
                    if let Some(input) = self.fate() {
                        return input;
                    }
                }
                input = answer(&mut self.write) => return input,
                input = answer(&mut self.hear) => return input,
                Some(said) = self.calls.next() => match said {
                    Said::Fact(input) => return input,
                    Said::Ready(ready) => self.ready.push(*ready),
                },
                wake_seq = self.slot.woken() => return Input::Woken { wake_seq },
                () = tokio::time::sleep(sleep) => return Input::Woke,
            }
        }
    }

    /// Begins to commit a step that is ready, as soon as the machine would record it.
    fn commit_ready(&mut self) {
        if let Some(ready) = self.ready.pop() {
            match ready.turn(&self.engine, &self.machine) {
                Turn::Commit(commit) => self.commit = Some(commit),
                Turn::Wait(ready) => self.ready.push(*ready),
                Turn::Told(input) => self.calls.push(Calling {
                    number: 0,
                    answer: Box::pin(std::future::ready(Said::Fact(input))),
                }),
            }
        }
    }

    /// Waits for a commit's fate. Only a death is heard before: the row is then somebody else's,
    /// and the connection is closed.
    async fn committed(&mut self, mut commit: Committing) -> Input {
        let mut fates = self.fates.clone();
        let own = Some(self.slot.incarnation());
        let fate = tokio::select! {
            biased;
            _ = fates.wait_for(|fate| fate.dead >= own) => return Input::Died,
            fate = commit.fate() => fate,
        };
        match commit.next(&self.engine, fate) {
            Next::Follow(machine, to, input) => {
                self.machine = *machine;
                self.last = Some(to);
                input
            }
            Next::Tell(input) => input,
            Next::Again(call, input) => {
                self.call(call);
                input
            }
        }
    }

    fn fate(&mut self) -> Option<Input> {
        let now = *self.fates.borrow_and_update();
        let before = std::mem::replace(&mut self.seen, now);
        if now.dead >= Some(self.slot.incarnation()) {
            Some(Input::Died)
        } else if now.drained && !before.drained {
            // A drain and ended calls can come together: the second is seen at the next look.
            self.seen.calls_ended = before.calls_ended;
            self.fates.mark_changed();
            Some(Input::Drained)
        } else if now.calls_ended != before.calls_ended {
            Some(Input::CallsEnded)
        } else {
            None
        }
    }

    fn ran(self, stopped: Stopped) -> Ran {
        let (result, why) = match self.last {
            Some(To::Settle { ending, why }) => {
                let result = match ending {
                    Ending::Completed(result) => Some(result),
                    Ending::Compensated | Ending::Terminated | Ending::Disabled => None,
                };
                (result, why.map(|why| why.as_str().to_owned()))
            }
            Some(To::Next(_) | To::Stay | To::Park { .. } | To::HandBack { .. }) | None => {
                (None, None)
            }
        };
        Ran {
            stopped,
            result,
            why,
        }
    }
}

/// The wake-ups of a row, however long the store takes: until then nothing goes on here, and what
/// becomes of the row meanwhile is the lease's matter.
async fn heard(engine: Arc<Engine>, id: TransactionId) -> Input {
    let mut pause = FIRST_HEARING;
    loop {
        match engine.store.hear(id).await {
            Ok((wake_seq, wakes)) => return Input::Heard { wake_seq, wakes },
            Err(error) => tracing::debug!(%id, %error, "wake-ups were not read"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_HEARING);
    }
}

async fn written(engine: Arc<Engine>, write: Write) -> Input {
    let number = write.number;
    let began = clock::now().mono;
    let answer = engine.store.write(write).await;
    engine
        .meter
        .took(WRITE_SECONDS, clock::now().mono.since(began));
    match answer {
        Ok(answer) => Input::Written { number, answer },
        Err(error) => {
            if error.is_unreachable() || error.is_conflict() {
                tracing::debug!(%error, "a write was not answered");
            } else {
                tracing::error!(error = %chain(&error), "the store refuses writes");
            }
            Input::Unreachable { number }
        }
    }
}

/// The answer, once; while there is nothing to be answered, never.
async fn answer(pending: &mut Option<Answer>) -> Input {
    match pending {
        Some(answer) => {
            let input = answer.await;
            *pending = None;
            input
        }
        None => std::future::pending().await,
    }
}
