//! The slave at its master: what it tells in a heartbeat, what it makes of the answers.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{Life, Slave};
use crate::{
    bus::{AskError, AskId, Op},
    joining::{Event as Joined, Failure},
    machine::End,
    subject::Endpoints,
    time::{Now, Wall},
    window::WindowNo,
    wire::{Answer, Event, Fact, GrantWire, Question, Refusal, SlaveBeat, Who},
};

impl Slave {
    pub(super) fn answered(
        &mut self,
        now: Now,
        ask: AskId,
        answer: Result<Answer, AskError>,
        out: &mut Vec<Op>,
    ) -> Option<End> {
        if self.fetching == Some(ask) {
            self.fetching = None;
            if let Ok(Answer::Grants { grants }) = answer {
                grants
                    .into_iter()
                    .for_each(|wire| self.accept(now, wire, false));
            }
            return None;
        }
        if let Life::Leaving { left, .. } = &mut self.life {
            if *left == Some(ask) {
                // Perhaps it was not done, and a seat that nobody gave up is frozen.
                let again = matches!(answer, Err(AskError::TimedOut));
                *left = again.then(|| self.joining.leave(None, &mut self.asks, out));
            }
            return None;
        }
        let answer = self.by_the_leader(answer);
        let event = self
            .joining
            .answered(now, ask, answer, &mut self.chance, out)?;
        self.membership(now, event, out)
    }

    /// A heartbeat's answer under a lower term than one heard is a former leader's. Getting in is
    /// not refused: a leader that forgot the terms, as Redis did, hears the higher one with the
    /// first heartbeat, and a former one steps down by it.
    fn by_the_leader(&mut self, answer: Result<Answer, AskError>) -> Result<Answer, AskError> {
        let term = match &answer {
            Ok(Answer::Registered { term, .. } | Answer::Heard { term, .. }) => *term,
            Ok(_) | Err(_) => None,
        };
        let leads = term.is_none_or(|term| self.holdings.learn(term));
        if leads || matches!(answer, Ok(Answer::Registered { .. })) {
            return answer;
        }
        self.holdings.dropped.lower_term += 1;
        Ok(Answer::Refused {
            reason: Refusal::NotLeader,
            retry_after_ms: 0,
        })
    }

    pub(super) fn membership(&mut self, now: Now, event: Joined, out: &mut Vec<Op>) -> Option<End> {
        match event {
            Joined::Joined { by, grants } => {
                if !core::mem::replace(&mut self.serving, true) {
                    out.push(Op::Serve(Endpoints::Slave(self.me.id.clone())));
                }
                self.accept_from(now, &by, grants);
                None
            }
            Joined::Heard(heard) => {
                self.offset.measured(now.wall, heard.now, heard.took);
                self.accept_from(now, &heard.by, heard.grants);
                self.follow(&heard.hints);
                None
            }
            // The other one serves the id's endpoints now: two answers to a question are worse
            // than none. What was granted goes on.
            Joined::Failed(Failure::Refused(Refusal::TwinAlive)) => {
                if core::mem::replace(&mut self.serving, false) {
                    out.push(Op::Withdraw(Endpoints::Slave(self.me.id.clone())));
                }
                None
            }
            // It goes on with what it was granted, and keeps trying.
            Joined::Failed(_) | Joined::Silent => None,
            Joined::Superseded => {
                let event = Event::new(now.wall, self.author(), Fact::Superseded);
                out.push(Op::Tell(event));
                Some(End::Superseded)
            }
        }
    }

    /// Grants that a master told; those of the leader with the highest term are vouched for.
    fn accept_from(&mut self, now: Now, by: &Who, grants: Vec<GrantWire>) {
        let vouched = self.holdings.term().is_some_and(|t| t.boot == by.boot);
        for wire in grants {
            self.accept(now, wire, vouched);
        }
    }

    pub(super) fn accept(&mut self, now: Now, wire: GrantWire, vouched: bool) {
        self.to_cut |= self.holdings.accept(now, wire, vouched);
    }

    pub(super) fn beat(&self, now: Now) -> Question {
        let granted: BTreeSet<_> = self
            .holdings
            .own(now)
            .map(|g| (g.service.clone(), g.window))
            .collect();
        Question::SlaveBeat(SlaveBeat {
            who: self.me.clone(),
            sent_at: now.wall.into(),
            term: self.holdings.term(),
            loads: self.loads(now),
            granted: granted.into_iter().collect(),
            clock_off: self.sits_out(),
        })
    }

    /// Close to a start, asks once for windows that its members should have.
    pub(super) fn fetch_missing(&mut self, now: Now, out: &mut Vec<Op>) {
        let next = self.timing.window_at(now.wall).next();
        let close = self.fetch_at(next) <= now.wall;
        if !close || self.fetched_for == next || !self.joining.is_member() {
            return;
        }
        self.fetched_for = next;
        let missing = self
            .services()
            .into_iter()
            .any(|service| self.holdings.newest(&service) < Some(next));
        if missing {
            self.fetching = Some(self.joining.fetch(&mut self.asks, out));
        }
    }

    /// A third of the lead before the start: two publications and several heartbeats failed.
    pub(super) fn fetch_at(&self, n: WindowNo) -> Wall {
        self.timing.starts(n).minus(self.timing.lead / 3)
    }
}
