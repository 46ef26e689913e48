//! How a member is in: the member's side of a session at a coordinator, the same for a slave at
//! the master and for an orchestrator at its slave.
//!
//! It registers, waits for the probe on its own subject, confirms, sends heartbeats, and starts
//! again when the coordinator forgot it. It refuses to know what a heartbeat says and what the
//! grants in an answer mean: those go through as [`Event`]s.

mod phase;
mod words;

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use self::phase::Phase;
pub use self::words::{
    Asks, Coordinator, Event, Failure, Heard, LARGEST_TERM, backoff, learn, patience, soon,
};
use crate::{
    bus::{AskError, AskId, Op},
    chance::{Backoff, Chance},
    id::Service,
    subject::Verb,
    time::{Mono, Now, Wake},
    timing::Timing,
    window::WindowNo,
    wire::{Answer, Confirm, Leave, Probe, Question, Refusal, Register, Who},
};

/// The longest pause that a coordinator may impose: a strange answer must not silence a member.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// One membership.
#[derive(Clone, Debug)]
pub struct Joining {
    me: Who,
    service: Option<Service>,
    build: String,
    with: Coordinator,
    timing: Timing,
    backoff: Backoff,
    phase: Phase,
    heard: Option<Mono>,
    /// Requests in a row that nobody answered in time.
    unanswered: u32,
    /// Heartbeats in a row that failed.
    missed: u32,
    /// The silence was told.
    silent: bool,
    failure: Option<Failure>,
}

impl Joining {
    /// Not in yet; the first [`Joining::woke`] registers.
    #[must_use]
    pub fn new(
        me: Who,
        service: Option<Service>,
        build: String,
        with: Coordinator,
        timing: Timing,
    ) -> Self {
        Self {
            me,
            service,
            build,
            with,
            timing,
            backoff: backoff(&timing),
            phase: Phase::Resting(Mono(0)),
            heard: None,
            unanswered: 0,
            missed: 0,
            silent: false,
            failure: None,
        }
    }

    /// Whether the coordinator counts it, as far as it knows.
    #[must_use]
    pub fn is_member(&self) -> bool {
        matches!(self.phase, Phase::Member(_) | Phase::Beating { .. })
    }

    /// Whether a live process holds the id, so that this one waits.
    #[must_use]
    pub fn waits_for_twin(&self) -> bool {
        self.failure == Some(Failure::Refused(Refusal::TwinAlive))
    }

    /// Why the last attempt or heartbeat failed; `None` when it did not.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// When the coordinator last answered.
    #[must_use]
    pub fn heard(&self) -> Option<Mono> {
        self.heard
    }

    /// Asks the coordinator something else.
    pub fn ask(&self, verb: Verb, question: Question, asks: &mut Asks, out: &mut Vec<Op>) -> AskId {
        let ask = asks.number();
        out.push(Op::Ask {
            ask,
            place: self.with.place(verb),
            question,
            within: patience(&self.timing),
        });
        ask
    }

    /// Says that it goes, now or after a window.
    pub fn leave(&self, after: Option<WindowNo>, asks: &mut Asks, out: &mut Vec<Op>) -> AskId {
        let who = self.me.clone();
        self.ask(
            Verb::Leave,
            Question::Leave(Leave { who, after }),
            asks,
            out,
        )
    }

    /// Asks for the grants again.
    pub fn fetch(&self, asks: &mut Asks, out: &mut Vec<Op>) -> AskId {
        let question = Question::Window(self.me.clone());
        self.ask(Verb::Window, question, asks, out)
    }

    /// Brings the next attempt or heartbeat forward to this moment; one that waits for its twin
    /// has been told how long.
    pub fn hurry(&mut self, at: Mono) {
        match self.phase {
            Phase::Resting(until) if !self.waits_for_twin() => {
                self.phase = Phase::Resting(until.min(at))
            }
            Phase::Member(due) => self.phase = Phase::Member(due.min(at)),
            Phase::Resting(_)
            | Phase::Registering(_)
            | Phase::Listening(_)
            | Phase::Confirming(_)
            | Phase::Beating { .. }
            | Phase::Over => {}
        }
    }

