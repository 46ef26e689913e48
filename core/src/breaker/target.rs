//! One target: whether it is up, and what may be called now.

use core::time::Duration;

use super::{
    limits::Limits,
    port::{Ask, Gave, Pass, Verdict, Why},
    ramp::{Moment, Ramp, moment_left},
    window::{Failed, Window},
};
use crate::{
    chance,
    time::{Mono, Now, Wall},
};

/// Who is held because places are taken may ask again after this: calls end all the time.
const SOON: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    state: State,
    /// Raised at every change of the state.
    tenure: u64,
    /// Calls under way, of whichever tenure.
    calls: u32,
    /// Probes among them.
    probes: u32,
    window: Window,
    in_a_row: Failed,
    moment: Moment,
    /// Since when it is down.
    down: Option<Wall>,
    /// Transactions wait for it, as last told.
    pub(super) waited_for: bool,
    /// A retry was held back lately: those that wait may be retries.
    over_budget: bool,
    seed: u64,
}

/// Down is open or half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has answered yet: a few calls find out.
    Unknown,
    /// It works; what waited goes on at a pace.
    Closed(Option<Ramp>),
    /// It fails. Opened so often without a success in between.
    Open { until: Mono, times: u32 },
    /// Probes find out.
    HalfOpen { times: u32 },
}

