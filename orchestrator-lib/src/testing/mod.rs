//! A user's saga without servers (feature `testing`): the real machine and the real functions, a
//! store in memory, and time that passes only in pauses.
//!
//! Decides nothing that the engine does not: what is called, retried and undone is the machine's.
//! [Transactional steps](crate::Step::transactional) need the saga store's database, so here they
//! fail and say so: try those with a node.
//!
//! Two ways to use it. [`Trial`] runs one story: *given* what steps answer, *when* it runs, *expect*
//! how it ended and what was called. [`Check`] runs many: every step failing in every class, every
//! call twice, a death at every write, replies that are lost and calls that arrive late; it
//! compares what can be seen of the participants' world and tells where it differs.
//!
//! ```
//! # use orchestrator_lib::{Context, Saga, Step, StepError, testing::Trial};
//! # async fn reserve(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
//! # async fn release(_: Context, _: u32, _: Option<()>) -> Result<(), StepError> { Ok(()) }
//! # async fn charge(_: Context, _: u32) -> Result<(), StepError> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let saga = Saga::<u32>::new("order", 1)
//!     .step(Step::new("reserve", reserve).compensate(release))
//!     .step(Step::new("charge", charge))
//!     .build()?;
//! Trial::of(&saga)
//!     .given("charge", StepError::business("declined"))
//!     .run(7)
//!     .await?
//!     .expect_undone()
//!     .expect_calls(["reserve", "charge", "undo reserve"]);
//! # Ok(()) }
//! ```

mod check;
mod faults;
mod findings;
mod nested;
mod row;
mod told;

use std::{any::Any, collections::VecDeque, sync::Arc};

use ring_core::{
    id::StepName,
    saga::{Kind, Outcome, Payload, Text, Wake},
};
use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    check::Check,
    findings::{Finding, Findings},
    told::{Line, Told},
};
use self::{
    faults::{Faults, Script},
    row::Row,
};
use crate::{Error, Key, Saga, StepError, context::Shared, engine::failed, saga::Definition};

/// A trial ends after so many calls: a saga that would be retried for ever shows itself.
pub const MOST_CALLS: usize = 10_000;

/// A saga on trial: one story.
#[derive(Clone, Debug)]
pub struct Trial {
    definition: Arc<Definition>,
    shared: Shared,
    script: Script,
    wakes: Vec<Wake>,
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
            script: Script::default(),
            wakes: Vec::new(),
        }
    }

    /// What steps find with [`Context::shared`](crate::Context::shared).
    #[must_use]
    pub fn provide<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.shared.put(value);
        self
    }

    /// The next call of this step fails so, without being made: `charge`, or `undo charge`. Given
    /// several times, one call each, in this order; then the functions themselves are called.
    #[must_use]
    pub fn given(mut self, call: &str, error: StepError) -> Self {
        let outcome = failed(&error, self.definition.classifier.as_ref());
        self.script.push(call, outcome);
        self
    }

    /// The next call of this step gives this result, without being made. A value that is no JSON
    /// fails the call.
    #[must_use]
    pub fn given_result<R: Serialize>(mut self, call: &str, result: &R) -> Self {
        let json = serde_json::to_string(result).map_err(|e| e.to_string());
        let made = json.and_then(|json| Payload::new(json).map_err(|e| e.to_string()));
        let outcome = match made {
            Ok(result) => Outcome::Done(result),
            Err(why) => failed(&StepError::persistent(why), None),
        };
        self.script.push(call, outcome);
        self
    }

    /// Somebody has signalled before the transaction starts.
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::InputTooLarge`], [`Error::StepName`], as
    /// [`Node::signal`](crate::Node::signal).
    pub fn signal<R: Serialize>(
        mut self,
        step: impl Into<Key<R>>,
        value: &R,
    ) -> Result<Self, Error> {
        let name = StepName::new(step.into().name());
        let name = name.map_err(|e| Error::StepName(e.to_string()))?;
        let body = payload(value)?;
        self.wakes.push(Wake::Signal { name, body });
        Ok(self)
    }

    /// Somebody has cancelled before the transaction starts.
    #[must_use]
    pub fn cancelled(mut self, why: &str) -> Self {
        self.wakes.push(Wake::Cancel {
            why: Text::new(why),
        });
        self
    }

    /// Runs a transaction to its end.
    ///
    /// # Errors
    /// [`Error::Input`] and [`Error::InputTooLarge`], as a start would; [`Error::StepName`] when an
    /// answer or a signal was given for a step that the saga doesn't have.
    pub async fn run<I: Serialize>(&self, input: I) -> Result<Told, Error> {
        self.names()?;
        Ok(self.go(payload(&input)?, Faults::default()).await)
    }

    /// An answer or a signal for a step that does not exist would make a test pass that tests
    /// nothing.
    fn names(&self) -> Result<(), Error> {
        let plan = &self.definition.plan;
        let kind = |name: &str| {
            let step = plan.steps().iter().find(|s| s.name.as_str() == name);
            step.map(|s| &s.kind)
        };
        let calls = self
            .script
            .calls()
            .map(|call| call.strip_prefix("undo ").unwrap_or(call));
        let called =
            |name: &&str| !matches!(kind(name), Some(Kind::Action | Kind::Saga | Kind::Decide));
        let signals = self.wakes.iter().filter_map(|wake| match wake {
            Wake::Signal { name, .. } => Some(name.as_str()),
            Wake::Child { .. } | Wake::Cancel { .. } => None,
        });
        let awaited = |name: &&str| !matches!(kind(name), Some(Kind::Signal { .. }));
        let mut wrong = calls.filter(called).chain(signals.filter(awaited));
        match wrong.next() {
            None => Ok(()),
            Some(name) => {
                let saga = &plan.runs().saga;
                let text = format!("{saga} has no step {name} that is called, or signalled, so");
                Err(Error::StepName(text))
            }
        }
    }

    async fn go(&self, input: Payload, faults: Faults) -> Told {
        let script = self.script.clone();
        let mut row = Row::new(&self.definition, input, self.wakes.clone());
        row.run(&self.definition, &self.shared, script, faults)
            .await;
        row.told
    }
}

fn payload<T: Serialize>(value: &T) -> Result<Payload, Error> {
    let json = serde_json::to_string(value).map_err(Error::Input)?;
    Payload::new(json).map_err(|e| Error::InputTooLarge(e.to_string()))
}

/// Outcomes to come, by call.
type Queue = VecDeque<Outcome>;

#[cfg(test)]
mod tests;