    /// Time passed: registers, gives a silent probe up, tells a silence. A spurious call does
    /// nothing.
    pub fn woke(
        &mut self,
        now: Now,
        chance: &mut Chance,
        asks: &mut Asks,
        out: &mut Vec<Op>,
    ) -> Option<Event> {
        match self.phase {
            Phase::Resting(until) if until <= now.mono => {
                let question = Question::Register(Register {
                    who: self.me.clone(),
                    service: self.service.clone(),
                    build: self.build.clone(),
                });
                let ask = self.ask(Verb::Register, question, asks, out);
                self.phase = Phase::Registering(ask);
                None
            }
            Phase::Listening(until) if until <= now.mono => {
                Some(self.failed(now.mono, Failure::Deaf, Duration::ZERO, chance))
            }
            Phase::Member(_) | Phase::Beating { .. } => {
                let silence = self.silence_ends().is_some_and(|end| end <= now.mono);
                (silence && !core::mem::replace(&mut self.silent, true)).then_some(Event::Silent)
            }
            Phase::Resting(_)
            | Phase::Registering(_)
            | Phase::Listening(_)
            | Phase::Confirming(_)
            | Phase::Over => None,
        }
    }

    /// Whether [`Joining::beat`] is due.
    #[must_use]
    pub fn beat_due(&self, now: Mono) -> bool {
        matches!(self.phase, Phase::Member(due) if due <= now)
    }

    /// Sends a heartbeat.
    pub fn beat(&mut self, now: Now, beat: Question, asks: &mut Asks, out: &mut Vec<Op>) {
        let ask = self.ask(Verb::Heartbeat, beat, asks, out);
        self.phase = Phase::Beating { ask, sent: now };
    }

    /// A probe came on the member's own subject. Only one for this boot counts; it may come
    /// before the answer to `register`, or late.
    pub fn probed(&mut self, probe: &Probe, asks: &mut Asks, out: &mut Vec<Op>) {
        match self.phase {
            Phase::Registering(_) | Phase::Listening(_) | Phase::Resting(_) => {}
            Phase::Confirming(_) | Phase::Member(_) | Phase::Beating { .. } | Phase::Over => return,
        }
        if probe.boot != self.me.boot {
            return;
        }
        let question = Question::Confirm(Confirm {
            who: self.me.clone(),
            nonce: probe.nonce,
        });
        let ask = self.ask(Verb::Confirm, question, asks, out);
        self.phase = Phase::Confirming(ask);
    }

    /// Whether this answer is awaited here; a stale one is nobody's.
    #[must_use]
    pub fn awaits(&self, ask: AskId) -> bool {
        match self.phase {
            Phase::Registering(mine)
            | Phase::Confirming(mine)
            | Phase::Beating { ask: mine, .. } => mine == ask,
            Phase::Resting(_) | Phase::Listening(_) | Phase::Member(_) | Phase::Over => false,
        }
    }

    /// The answer to a request for which [`Joining::awaits`] holds; others are ignored.
    pub fn answered(
        &mut self,
        now: Now,
        ask: AskId,
        answer: Result<Answer, AskError>,
        chance: &mut Chance,
        out: &mut Vec<Op>,
    ) -> Option<Event> {
        if !self.awaits(ask) {
            return None;
        }
        self.count_silence(&answer, out);
        match answer {
            Ok(Answer::Refused {
                reason,
                retry_after_ms,
            }) => {
                let after = Duration::from_millis(retry_after_ms).min(LONGEST_RETRY);
                Some(self.refused(now.mono, reason, after, chance))
            }
            Ok(answer) => self.accepted(now, answer, chance),
            Err(error) => Some(self.failed(now.mono, error.into(), Duration::ZERO, chance)),
        }
    }

