//! What comes from the bus: requests are answered elsewhere ([`super::asked`]); here is what a
//! master only overhears.
//!
//! A standby counts the sender of an overheard heartbeat as present although it never registered
//! here: it was accepted by the leader, and it must be in the first cut after a change of leader.

use alloc::vec::Vec;

use super::{MAX_SERVICES, Master, Order, Slave};
use crate::{
    bus::Told,
    roster::Left,
    subject::{Place, Topic},
    time::{Mono, Now},
    wire::{Event, Fact, GrantWire, Publication, Question, SlaveBeat},
};

impl Master {
    pub(super) fn on_bus(&mut self, now: Now, told: Told, out: &mut Vec<Order>) {
        match told {
            Told::Asked {
                to,
                place,
                question,
                chance,
            } => self.asked(now, to, &place, question, chance, out),
            Told::Overheard { question, .. } => self.overheard(now, question, out),
            Told::Published {
                place: Place::SlaveWindows(_),
                body: Publication::Grant(grant),
            } => self.overheard_grant(now, grant, out),
            // Probes, and places that are not listened to.
            Told::Published { .. } => {}
            Told::Event(event) => self.overheard_event(now, event, out),
            Told::Connected => self.hears_again(now),
            Told::Disconnected => {
                self.ears.deaf_since.get_or_insert(now.mono);
            }
            // It asks nobody.
            Told::Answered { .. } => {}
        }
    }

    fn overheard(&mut self, now: Now, question: Question, out: &mut Vec<Order>) {
        match question {
            Question::SlaveBeat(beat) => {
                if let Some(term) = beat.term {
                    self.hear(now, term, out);
                }
                self.note_reports(now.mono, now, &beat);
                // A leader answers for whom it accepted itself; a newcomer proves that it hears.
                let known = self.roster.member(&beat.who).is_some();
                if self.lead().is_some() && !known {
                    return;
                }
                self.vanish_if_replaced(now, &beat, out);
                if let Some(member) = self.roster.presume(now.mono, &beat.who, Slave::default()) {
                    member.role.note(now, &beat);
                    member.offset_ms = offset_ms(now, &beat);
                    self.vanished.returned(&beat.who.id);
                    self.note_services(now.mono, &beat);
                }
            }
            Question::Leave(leave) => {
                let left = self.roster.leave(&leave.who, leave.after);
                if let Left::Now(member) = left {
                    self.gone_in_order(now, &leave.who.id, member.boot, out);
                }
            }
            Question::Register(_)
            | Question::Confirm(_)
            | Question::OrchestratorBeat(_)
            | Question::Window(_)
            | Question::Assign(_)
            | Question::Status => {}
        }
    }

    /// Another boot of the same slave takes its place: the old boot's grants are nobody's now.
    fn vanish_if_replaced(&mut self, now: Now, beat: &SlaveBeat, out: &mut Vec<Order>) {
        let old = self.roster.get(&beat.who.id);
        let old = old.filter(|member| member.boot < beat.who.boot).cloned();
        if let Some(member) = old {
            self.vanish(now, &beat.who.id, &member, out);
        }
    }

    fn overheard_grant(&mut self, now: Now, grant: GrantWire, out: &mut Vec<Order>) {
        if let Ok(grant) = grant.open(&self.config.scope, &self.config.timing) {
            self.hear(now, grant.term, out);
            let key = (grant.window, grant.service);
            if grant.term.boot != self.config.boot && self.is_near(now, key.0) {
                self.board.note_report(now.mono, key);
            }
        }
    }

    fn overheard_event(&mut self, now: Now, event: Event, out: &mut Vec<Order>) {
        if event.by.boot == self.config.boot {
            return;
        }
        match event.fact {
            Fact::Leader { term } | Fact::SteppedDown { term, .. } => self.hear(now, term, out),
            Fact::Cut { cut } => {
                let cut = cut.open();
                self.hear(now, cut.term, out);
                self.overhear_cut(now, cut, out);
            }
            Fact::Degraded { .. }
            | Fact::Recovered { .. }
            | Fact::Joined { .. }
            | Fact::Left { .. }
            | Fact::Frozen { .. }
            | Fact::Thawed { .. }
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

    /// What happened meanwhile was not heard: everybody gets a whole session, and a standby
    /// listens anew before it competes.
    fn hears_again(&mut self, now: Now) {
        if self.ears.deaf_since.take().is_some() {
            self.roster.renew_all(now.mono);
            self.ears.since = now.mono;
        }
    }

    fn is_near(&self, now: Now, window: crate::window::WindowNo) -> bool {
        let current = self.current(now);
        (current..=current.next()).contains(&window)
    }

    /// Windows of which the sender holds a grant: nobody cuts them again.
    pub(super) fn note_reports(&mut self, at: Mono, now: Now, beat: &SlaveBeat) {
        for (service, window) in &beat.granted {
            if self.is_near(now, *window) {
                self.board.note_report(at, (*window, service.clone()));
            }
        }
    }

    pub(super) fn note_services(&mut self, at: Mono, beat: &SlaveBeat) {
        for load in beat.loads.iter().take(MAX_SERVICES) {
            if load.live > 0 {
                self.board.note_service(at, &load.service);
            }
        }
    }

    /// The topics that it listens to; a leader serves the first instead.
    pub(super) const TOPICS: [Topic; 3] =
        [Topic::MasterRequests, Topic::AllSlaveWindows, Topic::Events];
}

impl Slave {
    /// Notes what a heartbeat told; the newest counts.
    pub(super) fn note(&mut self, now: Now, beat: &SlaveBeat) {
        self.beat_at = Some(now.mono);
        self.clock_off = beat.clock_off;
        let loads = beat.loads.iter().take(MAX_SERVICES);
        self.loads = loads.map(|l| (l.service.clone(), l.clone())).collect();
        self.note_offset(offset_ms(now, beat));
    }
}

/// The sender's clock less ours, a message's way too low.
pub(super) fn offset_ms(now: Now, beat: &SlaveBeat) -> i64 {
    beat.sent_at.0.0.saturating_sub(now.wall.0)
}
