//! The breakers at work: calls ask before they are made and tell how they ended, and changes are
//! announced.
//!
//! Decides nothing: the breaker does. A call that may not be made now waits a moment here while its
//! target works; while it is down, the transaction waits in the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring_core::{
    breaker::{Ask, Breaker, Change, Gave, Limits, Pass, Verdict, Why},
    chance,
    id::{TargetName, TransactionId},
    saga::{Class, Hold, Input, Outcome, Text},
    time::{Mono, Wall},
    wire::Fact,
};
use ring_shell::clock;
use tokio::sync::{Notify, futures::Notified};

use super::Engine;
use crate::telemetry::{CALLS_HELD, TARGET_CHANGES, TARGETS_DOWN};

/// A call of a target that works waits so long in memory for its turn; the store is asked for
/// nothing meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// When a transaction that waits for its target is looked at again at the latest, should nobody who
/// sees the target work find it. The same for all: they keep their order.
const AT_THE_LATEST: Duration = Duration::from_secs(60);

/// Between two looks for targets that transactions wait for: what others left waiting is found as
/// soon as what is due.
const LOOK: Duration = Duration::from_secs(1);

/// The process's breakers.
pub(super) struct Targets {
    breaker: Mutex<Breaker>,
    /// Those of the sagas here.
    named: BTreeSet<TargetName>,
    /// A call has ended: one that waits in memory may have its place.
    freed: Notify,
    /// A target went down or came back, or others wait for it.
    changed: Notify,
}

/// The right to make one call; without a word of how it ended it says nothing of the target.
pub(super) struct Ticket {
    engine: Arc<Engine>,
    target: TargetName,
    pass: Option<Pass>,
}

impl Targets {
    pub(super) fn new(named: BTreeSet<TargetName>, limits: Limits) -> Self {
        Self {
            breaker: Mutex::new(Breaker::new(limits, clock::chance())),
            named,
            freed: Notify::new(),
            changed: Notify::new(),
        }
    }

    /// How many transactions that wait may be taken, by target.
    pub(super) fn rooms(&self, now: Mono) -> BTreeMap<TargetName, u32> {
        self.lock().rooms(now)
    }

    /// How long until that is another.
    pub(super) fn wakes_in(&self, now: Mono) -> Option<Duration> {
        self.lock().wake_at(now).map(|at| at.since(now))
    }

    /// Completes when something changes after this was called.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// For people: what is down, and since when.
    pub(super) fn down(&self) -> Vec<String> {
        let say = |(target, since): (&TargetName, Wall)| {
            format!(
                "target {target} is down since {}: its transactions wait for it",
                since.rfc3339()
            )
        };
        self.lock().down(clock::now().mono).map(say).collect()
    }

    fn is_down(&self, target: &TargetName) -> bool {
        self.lock().is_down(target)
    }