    fn accepted(&mut self, now: Now, answer: Answer, chance: &mut Chance) -> Option<Event> {
        match (&self.phase, answer) {
            (Phase::Registering(_), Answer::Registered { .. }) => {
                self.phase = Phase::Listening(now.mono.plus(patience(&self.timing)));
                None
            }
            (Phase::Confirming(_), Answer::Confirmed { by, grants }) => {
                self.is_heard(now.mono);
                self.phase = Phase::Member(now.mono);
                Some(Event::Joined { by, grants })
            }
            (
                Phase::Beating { sent, .. },
                Answer::Heard {
                    by,
                    term,
                    now: told,
                    grants,
                    hints,
                    moves,
                },
            ) => {
                let took = now.mono.since(sent.mono);
                self.is_heard(now.mono);
                self.next_beat(now.mono, chance);
                let now = told.0;
                Some(Event::Heard(Heard {
                    by,
                    term,
                    now,
                    took,
                    grants,
                    hints,
                    moves,
                }))
            }
            (_, _) => Some(self.failed(now.mono, Failure::Garbled, Duration::ZERO, chance)),
        }
    }

    /// The next deadline.
    #[must_use]
    pub fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        match self.phase {
            Phase::Resting(until) => wake.at_mono(until, "register"),
            Phase::Listening(until) => wake.at_mono(until, "probe"),
            Phase::Member(due) => wake.at_mono(due, "heartbeat"),
            Phase::Beating { .. } | Phase::Registering(_) | Phase::Confirming(_) | Phase::Over => {}
        }
        if let Some(end) = self.silence_ends()
            && self.is_member()
            && !self.silent
        {
            wake.at_mono(end, "session");
        }
        wake
    }

    /// Two heartbeats must have failed, too: who was suspended for a session could ask nobody.
    fn silence_ends(&self) -> Option<Mono> {
        let heard = self.heard.filter(|_| self.missed >= 2)?;
        Some(heard.plus(self.timing.session))
    }

    fn is_heard(&mut self, now: Mono) {
        self.heard = Some(now);
        self.missed = 0;
        self.silent = false;
        self.failure = None;
        self.backoff.reset();
    }

    fn next_beat(&mut self, now: Mono, chance: &mut Chance) {
        // A fifth of jitter downwards, so that three still fit a session.
        let pause = chance.between(self.timing.heartbeat * 4 / 5, self.timing.heartbeat);
        self.phase = Phase::Member(now.plus(pause));
    }

    /// Two requests in a row without any answer: the connection looks dead. If a new one is no
    /// better, the next order comes after as many again.
    fn count_silence(&mut self, answer: &Result<Answer, AskError>, out: &mut Vec<Op>) {
        if !matches!(answer, Err(AskError::TimedOut)) {
            self.unanswered = 0;
            return;
        }
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered >= 2 && self.unanswered.is_power_of_two() {
            out.push(Op::Reconnect);
        }
    }

    fn refused(
        &mut self,
        now: Mono,
        reason: Refusal,
        after: Duration,
        chance: &mut Chance,
    ) -> Event {
        match reason {
            Refusal::Superseded => {
                self.phase = Phase::Over;
                Event::Superseded
            }
            Refusal::Unregistered if self.is_member() => {
                // Forgotten: the coordinator is new, or did not hear us. It is expected soon.
                self.phase = Phase::Resting(soon(now, &self.timing, chance));
                Event::Failed(Failure::Refused(reason))
            }
            Refusal::TwinAlive
            | Refusal::Unregistered
            | Refusal::NotLeader
            | Refusal::NoSlave
            | Refusal::Draining
            | Refusal::Busy
            | Refusal::BadRequest => self.failed(now, Failure::Refused(reason), after, chance),
        }
    }

    /// A member keeps its rhythm; who is not in waits longer each time.
    fn failed(&mut self, now: Mono, why: Failure, after: Duration, chance: &mut Chance) -> Event {
        self.failure = Some(why);
        if self.is_member() {
            self.missed = self.missed.saturating_add(1);
            self.next_beat(now, chance);
        } else {
            // On top of what was told: those who were told the same don't come in step.
            let pause = self.backoff.pause(chance).saturating_add(after);
            self.phase = Phase::Resting(now.plus(pause));
        }
        Event::Failed(why)
    }
}

#[cfg(test)]
pub(crate) mod bench;
#[cfg(test)]
mod tests;
