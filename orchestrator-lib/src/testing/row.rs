//! The one row of a run: a store in memory that keeps the rules of the real one, under claims that
//! may die.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ring_core::{
    id::{Nonce, RegionCode, StepName, TransactionId},
    machine::Machine as _,
    saga::{
        Attempt, Call, Class, Direction, Ending, Entry, Input, Order, Outcome, Payload, Position,
        Repeat, Text, Transaction, Wake,
    },
    store::{Claimed, Fence, Taken, To, Write, Written},
    time::{Mono, Now, Wall},
};

use super::{
    MOST_CALLS, Told,
    faults::{Faults, Moment, Script},
    nested::Nested,
};
use crate::{
    Ended, Output,
    context::{Here, Shared},
    engine::{Caller, Children},
    saga::Definition,
};

/// The row, and the clock.
pub(super) struct Row {
    pub(super) told: Told,
    claimed: Claimed,
    now: Now,
    writes: u32,
    reason: String,
    /// Calls that arrive when everything is over.
    late: Vec<Call>,
}

/// What one run is made with.
struct Stage<'a> {
    definition: &'a Arc<Definition>,
    shared: &'a Shared,
    children: Arc<Nested>,
    script: Script,
    /// Outcomes of the script that are not recorded yet.
    given: Vec<(String, Outcome)>,
    faults: Faults,
}

impl Row {
    pub(super) fn new(definition: &Definition, input: Payload, wakes: Vec<Wake>) -> Self {
        let runs = definition.plan.runs();
        let now = Now {
            wall: Wall(1_700_000_000_000),
            mono: Mono(0),
        };
        let claimed = Claimed {
            id: TransactionId::compose(now.wall, RegionCode::default(), 7),
            saga: runs.saga.clone(),
            version: runs.version,
            digest: runs.digest.clone(),
            fence: Fence {
                epoch: 1,
                nonce: Nonce(uuid::Uuid::nil()),
            },
            position: Position {
                direction: Direction::Forward,
                seq: 0,
            },
            doubt: false,
            attempts: 0,
            deaths: 0,
            wake_seq: u64::try_from(wakes.len()).unwrap_or(u64::MAX),
            wakes,
            created_at: now.wall,
            expires_at: now.wall.plus(definition.lifetime),
            opened_at: now.wall,
            progressed_at: now.wall,
            retry: None,
            claimed_at: now.wall,
            taken: Taken::Started,
            input,
            log: Vec::new(),
        };
        Self {
            told: Told {
                ended: None,
                calls: Vec::new(),
                paused: Duration::ZERO,
                lines: Vec::new(),
            },
            claimed,
            now,
            writes: 0,
            reason: String::new(),
            late: Vec::new(),
        }
    }

    /// Claims it until it has ended.
    pub(super) async fn run(
        &mut self,
        definition: &Arc<Definition>,
        shared: &Shared,
        script: Script,
        faults: Faults,
    ) {
        let mut stage = Stage {
            definition,
            shared,
            children: Arc::new(Nested::new(shared.clone())),
            script,
            given: Vec::new(),
            faults,
        };
        while self.told.ended.is_none() && self.told.calls.len() < MOST_CALLS {
            self.claim(&mut stage).await;
        }
        for call in std::mem::take(&mut self.late) {
            let what = format!("late {}", name(&call));
            let outcome = self.call(&stage, call).await;
            self.told.note(what, told(&outcome));
        }
    }

    /// One claim: until it is parked, at its end, or the process dies.
    async fn claim(&mut self, stage: &mut Stage<'_>) {
        let plan = Some(Arc::clone(&stage.definition.plan));
        self.claimed.claimed_at = self.now.wall;
        let mut machine = Transaction::new(plan, self.claimed.clone());
        self.claimed.taken = Taken::Due;
        let mut orders = Vec::new();
        let mut heard = VecDeque::from([Input::Claimed]);
        while self.told.calls.len() < MOST_CALLS {
            let input = match heard.pop_front() {
                Some(input) => input,
                None => self.rest(&machine),
            };
            machine.handle(self.now, input, &mut orders);
            for order in orders.drain(..) {
                match order {
                    Order::Write(write) => match self.write(stage, write) {
                        Some(input) => heard.push_back(input),
                        None => return,
                    },
                    Order::Call(call) => heard.push_back(self.answer(stage, call).await),
                    Order::Hear => heard.push_back(Input::Heard {
                        wake_seq: self.claimed.wake_seq,
                        wakes: self.claimed.wakes.clone(),
                    }),
                    Order::Abandon { .. } => {}
                    Order::Stop(_) => return,
                }
            }
        }
    }

    /// A call as the script and the faults have it.
    async fn answer(&mut self, stage: &mut Stage<'_>, call: Call) -> Input {
        let (number, attempt, name) = (call.call, call.attempt, name(&call));
        self.told.calls.push(name.clone());
        let outcome = if stage.faults.late.as_ref() == Some(&name) {
            stage.faults.late = None;
            self.late.push(call);
            unknown("no answer: it arrives later")
        } else if let Some(given) = stage.script.next(&name) {
            stage.given.push((name.clone(), given.clone()));
            given
        } else {
            let lost = stage.faults.lost.as_ref() == Some(&name);
            let mut outcome = self.call(stage, call.clone()).await;
            if stage.faults.twice && repeats(stage.definition, &call.step) {
                let again = self.call(stage, call).await;
                if again != outcome {
                    let differs = format!("{}, then {}", told(&outcome), told(&again));
                    self.told.note(format!("{name} twice"), differs);
                }
                outcome = again;
            }
            if lost {
                stage.faults.lost = None;
                outcome = unknown("the answer was lost");
            }
            outcome
        };
        self.told
            .note(format!("{name}, attempt {attempt}"), told(&outcome));
        Input::Returned {
            call: number,
            outcome,
        }
    }

