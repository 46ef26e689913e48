//! A user's saga without servers (feature `testing`): the real machine and the real functions,
//! a store that always answers, and time that passes only in pauses.
//!
//! Decides nothing that the engine does not: what is called, retried and undone is the machine's.
//!
//! ```
//! # use orchestrator_lib::{Context, Saga, Step, StepError, testing::Trial};
//! # async fn reserve(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
//! # async fn release(_: Context, _: u32, _: Option<()>) -> Result<(), StepError> { Ok(()) }
//! async fn charge(_: Context, _: u32) -> Result<(), StepError> {
//!     Err(StepError::business("declined"))
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let saga = Saga::<u32>::new("order", 1)
//!     .step(Step::new("reserve", reserve).compensate(release))
//!     .step(Step::new("charge", charge))
//!     .build()?;
//! let told = Trial::of(&saga).run(7).await?;
//! assert_eq!(told.calls, ["reserve", "charge", "undo reserve"]);
//! # Ok(()) }
//! ```

use std::{any::Any, collections::VecDeque, sync::Arc, time::Duration};

use ring_core::{
    id::{Nonce, RegionCode, TransactionId},
    machine::Machine as _,
    saga::{
        Call, Direction, Ending, Entry, Input, Order, Outcome, Payload, Position, Stopped,
        Transaction,
    },
    store::{Claimed, Fence, Taken, To, Write, Written},
    time::{Mono, Now, Wall},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Ended, Error, Output, Saga,
    context::{Here, Shared},
    engine::{Answer, Caller, Children},
    saga::Definition,
};

/// A trial ends after so many calls: a saga that would be retried for ever shows itself.
pub const MOST_CALLS: usize = 10_000;

/// A saga on trial.
#[derive(Debug)]
pub struct Trial {
    definition: Arc<Definition>,
    shared: Shared,
}

/// What a trial saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How it ended; none after [`MOST_CALLS`].
    pub ended: Option<Ended>,
    /// Every call in order: a step's name, or `undo` and the name.
    pub calls: Vec<String>,
    /// How much time would have passed in pauses.
    pub paused: Duration,
}

/// The row of the one transaction.
struct Row {
    claimed: Claimed,
    now: Now,
    told: Told,
    reason: String,
    /// Answers that the machine has not heard yet.
    heard: VecDeque<Input>,
}

impl Trial {
    /// Puts a saga on trial.
    #[must_use]
    pub fn of<I>(saga: &Saga<I>) -> Self
    where
        I: Serialize + DeserializeOwned + Send + 'static,
    {
        Self {
            definition: Arc::clone(saga.definition()),
            shared: Shared::default(),
        }
    }

    /// What steps find with [`Context::shared`](crate::Context::shared).
    #[must_use]
    pub fn provide<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.shared.put(value);
        self
    }

    /// Runs a transaction to its end.
    ///
    /// # Errors
    /// [`Error::Input`] and [`Error::InputTooLarge`], as a start would.
    pub async fn run<I: Serialize>(&self, input: I) -> Result<Told, Error> {
        let json = serde_json::to_string(&input).map_err(Error::Input)?;
        let input = Payload::new(json).map_err(|e| Error::InputTooLarge(e.to_string()))?;
        let mut row = Row::new(&self.definition, input);
        while row.told.ended.is_none() && row.told.calls.len() < MOST_CALLS {
            self.claim(&mut row).await;
        }
        Ok(row.told)
    }

    /// One claim: until it is parked or at its end.
    async fn claim(&self, row: &mut Row) {
        let plan = Some(Arc::clone(&self.definition.plan));
        row.claimed.claimed_at = row.now.wall;
        let mut machine = Transaction::new(plan, row.claimed.clone());
        let mut orders = Vec::new();
        row.heard = VecDeque::from([Input::Claimed]);
        while row.told.calls.len() < MOST_CALLS {
            let input = match row.heard.pop_front() {
                Some(input) => input,
                None => row.rest(&machine),
            };
            machine.handle(row.now, input, &mut orders);
            for order in orders.drain(..) {
                match order {
                    Order::Write(write) => row.write(write),
                    Order::Call(call) => {
                        let name = match call.position.direction {
                            Direction::Forward => call.step.to_string(),
                            Direction::Compensating => format!("undo {}", call.step),
                        };
                        row.told.calls.push(name);
                        let answer = self.caller(row).make(call).await;
                        row.heard.push_back(answer);
                    }
                    Order::Hear => {
                        let (wake_seq, wakes) = (0, Vec::new());
                        row.heard.push_back(Input::Heard { wake_seq, wakes });
                    }
                    Order::Abandon { .. } => {}
                    Order::Stop(stopped) => {
                        debug_assert!(!matches!(stopped, Stopped::Lost));
                        return;
                    }
                }
            }
        }
    }

    fn caller(&self, row: &Row) -> Caller {
        Caller {
            definition: Arc::clone(&self.definition),
            here: Here {
                transaction: row.claimed.id,
                saga: row.claimed.saga.clone(),
            },
            input: row.claimed.input.clone(),
            shared: self.shared.clone(),
            children: Arc::new(NoChildren),
        }
    }
}

