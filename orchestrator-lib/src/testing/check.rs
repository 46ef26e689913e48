//! Many runs of one saga, each with one thing going wrong, and what must be the same after all of
//! them.
//!
//! | loop | must hold |
//! |---|---|
//! | every step fails, in every class | it ends; undone means: the world looks as before |
//! | every call is made twice | the same answer, and the world looks as after one call |
//! | the process dies at every write | the end and the world are those of an undisturbed run |
//! | every answer is lost once | the same |
//! | every action arrives after everything is over | the same; after an undo, it changes nothing |

use std::{any::Any, fmt, sync::Arc};

use ring_core::saga::{Class, Kind, PlannedStep, Recovery, Repeat, Text};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Faults, Trial,
    faults::Moment,
    findings::{Findings, Ran},
    payload,
};
use crate::{Error, Saga, StepError};

/// Most writes of a run at which it is killed.
const MOST_WRITES: u32 = 2_000;

/// A saga under every fault that the engine promises to survive.
///
/// ```
/// # use std::{collections::BTreeMap, sync::Mutex};
/// # use orchestrator_lib::{Context, Saga, Step, StepError, testing::Check};
/// /// Accounts that know the keys of what was booked.
/// #[derive(Default)]
/// struct Bank(Mutex<BTreeMap<String, i64>>);
///
/// async fn debit(cx: Context, cents: i64) -> Result<(), StepError> {
///     let bank = cx.shared::<Bank>()?;
///     let mut booked = bank.0.lock().unwrap();
///     // A late action finds the mark of its compensation and books nothing.
///     booked.entry(cx.action_key()).or_insert(-cents);
///     Ok(())
/// }
/// async fn refund(cx: Context, _: i64, _: Option<()>) -> Result<(), StepError> {
///     let bank = cx.shared::<Bank>()?;
///     bank.0.lock().unwrap().insert(cx.action_key(), 0);
///     Ok(())
/// }
/// # async fn ship(_: Context, _: i64) -> Result<(), StepError> { Ok(()) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let saga = Saga::<i64>::new("order", 1)
///     .step(Step::new("debit", debit).compensate(refund))
///     .step(Step::new("ship", ship))
///     .build()?;
/// let balance = |bank: &Bank| bank.0.lock().unwrap().values().sum::<i64>();
/// Check::of(&saga, 100).world(Bank::default, balance).all().await?.assert_none();
/// # Ok(()) }
/// ```
pub struct Check {
    trial: Trial,
    input: Result<ring_core::saga::Payload, Error>,
    world: Option<World>,
}

/// How a fresh world is made for a run, and what can be seen of it.
struct World {
    make: Box<dyn Fn(Trial) -> (Trial, Seen) + Send + Sync>,
}

/// What can be seen of a run's world, as text.
type Seen = Box<dyn Fn() -> String + Send + Sync>;

impl Check {
    /// Checks a saga with this input.
    #[must_use]
    pub fn of<I>(saga: &Saga<I>, input: I) -> Self
    where
        I: Serialize + DeserializeOwned + Send + 'static,
    {
        Self {
            trial: Trial::of(saga),
            input: payload(&input),
            world: None,
        }
    }

