//! What is seen from outside: it feeds the invariants and the counters, and decides whether a
//! violation counts or is only counted. It knows true time and moves nothing.

use std::collections::{BTreeMap, BTreeSet};

use ring_core::{
    id::{BootId, NodeId, Service},
    time::Wall,
    timing::Timing,
    window::{Cut, Grant, SeatState, WindowNo},
    wire::{Answer, Event, Fact, GrantWire, Publication, Question, Refusal},
};

use crate::{
    counters::{Counters, Sometimes},
    invariants::{
        Violation, issued_once::IssuedOnce, monotonic::Monotonic, refinement::Refinement,
    },
    redis::Trace,
};

/// The observer of one run.
#[derive(Debug)]
pub struct Watch {
    timing: Timing,
    /// True time.
    pub now: Wall,
    /// What happened at least once.
    pub counters: Counters,
    /// The first violation that counts.
    pub violation: Option<Violation>,
    /// The boots and windows that went back.
    pub monotonic: Monotonic,
    issued: IssuedOnce,
    refinement: Refinement,
    /// Windows in which Redis or a clock broke its promise.
    soft: Vec<(u64, u64)>,
    /// From this window on everything must be whole and strict.
    pub whole_from: WindowNo,
    leader: Option<BootId>,
    absent: BTreeSet<(Service, NodeId)>,
    reached: BTreeSet<(BootId, Service, WindowNo)>,
    published: BTreeMap<(BootId, Service, WindowNo), u32>,
}

impl Watch {
    /// An observer who has seen nothing.
    #[must_use]
    pub fn new(timing: Timing, whole_from: WindowNo) -> Self {
        Self {
            timing,
            now: Wall(0),
            counters: Counters::default(),
            violation: None,
            monotonic: Monotonic::default(),
            issued: IssuedOnce::default(),
            refinement: Refinement::default(),
            soft: Vec::new(),
            whole_from,
            leader: None,
            absent: BTreeSet::new(),
            reached: BTreeSet::new(),
            published: BTreeMap::new(),
        }
    }

    /// Redis or a clock breaks its promise from here to there. A cut made in that time is used up
    /// to two windows later; one made just before may get lost.
    pub fn soften(&mut self, from: Wall, to: Wall) {
        let (from, to) = (self.timing.window_at(from).0, self.timing.window_at(to).0);
        self.soft.push((from, to + 2));
    }

    /// Notes what must always hold.
    pub fn must(&mut self, checked: Result<(), Violation>) {
        if let Err(violation) = checked {
            self.violation.get_or_insert(violation);
        }
    }

    /// Notes what must hold while Redis and clocks keep their promises.
    pub fn should(&mut self, window: WindowNo, checked: Result<(), Violation>) {
        let Err(mut violation) = checked else { return };
        violation.window = Some(window);
        if self.is_soft(window) && window < self.whole_from {
            self.counters.saw(Sometimes::SoftOverlap);
        } else {
            self.violation.get_or_insert(violation);
        }
    }

    /// Something is published.
    pub fn published(&mut self, body: &Publication) {
        let Publication::Grant(grant) = body else {
            return;
        };
        self.granted(grant);
        let key = (grant.boot, grant.service.clone(), grant.window);
        *self.published.entry(key).or_default() += 1;
    }

    /// How often a grant was published before.
    #[must_use]
    pub fn times_published(&self, body: &Publication) -> u32 {
        let Publication::Grant(grant) = body else {
            return 0;
        };
        let key = (grant.boot, grant.service.clone(), grant.window);
        self.published.get(&key).copied().unwrap_or(0)
    }

    /// A publication reached its holder.
    pub fn heard(&mut self, body: &Publication, at: Wall) {
        let Publication::Grant(grant) = body else {
            return;
        };
        if grant.ends_at.0 < at {
            self.counters.saw(Sometimes::StalePublication);
        }
        self.reached
            .insert((grant.boot, grant.service.clone(), grant.window));
    }

    /// A coordinator answers.
    pub fn answered(&mut self, answer: &Answer) {
        match answer {
            Answer::Heard { grants, .. }
            | Answer::Confirmed { grants, .. }
            | Answer::Grants { grants } => grants.iter().for_each(|grant| self.granted(grant)),
            Answer::Refused {
                reason: Refusal::TwinAlive,
                ..
            } => {
                self.counters.saw(Sometimes::TwinWaited);
            }
            Answer::Registered { .. }
            | Answer::Left
            | Answer::Assigned { .. }
            | Answer::Master(_)
            | Answer::Slave(_)
            | Answer::Refused { .. } => {}
        }
    }

    /// An answer reached who asked.
    pub fn got(&mut self, answer: &Answer) {
        if let Answer::Heard { grants, .. } | Answer::Grants { grants } = answer {
            for grant in grants {
                if self
                    .reached
                    .insert((grant.boot, grant.service.clone(), grant.window))
                {
                    self.counters.saw(Sometimes::HealedByAnswer);
                }
            }
        }
    }

