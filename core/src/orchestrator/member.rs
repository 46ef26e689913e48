//! The orchestrator at its slave: gets in, moves when told to, looks for another slave when this
//! one is gone. Grants that it holds stay good through all of that.

use alloc::vec::Vec;

use super::{At, Life, Orchestrator};
use crate::{
    bus::{AskError, AskId, Op},
    id::NodeId,
    joining::{Coordinator, Event, Failure, Heard, Joining},
    machine::End,
    time::{Now, Wall},
    wire::{self, Answer, Author, Fact, OrchestratorBeat, Question, Refusal, Role, Who},
};

/// Attempts at one slave before another is asked for: one lost message is nobody's fault.
const ATTEMPTS: u32 = 2;

impl Orchestrator {
    pub(super) fn answered(
        &mut self,
        now: Now,
        ask: AskId,
        answer: Result<Answer, AskError>,
        out: &mut Vec<Op>,
    ) -> Option<End> {
        if let Life::Leaving { left, .. } = self.life {
            return if left == ask {
                self.left(&answer, out)
            } else {
                None
            };
        }
        if self.fetching == Some(ask) {
            self.fetching = None;
            if let Ok(Answer::Grants { grants }) = answer {
                grants
                    .into_iter()
                    .for_each(|wire| self.inbox.accept(now, wire));
            }
            return None;
        }
        if self.search.awaits(ask) {
            let connected = self.slave().is_some();
            let chance = &mut self.chance;
            let found = self
                .search
                .answered(now.mono, answer, connected, chance, out);
            if let Some(slave) = found {
                self.go_to(now, slave, out);
            }
            return None;
        }
        let at = self.at.as_mut()?;
        let event = at
            .joining
            .answered(now, ask, answer, &mut self.chance, out)?;
        self.membership(now, event, out)
    }

    /// The answer to a leave. One that timed out is said again; otherwise, or when time is over,
    /// the slave forgets us after a session.
    fn left(&mut self, answer: &Result<Answer, AskError>, out: &mut Vec<Op>) -> Option<End> {
        let again = matches!(answer, Err(AskError::TimedOut));
        match (&self.at, &mut self.life) {
            (Some(at), Life::Leaving { left, .. }) if again => {
                *left = at.joining.leave(None, &mut self.asks, out);
                None
            }
            _ => Some(End::Drained),
        }
    }

    /// The master named a slave. Only now the old one is left, so that a search without success
    /// costs nothing; it keeps us for the windows already cut.
    fn go_to(&mut self, now: Now, slave: NodeId, out: &mut Vec<Op>) {
        if let Some(at) = &self.at {
            if at.slave == slave {
                return;
            }
            let last = self.timing.window_at(now.wall).next();
            at.joining.leave(Some(last), &mut self.asks, out);
        }
        self.inbox.know(now.mono, &slave);
        let joining = Joining::new(
            self.me.clone(),
            Some(self.service.clone()),
            self.build.clone(),
            Coordinator::Slave(slave.clone()),
            self.timing,
        );
        self.at = Some(At {
            slave,
            joining,
            failures: 0,
        });
    }

    fn membership(&mut self, now: Now, event: Event, out: &mut Vec<Op>) -> Option<End> {
        match event {
            Event::Joined { grants, .. } => {
                self.search.succeeded();
                if let Some(at) = &mut self.at {
                    at.failures = 0;
                }
                grants
                    .into_iter()
                    .for_each(|wire| self.inbox.accept(now, wire));
            }
            Event::Heard(Heard { grants, moves, .. }) => {
                grants
                    .into_iter()
                    .for_each(|wire| self.inbox.accept(now, wire));
                self.move_or_stay(now, moves);
            }
            Event::Failed(why) => self.failed(now, why),
            Event::Silent => {
                self.give_up(now);
                self.search.start(now.mono);
            }
            Event::Superseded => {
                let Who { id, boot } = self.me.clone();
                let by = Author {
                    role: Role::Orchestrator,
                    id,
                    boot,
                };
                let event = wire::Event::new(now.wall, by, Fact::Superseded);
                out.push(Op::Tell(event));
                return Some(End::Superseded);
            }
        }
        None
    }

    fn move_or_stay(&mut self, now: Now, moves: bool) {
        match (&self.at, moves) {
            (Some(at), true) if self.search.is_idle() => {
                self.search.exclude(now.mono, &at.slave);
                self.search.start(now.mono);
            }
            (_, true) => {}
            (_, false) => self.search.cancel(),
        }
    }

    fn failed(&mut self, now: Now, why: Failure) {
        let Some(at) = &mut self.at else {
            return;
        };
        let member = at.joining.is_member();
        let goes = match why {
            Failure::Refused(Refusal::Draining) => true,
            // Its session decides; it may only be slow.
            _ if member => false,
            // Forgotten or crowded out: the same slave takes it soon. A twin is waited for.
            Failure::Refused(Refusal::Unregistered | Refusal::Busy | Refusal::TwinAlive) => false,
            Failure::TimedOut | Failure::Deaf | Failure::Garbled => {
                at.failures += 1;
                at.failures >= ATTEMPTS
            }
            Failure::NoResponders
            | Failure::Refused(
                Refusal::NotLeader | Refusal::NoSlave | Refusal::BadRequest | Refusal::Superseded,
            ) => true,
        };
        if goes {
            self.give_up(now);
            if member {
                self.search.start(now.mono);
            } else {
                self.search.start_later(now.mono, &mut self.chance);
            }
        }
    }

    /// This slave is of no use now; what it granted stays.
    fn give_up(&mut self, now: Now) {
        if let Some(at) = self.at.take() {
            self.search.exclude(now.mono, &at.slave);
        }
    }

    /// Registers, beats, fetches what is missing.
    pub(super) fn stay_in(&mut self, now: Now, out: &mut Vec<Op>) -> Option<End> {
        let at = self.at.as_mut()?;
        let event = at.joining.woke(now, &mut self.chance, &mut self.asks, out);
        if let Some(end) = event.and_then(|event| self.membership(now, event, out)) {
            return Some(end);
        }
        let health = self.health(now.mono);
        let close = self.fetch_at() <= now.wall;
        let at = self.at.as_mut()?;
        if at.joining.beat_due(now.mono) {
            let beat = Question::OrchestratorBeat(OrchestratorBeat {
                who: self.me.clone(),
                service: self.service.clone(),
                sent_at: now.wall.into(),
                health,
            });
            at.joining.beat(now, beat, &mut self.asks, out);
        }
        let next = self.timing.window_at(now.wall).next();
        if close && self.fetched_for != next && at.joining.is_member() {
            self.fetched_for = next;
            if !self.inbox.has(&at.slave, next) {
                self.fetching = Some(at.joining.fetch(&mut self.asks, out));
            }
        }
        None
    }

    /// A third of the lead before the next start: two publications and several heartbeats failed.
    fn fetch_at(&self) -> Wall {
        let next = self.timing.window_at(self.seen.wall).next();
        self.timing.starts(next).minus(self.timing.lead / 3)
    }

    /// The moments at which what may be claimed changes, and when a missing window is fetched.
    pub(super) fn edges(&self) -> [(Wall, &'static str); 4] {
        let n = self.timing.window_at(self.seen.wall);
        let (starts, ends, guard) = (
            self.timing.starts(n),
            self.timing.ends(n),
            self.timing.guard,
        );
        [
            (starts.plus(guard), "window opens"),
            (self.fetch_at(), "missing window"),
            (ends.minus(guard), "window closes"),
            (ends, "window"),
        ]
    }
}