/// A trial has no other transactions: a child is done at once and undone at once.
struct NoChildren;

impl Children for NoChildren {
    fn start(&self, _: Arc<Definition>, _: Call, _: Payload) -> Answer<'_> {
        Box::pin(std::future::ready(Ok(Outcome::Done(Payload::null()))))
    }

    fn undo(&self, _: Arc<Definition>, _: Call) -> Answer<'_> {
        Box::pin(std::future::ready(Ok(Outcome::Done(Payload::null()))))
    }
}

impl Row {
    fn new(definition: &Definition, input: Payload) -> Self {
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
            wake_seq: 0,
            created_at: now.wall,
            expires_at: now.wall.plus(definition.lifetime),
            opened_at: now.wall,
            progressed_at: now.wall,
            retry: None,
            wakes: Vec::new(),
            claimed_at: now.wall,
            taken: Taken::Started,
            input,
            log: Vec::new(),
        };
        Self {
            claimed,
            now,
            told: Told {
                ended: None,
                calls: Vec::new(),
                paused: Duration::ZERO,
            },
            reason: String::new(),
            heard: VecDeque::new(),
        }
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

    fn write(&mut self, write: Write) {
        let number = write.number;
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
            To::Stay => {}
            To::Park {
                after,
                attempts,
                doubt,
                ..
            } => {
                self.pass(after);
                (self.claimed.attempts, self.claimed.doubt) = (attempts, doubt);
                self.claimed.taken = Taken::Due;
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
        let answer = Written::Done { wake_seq: 0 };
        self.heard.push_back(Input::Written { number, answer });
    }

    /// The last record of each position, as the store keeps them.
    fn record(&mut self, entry: Entry) {
        if let ring_core::saga::Attempt::Refused { error, .. } = &entry.attempt {
            self.reason = format!("{}: {error}", entry.step);
        }
        self.claimed.log.retain(|e| e.position != entry.position);
        self.claimed.log.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Retry, Step, StepError};

    async fn away(cx: Context, _: u32) -> Result<u32, StepError> {
        let working = cx.shared::<u32>()?;
        if cx.attempt() < *working {
            return Err(StepError::transient("away"));
        }
        Ok(cx.attempt())
    }

    #[tokio::test]
    async fn pauses_pass_at_once_and_are_told() {
        let hour = Retry::exponential(Duration::from_secs(3600)).cap(Duration::from_secs(7200));
        let saga = Saga::<u32>::new("s", 1)
            .step(Step::new("a", away).retry(hour))
            .build()
            .unwrap();
        let told = Trial::of(&saga).provide(6_u32).run(1).await.unwrap();
        assert_eq!(told.calls.len(), 6);
        assert!(told.paused > Duration::from_secs(3600), "{told:?}");
        let Some(Ended::Completed(output)) = told.ended else {
            panic!("{told:?}");
        };
        assert_eq!(output.read::<u32>().unwrap(), 6);
    }

    #[tokio::test]
    async fn what_is_never_done_outlives_its_lifetime() {
        let saga = Saga::<u32>::new("s", 1)
            .step(Step::new("a", away).retry(Retry::default().until_the_lifetime_ends()))
            .build()
            .unwrap();
        let told = Trial::of(&saga).provide(u32::MAX).run(1).await.unwrap();
        assert!(
            matches!(told.ended, Some(Ended::Disabled { .. })),
            "{told:?}"
        );
    }
}
