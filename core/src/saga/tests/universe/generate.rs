//! Sagas and what happens to them, from a seed: the shape, what participants answer, what comes
//! from outside and when.

use alloc::{collections::BTreeMap, format, vec, vec::Vec};
use core::time::Duration;

use crate::{
    chance::Chance,
    saga::tests::bench::{json, name},
    saga::{Class, Guard, Kind, PlannedStep, Recovery, Repeat, Retry},
};

/// What becomes of one step whenever it is called.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Failures before anything else is answered; nothing is applied by them.
    pub(super) flaky: u32,
    pub(super) refuse: Option<Class>,
    /// The compensation is refused for good.
    pub(super) stuck: bool,
    pub(super) undo_flaky: u32,
    /// What a decision gives.
    pub(super) case: u64,
    /// When somebody signals, in milliseconds.
    pub(super) signal: Option<u64>,
    /// How long a sub-saga runs.
    pub(super) takes: u64,
}

/// One seed's saga and its surroundings.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) steps: Vec<PlannedStep>,
    pub(super) parts: BTreeMap<u32, Part>,
    /// When somebody cancels; at 0 before the first claim.
    pub(super) cancel: Option<u64>,
    /// Whether a person restores it once, when it stopped.
    pub(super) restored: bool,
    /// Whether processes die and messages get lost.
    pub(super) faulty: bool,
}

pub(super) struct Draw(pub(super) Chance);

impl Draw {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.draw() % n
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const SHORT: Retry = Retry {
    inline: 1,
    inline_pause: Duration::from_millis(20),
    attempts: None,
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
    floor: Duration::from_millis(50),
};

impl Setting {
    pub(super) fn new(seed: u64) -> Self {
        let mut draw = Draw(Chance::new(seed));
        let mut setting = Self {
            steps: vec![],
            parts: BTreeMap::new(),
            cancel: draw.percent(15).then(|| draw.below(4) * draw.below(3_000)),
            restored: draw.percent(40),
            faulty: draw.percent(60),
        };
        for number in 0..=draw.below(4) {
            setting.stage(&mut draw, number);
        }
        setting
    }

    /// A step, a group, or a decision with what it guards.
    fn stage(&mut self, draw: &mut Draw, number: u64) {
        if draw.percent(25) {
            let decision = self.next();
            self.push(draw, Kind::Decide, vec![], None);
            for branch in 0..=draw.below(3) {
                let guard = Guard {
                    decision,
                    case: json(&format!("{}", branch % 2)),
                };
                self.open(draw, &[guard], number * 10 + branch);
            }
        } else {
            self.open(draw, &[], number * 10);
        }
    }

    fn open(&mut self, draw: &mut Draw, guards: &[Guard], number: u64) {
        let group = draw.percent(45).then(|| u32::try_from(number).unwrap());
        let members = if group.is_some() {
            2 + draw.below(3)
        } else {
            1
        };
        for _ in 0..members {
            let mut guards = guards.to_vec();
            if group.is_some() && draw.percent(20) {
                // One member alone may be passed.
                guards.extend(self.any_guard(draw));
            }
            let kind = self.kind(draw);
            self.push(draw, kind, guards, group);
        }
    }

    fn any_guard(&self, draw: &mut Draw) -> Option<Guard> {
        let decisions = self
            .steps
            .iter()
            .zip(0..)
            .filter(|(s, _)| s.kind == Kind::Decide);
        let decision = decisions.last()?.1;
        let case = json(&format!("{}", draw.below(2)));
        Some(Guard { decision, case })
    }

    fn kind(&self, draw: &mut Draw) -> Kind {
        match draw.below(20) {
            0..2 => Kind::Timer(Duration::from_millis(draw.below(4_000))),
            2..5 => {
                let within = draw
                    .percent(70)
                    .then(|| Duration::from_secs(if draw.percent(50) { 3 } else { 3_600 }));
                let otherwise = draw.percent(50).then(|| json("\"late\""));
                Kind::Signal { within, otherwise }
            }
            5..8 => Kind::Saga,
            _ => Kind::Action,
        }
    }

    fn next(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap()
    }

    fn push(&mut self, draw: &mut Draw, kind: Kind, guards: Vec<Guard>, group: Option<u32>) {
        let seq = self.next();
        let mut part = Part {
            flaky: draw.below(4).saturating_sub(1).try_into().unwrap(),
            undo_flaky: u32::from(draw.percent(20)),
            case: draw.below(2),
            takes: draw.below(3_000),
            ..Part::default()
        };
        let mut step = PlannedStep {
            kind,
            guards,
            group,
            retry: SHORT,
            compensate: draw.percent(85).then_some(SHORT),
            time_limit: Duration::from_secs(1),
            ..PlannedStep::new(name(seq))
        };
        match step.kind {
            Kind::Action => self.action(draw, &mut step, &mut part),
            Kind::Saga => {
                part.refuse = draw.percent(15).then_some(Class::Business);
                step.compensate = Some(SHORT);
            }
            Kind::Signal { within, .. } => {
                let sent = within.is_none() || draw.percent(60);
                part.signal = sent.then(|| draw.below(3) * draw.below(4_000));
            }
            Kind::Decide | Kind::Timer(_) => {}
        }
        self.steps.push(step);
        self.parts.insert(seq, part);
    }

    fn action(&self, draw: &mut Draw, step: &mut PlannedStep, part: &mut Part) {
        let refusal = [Class::Business, Class::Persistent];
        part.refuse = draw
            .percent(8)
            .then(|| refusal[usize::from(draw.percent(50))]);
        part.stuck = draw.percent(3);
        step.recovery = match draw.below(20) {
            0 => Recovery::ForwardOnly,
            1 => Recovery::BackwardFirst,
            2 => Recovery::Irreversible,
            _ => Recovery::Hybrid,
        };
        if step.recovery == Recovery::ForwardOnly {
            part.refuse = None;
        }
        if draw.percent(20) {
            let most = 1 + draw.below(3);
            step.retry.attempts = Some(most.try_into().unwrap());
        }
        step.repeat = match draw.below(10) {
            0 => Repeat::Never,
            1..3 => Repeat::Probe,
            _ => Repeat::Key,
        };
    }

    /// What kept it from its end is repaired, at most of the participants.
    pub(super) fn repaired(&mut self) {
        for part in self.parts.values_mut() {
            part.stuck = false;
            part.refuse = part.refuse.filter(|class| *class == Class::Business);
        }
    }

    pub(super) fn part(&self, seq: u32) -> &Part {
        &self.parts[&seq]
    }

    pub(super) fn step(&self, seq: u32) -> &PlannedStep {
        &self.steps[usize::try_from(seq).unwrap()]
    }
}
