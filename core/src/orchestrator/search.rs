//! Asking the master for a slave, as long as it takes.
//!
//! Round robin is the master's; this side names the slaves that it could not use or comes from,
//! for two sessions each, and forgets them all when nobody else is there.

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use crate::{
    bus::{AskError, AskId, Op},
    chance::{Backoff, Chance},
    id::{NodeId, Service},
    joining::{Asks, backoff, learn, patience},
    subject::Place,
    time::{Mono, Wake},
    timing::Timing,
    window::Term,
    wire::{Answer, Assign, Question, Refusal, Who},
};

/// Most slaves named as unusable: with more failing, any is as good as another.
const EXCLUDED: usize = 16;

/// So many assignments in a row under a lower term are a former leader's; after them it is the only
/// leader there is: Redis lost the terms, and nobody who remembers them speaks to the master. A
/// slave refuses a former leader's windows by itself, so nothing is at stake here but a detour.
const FORMER_LEADERS: u32 = 2;

/// The longest pause that a master may impose.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(super) struct Search {
    me: Who,
    service: Service,
    timing: Timing,
    state: State,
    backoff: Backoff,
    excluded: BTreeMap<NodeId, Mono>,
    term: Option<Term>,
    /// Assignments under a lower term in a row.
    lower: u32,
    unanswered: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Resting(Mono),
    Asked(AskId),
}

impl Search {
    pub(super) fn new(me: Who, service: Service, timing: Timing) -> Self {
        Self {
            me,
            service,
            timing,
            state: State::Idle,
            backoff: backoff(&timing),
            excluded: BTreeMap::new(),
            term: None,
            lower: 0,
            unanswered: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Asks at once; a search under way goes on.
    pub(super) fn start(&mut self, now: Mono) {
        if self.state == State::Idle {
            self.state = State::Resting(now);
        }
    }

    /// Asks again after a pause that grows from attempt to attempt.
    pub(super) fn start_later(&mut self, now: Mono, chance: &mut Chance) {
        self.state = State::Resting(now.plus(self.backoff.pause(chance)));
    }

    /// No slave is looked for any more; an answer on its way is nobody's.
    pub(super) fn cancel(&mut self) {
        self.state = State::Idle;
    }

    /// A slave has accepted: the next search begins with short pauses.
    pub(super) fn succeeded(&mut self) {
        self.state = State::Idle;
        self.backoff.reset();
    }

    /// Names a slave as unusable for two sessions: by then the master has noticed, too.
    pub(super) fn exclude(&mut self, now: Mono, slave: &NodeId) {
        let until = now.plus(2 * self.timing.session);
        self.excluded.insert(slave.clone(), until);
        if self.excluded.len() > EXCLUDED {
            let oldest = self.excluded.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.excluded.remove(&oldest);
            }
        }
    }

    /// The connection is back.
    pub(super) fn hurry(&mut self, at: Mono) {
        if let State::Resting(until) = self.state {
            self.state = State::Resting(until.min(at));
        }
    }

    /// Time passed: asks when it is due.
    pub(super) fn woke(&mut self, now: Mono, asks: &mut Asks, out: &mut Vec<Op>) {
        if !matches!(self.state, State::Resting(until) if until <= now) {
            return;
        }
        self.excluded.retain(|_, until| now < *until);
        let ask = asks.number();
        let question = Question::Assign(Assign {
            who: self.me.clone(),
            service: self.service.clone(),
            exclude: self.excluded.keys().cloned().collect(),
        });
        out.push(Op::Ask {
            ask,
            place: Place::Assign,
            question,
            within: patience(&self.timing),
        });
        self.state = State::Asked(ask);
    }

    pub(super) fn awaits(&self, ask: AskId) -> bool {
        self.state == State::Asked(ask)
    }

    /// The awaited answer: the slave, or `None` and it asks again later. `connected`: a slave
    /// answers, so a silent master is no fault of the connection.
    pub(super) fn answered(
        &mut self,
        now: Mono,
        answer: Result<Answer, AskError>,
        connected: bool,
        chance: &mut Chance,
        out: &mut Vec<Op>,
    ) -> Option<NodeId> {
        let silent = matches!(answer, Err(AskError::TimedOut));
        self.unanswered = if silent {
            self.unanswered.saturating_add(1)
        } else {
            0
        };
        if !connected && self.unanswered >= 2 && self.unanswered.is_power_of_two() {
            out.push(Op::Reconnect);
        }
        let mut after = Duration::ZERO;
        match answer {
            Ok(Answer::Assigned { slave, term }) if self.follows(term) => {
                self.state = State::Idle;
                return Some(slave);
            }
            Ok(Answer::Refused {
                reason,
                retry_after_ms,
            }) => {
                // When all that are left are excluded, one of them must do.
                if reason == Refusal::NoSlave && !self.excluded.is_empty() {
                    self.excluded.clear();
                } else {
                    after = Duration::from_millis(retry_after_ms).min(LONGEST_RETRY);
                }
            }
            Ok(_) | Err(_) => {}
        }
        let pause = self.backoff.pause(chance).saturating_add(after);
        self.state = State::Resting(now.plus(pause));
        None
    }

    /// Whether who assigns under this term leads, as far as can be known here.
    fn follows(&mut self, term: Term) -> bool {
        if self.lower >= FORMER_LEADERS {
            self.term = None;
        }
        let follows = learn(&mut self.term, term);
        self.lower = if follows {
            0
        } else {
            self.lower.saturating_add(1)
        };
        follows
    }

    pub(super) fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        if let State::Resting(until) = self.state {
            wake.at_mono(until, "assign");
        }
        wake
    }
}