impl Target {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: State::Unknown,
            tenure: 0,
            calls: 0,
            probes: 0,
            window: Window::default(),
            in_a_row: Failed::default(),
            moment: Moment::default(),
            down: None,
            waited_for: false,
            over_budget: false,
            seed,
        }
    }

    pub(super) fn down_since(&self) -> Option<Wall> {
        self.down
    }

    /// Whether somebody is going to find out how it is.
    pub(super) fn is_watched(&self, now: Mono) -> bool {
        match self.state {
            State::Open { until, .. } if now < until => true,
            State::Open { .. } | State::HalfOpen { .. } | State::Unknown | State::Closed(_) => {
                self.waited_for || self.probes > 0
            }
        }
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self) -> bool {
        self.down.is_none() && self.calls == 0 && !self.waited_for
    }

    pub(super) fn ask(&mut self, now: Mono, limits: &Limits, ask: Ask) -> Verdict {
        self.woke(now);
        if let Some((after, why)) = self.held(now, limits, ask) {
            return Verdict::Hold { after, why };
        }
        let probe = matches!(self.state, State::HalfOpen { .. });
        self.calls = self.calls.saturating_add(1);
        self.probes = self.probes.saturating_add(u32::from(probe));
        self.window.begun(now, ask.retry);
        self.moment.start(now);
        Verdict::Go(Pass {
            caller: ask.caller,
            probe,
            tenure: self.tenure,
        })
    }

    pub(super) fn ended(&mut self, now: Now, limits: &Limits, pass: Pass, gave: Gave) {
        self.woke(now.mono);
        self.calls = self.calls.saturating_sub(1);
        self.probes = self.probes.saturating_sub(u32::from(pass.probe));
        if pass.tenure != self.tenure {
            return;
        }
        match gave {
            Gave::Works => self.worked(now.mono, limits),
            Gave::Fails => self.failed(now, limits, pass.caller),
            Gave::Nothing => {}
        }
    }

    /// How many of those that wait may be taken now.
    pub(super) fn room(&mut self, now: Mono, limits: &Limits) -> u32 {
        self.woke(now);
        let places = self.places(limits);
        let room = match self.state {
            State::Open { .. } => 0,
            State::HalfOpen { .. } => places.saturating_sub(self.probes),
            State::Unknown => places.saturating_sub(self.calls),
            State::Closed(_) => places
                .saturating_sub(self.calls)
                .min(self.starts_left(now, limits)),
        };
        if self.over_budget {
            let left = self.budget_left(now, limits);
            self.over_budget = left == 0;
            return room.min(left);
        }
        room
    }

    /// When something may be taken that may not be now.
    pub(super) fn wake_at(&self, now: Mono) -> Mono {
        match self.state {
            State::Open { until, .. } => until,
            State::Unknown | State::Closed(_) | State::HalfOpen { .. } => {
                now.plus(moment_left(now))
            }
        }
    }

    /// Time does two things: a pause ends, and a pace grows.
    fn woke(&mut self, now: Mono) {
        match &mut self.state {
            State::Open { until, times } if *until <= now => {
                let times = *times;
                self.become_(State::HalfOpen { times });
            }
            State::Closed(Some(ramp)) => ramp.step(now),
            State::Unknown | State::Closed(None) | State::Open { .. } | State::HalfOpen { .. } => {}
        }
    }

    fn held(&mut self, now: Mono, limits: &Limits, ask: Ask) -> Option<(Duration, Why)> {
        let places = self.places(limits);
        match self.state {
            State::Open { until, .. } => return Some((until.since(now), Why::Down)),
            State::HalfOpen { .. } => {
                return (self.probes >= places).then_some((SOON, Why::Down));
            }
            State::Unknown | State::Closed(_) => {}
        }
        if self.calls >= places {
            return Some((SOON, Why::Busy));
        }
        if self.starts_left(now, limits) == 0 {
            return Some((moment_left(now), Why::Busy));
        }
        if ask.retry && self.budget_left(now, limits) == 0 {
            self.over_budget = true;
            return Some((Duration::from_secs(1), Why::Budget));
        }
        None
    }

    /// Most calls under way.
    fn places(&self, limits: &Limits) -> u32 {
        match self.state {
            State::Unknown | State::HalfOpen { .. } => limits.probes,
            State::Closed(Some(ramp)) => ramp.pace.min(limits.concurrency),
            State::Closed(None) => limits.concurrency,
            State::Open { .. } => 0,
        }
    }

    fn starts_left(&self, now: Mono, limits: &Limits) -> u32 {
        let most = match self.state {
            State::Closed(Some(ramp)) => ramp.pace.min(limits.drain_per_moment()),
            State::Closed(None) if self.waited_for => limits.drain_per_moment(),
            State::Unknown | State::Closed(None) | State::Open { .. } | State::HalfOpen { .. } => {
                return u32::MAX;
            }
        };
        most.saturating_sub(self.moment.starts(now))
    }

    fn budget_left(&mut self, now: Mono, limits: &Limits) -> u32 {
        let (calls, retries) = self.window.calls(now);
        let part = u64::from(calls) * u64::from(limits.retry_percent) / 100;
        let most = u32::try_from(part).unwrap_or(u32::MAX);
        most.max(limits.retry_floor).saturating_sub(retries)
    }

    fn worked(&mut self, now: Mono, limits: &Limits) {
        self.window.ended(now, None);
        self.in_a_row = Failed::default();
        match &mut self.state {
            State::Unknown if self.waited_for => self.close(now, limits),
            State::Unknown => self.become_(State::Closed(None)),
            State::HalfOpen { .. } => self.close(now, limits),
            State::Closed(Some(ramp)) => {
                ramp.ended(true);
                if ramp.pace >= limits.concurrency {
                    self.state = State::Closed(None);
                }
            }
            State::Closed(None) | State::Open { .. } => {}
        }
    }

    fn failed(&mut self, now: Now, limits: &Limits, caller: u64) {
        self.window.ended(now.mono, Some(caller));
        self.in_a_row.add(caller);
        let failing = self.is_failing(now.mono, limits);
        match &mut self.state {
            State::HalfOpen { times } => {
                let times = times.saturating_add(1);
                self.open(now, limits, times);
            }
            State::Unknown | State::Closed(_) if failing => self.open(now, limits, 1),
            State::Closed(Some(ramp)) => ramp.ended(false),
            State::Unknown | State::Closed(None) | State::Open { .. } => {}
        }
    }

    fn is_failing(&mut self, now: Mono, limits: &Limits) -> bool {
        let row = self.in_a_row;
        if row.count >= limits.failures_in_row && row.of_several() {
            return true;
        }
        let (ended, failed) = self.window.outcomes(now);
        let part = u64::from(failed.count) * 100 / u64::from(ended.max(1));
        ended >= limits.least_calls
            && part >= u64::from(limits.failed_percent)
            && failed.of_several()
    }

    fn open(&mut self, now: Now, limits: &Limits, times: u32) {
        let pause = chance::pause(
            self.seed,
            times,
            limits.first_pause,
            limits.longest_pause,
            chance::FLOOR,
        );
        self.down.get_or_insert(now.wall);
        self.become_(State::Open {
            until: now.mono.plus(pause),
            times,
        });
    }

    fn close(&mut self, now: Mono, limits: &Limits) {
        self.down = None;
        // What failed before says nothing about the target as it is now.
        self.window = Window::default();
        self.become_(State::Closed(Some(Ramp::new(now, limits.probes))));
    }

    fn become_(&mut self, state: State) {
        self.state = state;
        self.tenure = self.tenure.wrapping_add(1);
        self.in_a_row = Failed::default();
    }
}
