//! The leader's endpoints: register, confirm, heartbeat, leave, window, status; assignments are
//! [`super::assign`]'s.
//!
//! Every handler is idempotent: a request that timed out was perhaps done and comes again.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Master, Order, Phase, Slave};
use crate::{
    bus::{self, ReplyTo},
    id::Nonce,
    roster::{Confirmed, Left, No, Registered},
    subject::{Place, Verb},
    time::{Now, millis_u64},
    wire::{
        Answer, Confirm, Fact, Leave, Probe, Publication, Question, Refusal, Register, Role,
        SlaveBeat, Time, Who,
    },
};

impl Master {
    pub(super) fn asked(
        &mut self,
        now: Now,
        to: ReplyTo,
        place: &Place,
        question: Question,
        chance: Nonce,
        out: &mut Vec<Order>,
    ) {
        if let Some(reason) = self.closed() {
            return answer(to, self.refused(reason), out);
        }
        let said = match (place, question) {
            (Place::Master(Verb::Register), Question::Register(register)) => {
                self.register(now, &register, chance, out)
            }
            (Place::Master(Verb::Confirm), Question::Confirm(confirm)) => {
                self.confirm(now, &confirm, out)
            }
            (Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat)) => {
                self.beat(now, &beat, out)
            }
            (Place::Master(Verb::Leave), Question::Leave(leave)) => self.leave(now, &leave, out),
            (Place::Master(Verb::Window), Question::Window(who)) => self.window(now, &who),
            (Place::Master(Verb::Status), Question::Status) => Answer::Master(self.status(now)),
            (Place::Assign, Question::Assign(assign)) => return self.assign(to, assign, out),
            (
                Place::Master(_)
                | Place::Assign
                | Place::SlaveWindows(_)
                | Place::OrchWindows(_)
                | Place::Slave(..)
                | Place::Event(_),
                _,
            ) => self.refused(Refusal::BadRequest),
        };
        answer(to, said, out);
    }

    fn closed(&self) -> Option<Refusal> {
        match &self.phase {
            Phase::Leading(_) => None,
            Phase::Standby => Some(Refusal::NotLeader),
            Phase::Leaving { .. } | Phase::Over => Some(Refusal::Draining),
        }
    }

    /// First phase: the probe goes out on the newcomer's own subject.
    fn register(
        &mut self,
        now: Now,
        register: &Register,
        chance: Nonce,
        out: &mut Vec<Order>,
    ) -> Answer {
        let Register {
            who,
            service,
            build,
        } = register;
        if service.is_some() {
            return self.refused(Refusal::BadRequest);
        }
        let slave = Slave::default();
        match self.roster.register(now.mono, who, build, slave, chance) {
            Registered::Refused(no) => refusal(no),
            Registered::Probe(nonce) => {
                out.push(Order::Bus(bus::Op::Publish {
                    place: Place::SlaveWindows(who.id.clone()),
                    body: Publication::Probe(Probe {
                        boot: who.boot,
                        nonce,
                    }),
                }));
                Answer::Registered {
                    by: self.who(),
                    term: self.lead().map(|lead| lead.term),
                }
            }
        }
    }

    /// Second phase. A boot that takes over its id after the old one's session leaves the old
    /// one's windows dark: that is declared like any other silence.
    fn confirm(&mut self, now: Now, confirm: &Confirm, out: &mut Vec<Order>) -> Answer {
        let who = &confirm.who;
        let old = self.roster.get(&who.id);
        let old = old.filter(|member| member.boot != who.boot).cloned();
        match self.roster.confirm(now.mono, who, confirm.nonce) {
            Confirmed::Refused(no) => return refusal(no),
            Confirmed::Again => {}
            Confirmed::Joined => {
                if let Some(member) = old {
                    self.vanish(now, &who.id, &member, out);
                }
                self.vanished.returned(&who.id);
                let fact = Fact::Joined {
                    role: Role::Slave,
                    id: who.id.clone(),
                    boot: who.boot,
                    service: None,
                };
                self.tell(now, fact, out);
            }
        }
        Answer::Confirmed {
            by: self.who(),
            grants: self.grants_for(now, who),
        }
    }

    fn beat(&mut self, now: Now, beat: &SlaveBeat, out: &mut Vec<Order>) -> Answer {
        if let Some(term) = beat.term {
            self.hear(now, term, out);
        }
        let Some(term) = self.lead().map(|lead| lead.term) else {
            return self.refused(Refusal::NotLeader);
        };
        self.note_reports(now.mono, now, beat);
        let hints = match self.roster.beat(now.mono, &beat.who) {
            Err(no) => return refusal(no),
            Ok(member) => {
                member.role.note(now, beat);
                member.offset_ms = super::heard::offset_ms(now, beat);
                member.role.hints.clone()
            }
        };
        self.note_services(now.mono, beat);
        Answer::Heard {
            by: self.who(),
            term: Some(term),
            now: Time(now.wall),
            grants: self.grants_for(now, &beat.who),
            hints,
            moves: false,
        }
    }

    fn leave(&mut self, now: Now, leave: &Leave, out: &mut Vec<Order>) -> Answer {
        match self.roster.leave(&leave.who, leave.after) {
            Left::Now(member) => self.gone_in_order(now, &leave.who.id, member.boot, out),
            Left::Later | Left::Unknown => {}
        }
        Answer::Left
    }

    fn window(&self, now: Now, who: &Who) -> Answer {
        if self.roster.member(who).is_some() {
            let grants = self.grants_for(now, who);
            Answer::Grants { grants }
        } else {
            self.refused(Refusal::Unregistered)
        }
    }

    /// A refusal; the next heartbeat is early enough to ask again.
    pub(super) fn refused(&self, reason: Refusal) -> Answer {
        refuse(reason, self.timing().heartbeat)
    }
}

fn refusal(no: No) -> Answer {
    refuse(no.reason, no.retry_after)
}

fn refuse(reason: Refusal, retry_after: Duration) -> Answer {
    Answer::Refused {
        reason,
        retry_after_ms: millis_u64(retry_after),
    }
}

pub(super) fn answer(to: ReplyTo, answer: Answer, out: &mut Vec<Order>) {
    out.push(Order::Bus(bus::Op::Answer { to, answer }));
}