    async fn call(&self, stage: &Stage<'_>, call: Call) -> Outcome {
        let caller = Caller {
            definition: Arc::clone(stage.definition),
            here: Here {
                transaction: self.claimed.id,
                saga: self.claimed.saga.clone(),
            },
            input: self.claimed.input.clone(),
            shared: stage.shared.clone(),
            children: Arc::clone(&stage.children) as Arc<dyn Children>,
        };
        caller.outcome(call).await
    }

    /// Lets time pass until the machine's next deadline.
    fn rest(&mut self, machine: &Transaction) -> Input {
        if let Some((pause, _)) = machine.wake_at().after(self.now) {
            self.pass(pause);
        }
        Input::Woke
    }

    fn pass(&mut self, pause: Duration) {
        self.told.paused += pause;
        self.now.wall = self.now.wall.plus(pause);
        self.now.mono = self.now.mono.plus(pause);
    }

    /// Stores; none when the process dies of it.
    fn write(&mut self, stage: &mut Stage<'_>, write: Write) -> Option<Input> {
        self.writes += 1;
        let dies = stage.faults.death.filter(|(at, _)| *at == self.writes);
        if let Some((_, Moment::Before)) = dies {
            self.told.note("the process dies", "before this write");
            self.claimed.taken = Taken::Orphaned;
            for (call, outcome) in std::mem::take(&mut stage.given).into_iter().rev() {
                stage.script.again(&call, outcome);
            }
            return None;
        }
        let number = write.number;
        self.store(write);
        stage.given.clear();
        if dies.is_some() && self.told.ended.is_none() {
            self.told.note("the process dies", "after this write");
            self.claimed.taken = Taken::Orphaned;
            return None;
        }
        let wake_seq = self.claimed.wake_seq;
        let answer = Written::Done { wake_seq };
        Some(Input::Written { number, answer })
    }

    fn store(&mut self, write: Write) {
        if let Some(entry) = write.entry {
            self.record(entry);
        }
        match write.to {
            To::Next(position) => {
                self.claimed.position = position;
                (self.claimed.attempts, self.claimed.doubt) = (0, false);
                self.claimed.opened_at = self.now.wall;
                self.claimed.progressed_at = self.now.wall;
            }
            To::Stay => self.claimed.progressed_at = self.now.wall,
            To::Park {
                after,
                attempts,
                doubt,
                why,
                ..
            } => {
                self.told.note("paused", format!("{after:?}: {why}"));
                let left = self.claimed.expires_at.since(self.now.wall);
                self.pass(after.min(left));
                (self.claimed.attempts, self.claimed.doubt) = (attempts, doubt);
            }
            To::Settle { ending, why } => {
                let said = why.map_or_else(|| self.reason.clone(), |why| why.to_string());
                self.told.ended = Some(match ending {
                    Ending::Completed(result) => Ended::Completed(Output(result)),
                    Ending::Compensated => Ended::Compensated { reason: said },
                    Ending::Terminated => Ended::Terminated { reason: said },
                    Ending::Disabled => Ended::Disabled { reason: said },
                });
            }
            To::HandBack { attempts, doubt } => {
                (self.claimed.attempts, self.claimed.doubt) = (attempts, doubt);
            }
        }
    }

    /// The last record of each position, as the store keeps them.
    fn record(&mut self, entry: Entry) {
        if let Attempt::Refused { error, .. } = &entry.attempt {
            self.reason = format!("{}: {error}", entry.step);
        }
        self.claimed.log.retain(|e| e.position != entry.position);
        self.claimed.log.push(entry);
    }

    /// Sends a completed transaction back from its last step.
    pub(super) fn reopen(&mut self) {
        let forward = |e: &&Entry| {
            e.position.direction == Direction::Forward && matches!(e.attempt, Attempt::Done(_))
        };
        let last = self
            .claimed
            .log
            .iter()
            .filter(forward)
            .map(|e| e.position.seq)
            .max();
        self.claimed.position = Position {
            direction: Direction::Compensating,
            seq: last.unwrap_or(0),
        };
        (self.claimed.attempts, self.claimed.doubt) = (0, false);
        self.told.ended = None;
    }
}

/// Whether the engine ever calls a step's action twice.
fn repeats(definition: &Definition, step: &StepName) -> bool {
    let planned = definition.plan.steps().iter().find(|s| s.name == *step);
    planned.is_none_or(|s| s.repeat != Repeat::Never)
}

fn name(call: &Call) -> String {
    match call.position.direction {
        Direction::Forward => call.step.to_string(),
        Direction::Compensating => format!("undo {}", call.step),
    }
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(result) => format!("done: {}", result.as_str()),
        Outcome::Waits => "waits".to_owned(),
        Outcome::NotApplied => "was not applied".to_owned(),
        Outcome::Failed { class, error, .. } => format!("{}: {error}", class.as_str()),
    }
}

fn unknown(why: &str) -> Outcome {
    Outcome::Failed {
        class: Class::Unknown,
        error: Text::new(why),
        retry_after: None,
    }
}