    /// Something is asked.
    pub fn asked(&mut self, question: &Question) {
        match question {
            Question::SlaveBeat(beat) => {
                if let Some(term) = beat.term {
                    let checked = self.monotonic.accepted(beat.who.boot, term);
                    self.must(checked);
                }
            }
            Question::Leave(leave) if leave.after.is_some() => {
                self.counters.saw(Sometimes::Moved);
            }
            Question::Leave(_)
            | Question::Register(_)
            | Question::Confirm(_)
            | Question::OrchestratorBeat(_)
            | Question::Window(_)
            | Question::Assign(_)
            | Question::Status => {}
        }
    }

    /// An event is told.
    pub fn told(&mut self, event: &Event) {
        match &event.fact {
            Fact::Cut { cut } => self.cut(&cut.clone().open()),
            Fact::Leader { .. } => {
                let next = self.timing.window_at(self.now).next();
                let other = self
                    .leader
                    .replace(event.by.boot)
                    .is_some_and(|b| b != event.by.boot);
                if other && self.timing.cut_at(next) <= self.now {
                    self.counters.saw(Sometimes::FailoverInLead);
                }
            }
            Fact::SteppedDown { .. } => self.counters.saw(Sometimes::SteppedDown),
            Fact::Degraded { .. } => self.counters.saw(Sometimes::Degraded),
            Fact::Frozen { .. } => self.counters.saw(Sometimes::Frozen),
            Fact::Thawed { .. } => self.counters.saw(Sometimes::Redistributed),
            Fact::Recovered { .. }
            | Fact::Joined { .. }
            | Fact::Left { .. }
            | Fact::Superseded
            | Fact::Overlap { .. }
            | Fact::TxDisabled(_)
            | Fact::TxTerminated(_)
            | Fact::TxQuarantined(_)
            | Fact::TxRestored(_)
            | Fact::IrreversibleFailed(_)
            | Fact::CompensationFailing(_)
            | Fact::ExecutorMissing { .. }
            | Fact::RetryNodeMissing { .. }
            | Fact::TargetDown { .. }
            | Fact::TargetUp { .. } => {}
        }
    }

    /// Redis did something.
    pub fn stored(&mut self, traces: Vec<Trace>) {
        for trace in traces {
            match trace {
                Trace::LeaseRestored => self.counters.saw(Sometimes::LeaseRestored),
                Trace::TermHealed => self.counters.saw(Sometimes::TermHealed),
                Trace::Adopted(_) => self.counters.saw(Sometimes::WindowAdopted),
                Trace::Stored(cut) => {
                    if self.timing.starts(cut.window) <= self.now {
                        self.counters.saw(Sometimes::CutLate);
                    }
                    self.cut(&cut);
                }
            }
        }
    }

    fn is_soft(&self, window: WindowNo) -> bool {
        self.soft
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&window.0))
    }

    /// Whether only a clock that is off by a window or more cuts this one: nobody whose clock is
    /// right accepts it, and Redis has forgotten it when its time comes, or long since.
    fn is_forgotten(&mut self, window: WindowNo) -> bool {
        let now = self.timing.window_at(self.now);
        let beside = window > now.next() || window.next() < now;
        let forgotten = beside && self.is_soft(now);
        if forgotten {
            self.counters.saw(Sometimes::CutBeside);
        }
        forgotten
    }

    fn cut(&mut self, cut: &Cut) {
        if cut.seats.is_empty() || self.is_forgotten(cut.window) {
            return;
        }
        let checked = self.issued.cut(cut);
        self.should(cut.window, checked);
        let frozen = cut
            .seats
            .iter()
            .filter(|seat| seat.state == SeatState::Frozen);
        for seat in frozen {
            self.absent
                .insert((cut.service.clone(), seat.slave.clone()));
            self.counters.saw(Sometimes::Frozen);
        }
        let seated: BTreeSet<&NodeId> = cut.seats.iter().map(|seat| &seat.slave).collect();
        let gone = |(service, slave): &(Service, NodeId)| {
            *service == cut.service && !seated.contains(slave)
        };
        let before = self.absent.len();
        self.absent.retain(|absent| !gone(absent));
        for _ in self.absent.len()..before {
            self.counters.saw(Sometimes::Redistributed);
        }
    }

    fn granted(&mut self, wire: &GrantWire) {
        let grant = Grant {
            service: wire.service.clone(),
            window: wire.window,
            range: wire.range,
            term: wire.term,
            holder: wire.holder.clone(),
            boot: wire.boot,
            index: wire.index,
            members: wire.members,
            parent: wire
                .parent
                .as_ref()
                .map(|parent| ring_core::window::Parent {
                    slave: parent.slave.clone(),
                    boot: parent.boot,
                    index: parent.index,
                    members: parent.members,
                    range: parent.range,
                }),
        };
        if grant.parent.is_some() {
            let checked = self.refinement.part(&grant);
            self.must(checked);
        } else if !self.is_forgotten(grant.window) {
            let checked = self.issued.slice(&grant);
            self.should(grant.window, checked);
        }
    }
}
