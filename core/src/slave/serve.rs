//! What a slave answers its orchestrators, and whoever asks for its status.

use alloc::vec::Vec;

use super::{Life, Slave, members::Role};
use crate::{
    bus::Op,
    id::Nonce,
    roster::{Confirmed, Left, No, Registered},
    subject::{Place, Verb},
    time::{Now, millis_u64},
    window::Grant,
    wire::{
        Answer, Confirm, Event, Fact, GrantWire, Health, Leave, MemberStatus, OrchestratorBeat,
        Probe, Publication, Question, Refusal, Register, Role as Kind, SlaveStatus, Time, Who,
    },
};

/// Members and grants in a status: a few hundred bytes each, and a message has 64 KiB. People who
/// want all of them subscribe.
const SHOWN: usize = 64;

impl Slave {
    pub(super) fn serve(
        &mut self,
        now: Now,
        place: &Place,
        question: Question,
        chance: Nonce,
        out: &mut Vec<Op>,
    ) -> Answer {
        let Place::Slave(id, verb) = place else {
            return refused(Refusal::BadRequest);
        };
        if *id != self.me.id {
            return refused(Refusal::BadRequest);
        }
        if matches!(self.life, Life::Leaving { .. })
            && matches!(verb, Verb::Register | Verb::Confirm | Verb::Heartbeat)
        {
            return self.part(now, question, out);
        }
        match (verb, question) {
            (Verb::Register, Question::Register(ask)) => self.register(now, ask, chance, out),
            (Verb::Confirm, Question::Confirm(ask)) => self.confirm(now, &ask, out),
            (Verb::Heartbeat, Question::OrchestratorBeat(beat)) => self.heard(now, &beat),
            (Verb::Leave, Question::Leave(leave)) => self.leave(now, &leave, out),
            (Verb::Window, Question::Window(who)) => Answer::Grants {
                grants: self.holdings.of(now, &who),
            },
            (Verb::Status, Question::Status) => Answer::Slave(self.status(now)),
            (
                Verb::Register
                | Verb::Confirm
                | Verb::Heartbeat
                | Verb::Leave
                | Verb::Window
                | Verb::Status,
                _,
            ) => refused(Refusal::BadRequest),
        }
    }

    /// It goes: nobody gets in, and who is in looks for another slave from now on.
    fn part(&mut self, now: Now, question: Question, out: &mut Vec<Op>) -> Answer {
        if let Question::OrchestratorBeat(OrchestratorBeat { who, .. }) = question {
            self.leave(now, &Leave { who, after: None }, out);
        }
        refused(Refusal::Draining)
    }

    fn register(&mut self, now: Now, ask: Register, chance: Nonce, out: &mut Vec<Op>) -> Answer {
        let Some(service) = ask.service else {
            return refused(Refusal::BadRequest);
        };
        if !self.takes(&service) {
            return refused(Refusal::Busy);
        }
        let role = Role {
            service,
            health: Health::default(),
        };
        let registered = self
            .roster
            .register(now.mono, &ask.who, &ask.build, role, chance);
        match registered {
            Registered::Probe(nonce) => {
                let Who { id, boot } = ask.who;
                let body = Publication::Probe(Probe { boot, nonce });
                out.push(Op::Publish {
                    place: Place::OrchWindows(id),
                    body,
                });
                Answer::Registered {
                    by: self.me.clone(),
                    term: None,
                }
            }
            Registered::Refused(no) => answer_no(no),
        }
    }

    fn confirm(&mut self, now: Now, ask: &Confirm, out: &mut Vec<Op>) -> Answer {
        match self.roster.confirm(now.mono, &ask.who, ask.nonce) {
            Confirmed::Refused(no) => return answer_no(no),
            Confirmed::Again => {}
            Confirmed::Joined => {
                self.to_cut = true;
                let Who { id, boot } = ask.who.clone();
                let service = self.roster.get(&id).map(|m| m.role.service.clone());
                // The first of its service: the master should know soon.
                if service.as_ref().is_some_and(|s| self.is_first(s)) {
                    self.joining.hurry(now.mono);
                }
                let role = Kind::Orchestrator;
                let fact = Fact::Joined {
                    role,
                    id,
                    boot,
                    service,
                };
                out.push(Op::Tell(Event::new(now.wall, self.author(), fact)));
                // What waited for a first member is cut before the answer tells the grants.
                self.issue(now, out);
            }
        }
        Answer::Confirmed {
            by: self.me.clone(),
            grants: self.holdings.of(now, &ask.who),
        }
    }

    fn heard(&mut self, now: Now, beat: &OrchestratorBeat) -> Answer {
        let isolated = self.is_isolated(now) && self.holdings.own(now).next().is_none();
        let member = match self.roster.beat(now.mono, &beat.who) {
            Ok(member) => member,
            Err(no) => return answer_no(no),
        };
        member.offset_ms = beat.sent_at.0.0.saturating_sub(now.wall.0);
        member.role.health = beat.health;
        let moves = isolated || self.moving.contains(&beat.who);
        Answer::Heard {
            by: self.me.clone(),
            term: None,
            now: Time(now.wall),
            grants: self.holdings.of(now, &beat.who),
            hints: Vec::new(),
            moves,
        }
    }

    fn leave(&mut self, now: Now, leave: &Leave, out: &mut Vec<Op>) -> Answer {
        match self.roster.leave(&leave.who, leave.after) {
            Left::Now(member) => self.tell_left(now, leave.who.id.clone(), &member, true, out),
            Left::Later | Left::Unknown => {}
        }
        Answer::Left
    }

    /// What it tells people and tools; at most 64 members and grants.
    #[must_use]
    pub fn status(&self, now: Now) -> SlaveStatus {
        let members = self.roster.iter().take(SHOWN).map(|(id, m)| MemberStatus {
            who: Who {
                id: id.clone(),
                boot: m.boot,
            },
            heard_ms: millis_u64(now.mono.since(m.heard)),
            clock_offset_ms: m.offset_ms,
            loads: Vec::new(),
            service: Some(m.role.service.clone()),
            health: Some(m.role.health),
            build: m.build.clone(),
        });
        let wire = |g: &Grant| GrantWire::new(self.holdings.scope(), &self.timing, g.clone());
        SlaveStatus {
            who: self.me.clone(),
            term: self.holdings.term(),
            master_heard_ms: self
                .joining
                .heard()
                .map(|at| millis_u64(now.mono.since(at))),
            orchestrators: members.collect(),
            grants: self.holdings.own(now).take(SHOWN).map(wire).collect(),
            granted: self.holdings.issued(now).take(SHOWN).map(wire).collect(),
            build: self.build.clone(),
        }
    }
}

/// A plain no; asking again soon would not help.
fn refused(reason: Refusal) -> Answer {
    Answer::Refused {
        reason,
        retry_after_ms: 1_000,
    }
}

fn answer_no(no: No) -> Answer {
    Answer::Refused {
        reason: no.reason,
        retry_after_ms: millis_u64(no.retry_after),
    }
}