    fn lock(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// The right to call, at the latest after a moment.
    pub(super) async fn ticket(
        self: &Arc<Self>,
        target: TargetName,
        id: TransactionId,
        retry: bool,
    ) -> Result<Ticket, Hold> {
        let (high, low) = id.0.as_u64_pair();
        let caller = high ^ low;
        let until = clock::now().mono.plus(PATIENCE);
        loop {
            let now = clock::now().mono;
            let changed = self.targets.changed();
            let verdict = self.targets.lock().ask(now, &target, Ask { caller, retry });
            let (after, why) = match verdict {
                Verdict::Go(pass) => {
                    return Ok(Ticket {
                        engine: Arc::clone(self),
                        target,
                        pass: Some(pass),
                    });
                }
                Verdict::Hold { after, why } => (after, why),
            };
            let left = until.since(now);
            if why != Why::Busy || left.is_zero() {
                self.meter.count_as(CALLS_HELD, "why", word(why));
                return Err(self.waits(target, None));
            }
            tokio::select! {
                () = changed => {}
                () = self.targets.freed.notified() => {}
                () = tokio::time::sleep(after.min(left)) => {}
            }
        }
    }

    fn waits(&self, target: TargetName, failed: Option<(Class, Text)>) -> Hold {
        self.waited_for(&target);
        let (target, after) = (target.as_str().to_owned(), AT_THE_LATEST);
        match failed {
            Some((class @ Class::Unknown, error)) => Hold::Failing {
                target,
                after,
                class,
                error,
            },
            Some((Class::Transient | Class::Business | Class::Persistent, _)) | None => {
                Hold::Target { target, after }
            }
        }
    }

    /// Before the next look says so. A node that retries nothing looks for nothing.
    fn waited_for(&self, target: &TargetName) {
        if self.config.retry_node {
            self.targets.lock().waited_for(target, true);
        }
    }

    fn tell(&self, target: &TargetName, pass: Pass, gave: Gave) {
        let mut changes = Vec::new();
        let now = clock::now();
        let down = {
            let mut breaker = self.targets.lock();
            breaker.ended(now, target, pass, gave, &mut changes);
            breaker.down(now.mono).count()
        };
        self.targets.freed.notify_one();
        for change in changes {
            #[expect(clippy::cast_precision_loss, reason = "a metric")]
            self.meter.set(TARGETS_DOWN, down as f64);
            self.targets.changed.notify_waiters();
            self.announce_target(change);
        }
    }

    fn announce_target(&self, change: Change) {
        let (fact, word) = match change {
            Change::Down(target) => {
                tracing::warn!(%target, "a target is down: its transactions wait for it");
                let target = target.to_string();
                (Fact::TargetDown { target }, "down")
            }
            Change::Up(target) => {
                tracing::info!(%target, "a target works again");
                let target = target.to_string();
                (Fact::TargetUp { target }, "up")
            }
        };
        self.meter.count_as(TARGET_CHANGES, "change", word);
        let announcer = self.announcer.clone();
        // Whoever told it may be dropped at any moment.
        self.spawn(async move { announcer.tell(fact).await });
    }
}

impl Ticket {
    /// The call gave this. A failure of a target that is down is told as such: one that was
    /// certainly not applied is as if the call had not been made.
    pub(super) fn ended(mut self, input: Input) -> Input {
        let Input::Returned { call, outcome } = input else {
            return input;
        };
        let failed = match &outcome {
            Outcome::Done(_) | Outcome::Waits | Outcome::NotApplied => None,
            Outcome::Failed { class, error, .. } => Some((*class, error.clone())),
        };
        let fails = failed
            .as_ref()
            .is_some_and(|(class, _)| speaks_against(*class));
        self.give_back(if fails { Gave::Fails } else { Gave::Works });
        match failed {
            Some((class, error)) if fails && self.engine.targets.is_down(&self.target) => {
                let target = self.target.clone();
                tracing::debug!(%target, %error, "a failure of a target that is down");
                let by = self.engine.waits(target, Some((class, error)));
                Input::Held { call, by }
            }
            _ => Input::Returned { call, outcome },
        }
    }

    fn give_back(&mut self, gave: Gave) {
        if let Some(pass) = self.pass.take() {
            self.engine.tell(&self.target, pass, gave);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.give_back(Gave::Nothing);
    }
}

/// Looks for targets that transactions wait for, for as long as a retry node lives.
pub(super) async fn run(engine: Arc<Engine>) {
    let named = engine.targets.named.clone();
    if !engine.config.retry_node || named.is_empty() {
        return;
    }
    let seed = clock::chance();
    let mut count = 0;
    while *engine.life.borrow() == super::Life::Up {
        match engine.store.waited_for(&named).await {
            Ok(waits) => {
                let mut breaker = engine.targets.lock();
                for target in &named {
                    breaker.waited_for(target, waits.contains(target));
                }
                drop(breaker);
                if !waits.is_empty() {
                    engine.targets.changed.notify_waiters();
                }
            }
            Err(error) => tracing::debug!(%error, "could not look for what waits for targets"),
        }
        tokio::time::sleep(chance::spread(seed, count, LOOK)).await;
        count += 1;
    }
}

/// Whether such a failure is the target's: a refusal shows that it works.
fn speaks_against(class: Class) -> bool {
    match class {
        Class::Transient | Class::Unknown => true,
        Class::Business | Class::Persistent => false,
    }
}

fn word(why: Why) -> &'static str {
    match why {
        Why::Down => "down",
        Why::Busy => "busy",
        Why::Budget => "budget",
    }
}