    /// What every run has besides its world: answers given, signals, things provided.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Trial) -> Trial) -> Self {
        self.trial = change(self.trial);
        self
    }

    /// The participants' world: made anew for each run, found by steps with
    /// [`Context::shared`](crate::Context::shared), and looked at after it. What is seen is
    /// compared by its `Debug` text.
    #[must_use]
    pub fn world<W, S>(
        mut self,
        make: impl Fn() -> W + Send + Sync + 'static,
        see: impl Fn(&W) -> S + Send + Sync + 'static,
    ) -> Self
    where
        W: Any + Send + Sync,
        S: fmt::Debug,
    {
        let see = Arc::new(see);
        self.world = Some(World {
            make: Box::new(move |mut trial| {
                let world = Arc::new(make());
                trial.shared.put_shared(Arc::clone(&world));
                let see = Arc::clone(&see);
                (trial, Box::new(move || format!("{:?}", see(&world))))
            }),
        });
        self
    }

    /// All loops.
    ///
    /// # Errors
    /// [`Error::Input`] and [`Error::InputTooLarge`], as a start would.
    pub async fn all(self) -> Result<Findings, Error> {
        // What is wrong without any fault would only be repeated in every case.
        let calm = self.run(self.trial.clone(), Faults::default()).await?;
        let mut all = Findings::default();
        all.ended("undisturbed", &calm);
        if !all.is_empty() {
            return Ok(all);
        }
        all.0.extend(self.fail_every_step().await?.0);
        all.0.extend(self.run_twice().await?.0);
        all.0.extend(self.kill_at_every_write().await?.0);
        all.0.extend(self.lose_every_answer().await?.0);
        all.0.extend(self.deliver_late().await?.0);
        Ok(all)
    }

    /// Every action fails in every class, and every compensation once.
    ///
    /// # Errors
    /// As for [`Check::all`].
    pub async fn fail_every_step(&self) -> Result<Findings, Error> {
        let mut found = Findings::default();
        for step in self.actions() {
            for class in Class::ALL {
                let trial = self.trial.clone().given(&step, error(class));
                let ran = self.run(trial, Faults::default()).await?;
                let case = format!("{step} fails once, {}", class.as_str());
                found.ended(&case, &ran);
                // Undone on the way back, too, when the compensation fails at first.
                let trial = self
                    .trial
                    .clone()
                    .given(&step, error(class))
                    .given(&format!("undo {step}"), error(Class::Transient));
                let ran = self.run(trial, Faults::default()).await?;
                found.ended(&format!("{case}, and its undo at first"), &ran);
            }
        }
        Ok(found)
    }

    /// Every action and every compensation is called twice.
    ///
    /// # Errors
    /// As for [`Check::all`].
    pub async fn run_twice(&self) -> Result<Findings, Error> {
        let mut found = Findings::default();
        let twice = || Faults {
            twice: true,
            ..Faults::default()
        };
        for (case, trial) in self.ways() {
            let once = self.run(trial.clone(), Faults::default()).await?;
            let ran = self.run(trial, twice()).await?;
            found.same(&format!("every call twice, {case}"), &ran, &once);
            let differs = ran.told.lines.iter().find(|l| l.what.ends_with(" twice"));
            if let Some(line) = differs {
                let problem = format!(
                    "{}: other answers to the same key ({})",
                    line.what, line.how
                );
                found.push(&format!("every call twice, {case}"), problem, &ran.told);
            }
        }
        Ok(found)
    }

    /// The process dies before and after every write, forward and on the way back.
    ///
    /// # Errors
    /// As for [`Check::all`].
    pub async fn kill_at_every_write(&self) -> Result<Findings, Error> {
        let mut found = Findings::default();
        for (case, trial) in self.ways() {
            let calm = self.run(trial.clone(), Faults::default()).await?;
            for at in 1..MOST_WRITES {
                let mut died = false;
                for moment in [Moment::Before, Moment::After] {
                    let faults = Faults {
                        death: Some((at, moment)),
                        ..Faults::default()
                    };
                    let ran = self.run(trial.clone(), faults).await?;
                    died |= ran.told.lines.iter().any(|l| l.what == "the process dies");
                    found.same(
                        &format!("a death {moment:?} write {at}, {case}"),
                        &ran,
                        &calm,
                    );
                }
                if !died {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Every call is made, and its first answer lost.
    ///
    /// # Errors
    /// As for [`Check::all`].
    pub async fn lose_every_answer(&self) -> Result<Findings, Error> {
        let mut found = Findings::default();
        for (case, trial) in self.ways() {
            let calm = self.run(trial.clone(), Faults::default()).await?;
            for call in unique(&calm.told.calls) {
                let faults = Faults {
                    lost: Some(call.clone()),
                    ..Faults::default()
                };
                let ran = self.run(trial.clone(), faults).await?;
                found.same(
                    &format!("the answer of {call} is lost, {case}"),
                    &ran,
                    &calm,
                );
            }
        }
        Ok(found)
    }

    /// The first call of every action arrives when everything is over.
    ///
    /// # Errors
    /// As for [`Check::all`].
    pub async fn deliver_late(&self) -> Result<Findings, Error> {
        let mut found = Findings::default();
        for (case, trial) in self.ways() {
            let calm = self.run(trial.clone(), Faults::default()).await?;
            // A sub-saga's own calls arrive late in a check of its own.
            let own = |call: &String| !self.is_saga(call);
            for call in unique(&calm.told.calls).into_iter().filter(own) {
                let late = || Faults {
                    late: Some(call.clone()),
                    ..Faults::default()
                };
                let ran = self.run(trial.clone(), late()).await?;
                found.same(&format!("{call} arrives late, {case}"), &ran, &calm);
                // Refused when it is tried again: undone, and then the first one arrives.
                let refused = trial.clone().given(&call, error(Class::Business));
                let ran = self.run(refused, late()).await?;
                found.ended(&format!("{call} arrives after its undo, {case}"), &ran);
            }
        }
        Ok(found)
    }

    /// The ways that runs are compared on: to the end, and back from the last action.
    fn ways(&self) -> Vec<(String, Trial)> {
        let mut ways = vec![("all goes well".to_owned(), self.trial.clone())];
        if let Some(last) = self.actions().last() {
            let refused = self.trial.clone().given(last, error(Class::Business));
            ways.push((format!("{last} is refused"), refused));
        }
        ways
    }

    fn is_saga(&self, call: &str) -> bool {
        let name = call.strip_prefix("undo ").unwrap_or(call);
        let plan = &self.trial.definition.plan;
        let step = plan.steps().iter().find(|s| s.name.as_str() == name);
        step.is_some_and(|s| s.kind == Kind::Saga)
    }

    fn actions(&self) -> Vec<String> {
        let plan = &self.trial.definition.plan;
        let calls = plan.steps().iter().filter(|s| s.kind == Kind::Action);
        calls.map(|s| s.name.to_string()).collect()
    }

    /// What is seen of a world in which nothing happened.
    fn fresh(&self) -> Option<String> {
        let world = self.world.as_ref()?;
        let (_, seen) = (world.make)(self.trial.clone());
        Some(seen())
    }

    async fn run(&self, trial: Trial, faults: Faults) -> Result<Ran, Error> {
        let input = match &self.input {
            Ok(input) => input.clone(),
            Err(error) => return Err(Error::InputTooLarge(error.to_string())),
        };
        let (trial, seen) = match &self.world {
            Some(world) => {
                let (trial, seen) = (world.make)(trial);
                (trial, Some(seen))
            }
            None => (trial, None),
        };
        let told = trial.go(input, faults).await;
        let asks =
            |s: &PlannedStep| s.recovery == Recovery::Irreversible || s.repeat == Repeat::Never;
        let plan = &self.trial.definition.plan;
        Ok(Ran {
            told,
            seen: seen.map(|see| see()),
            fresh: self.fresh(),
            asks_people: plan.steps().iter().any(asks),
        })
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("trial", &self.trial)
            .finish_non_exhaustive()
    }
}

fn error(class: Class) -> StepError {
    let why = Text::new("on purpose");
    match class {
        Class::Transient => StepError::transient(why),
        Class::Business => StepError::business(why),
        Class::Persistent => StepError::persistent(why),
        Class::Unknown => StepError::unknown(why),
    }
}

fn unique(calls: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for call in calls {
        if !seen.contains(call) {
            seen.push(call.clone());
        }
    }
    seen
}
