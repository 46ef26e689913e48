//! Letting go: pauses, waits, the way out, and the ends that are not decided by an outcome.

use alloc::{format, string::String, vec::Vec};
use core::time::Duration;

use super::{
    Order, Transaction,
    member::{Doing, Member},
};
use crate::{
    saga::{Attempt, Class, Ending, Entry, Kind, Text},
    store::To,
    time::Now,
};

impl Transaction {
    /// Sent to a person: what the store does not know of the others is noted first.
    pub(super) fn come_to_rest(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.is_calling() {
            return;
        }
        self.doubt_begun();
        if !self.note(now, out) {
            self.settle(Ending::Terminated, self.error.clone(), None, out);
        }
    }

    /// On the way out: what is being called is waited for, what is not begun goes back to anyone.
    pub(super) fn leave(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.is_calling() || self.note(now, out) {
            return;
        }
        let begins = |m: &Member| matches!(m.doing, Doing::Ready | Doing::Resting(_));
        if self.is_giving_up() || self.members.iter().any(begins) {
            let (attempts, doubt) = self.row();
            self.write(To::HandBack { attempts, doubt }, None, out);
        } else {
            self.park(now, out);
        }
    }

    /// A limit is over. A doubt that the row does not know yet is stored first: the pause is due
    /// at once, and whoever claims it then disables it.
    pub(super) fn expire(&mut self, now: Now, why: Text, out: &mut Vec<Order>) {
        if self.is_calling() || self.note(now, out) {
            return;
        }
        let (attempts, doubt) = self.row();
        if doubt == self.row_doubt {
            self.settle(Ending::Disabled, Some(why), None, out);
        } else {
            self.pause(Duration::ZERO, (attempts, doubt), why, None, None, out);
        }
    }

    /// Nothing can be done now. In a group the longest pause counts, so that no member is called
    /// before its own is over; without any, the first wait that ends does.
    pub(super) fn park(&mut self, now: Now, out: &mut Vec<Order>) {
        let untold: Vec<&Member> = self.members.iter().filter(|m| m.is_untold()).collect();
        let entry = untold.first().and_then(|m| self.paused(now, m));
        if untold.len() > 1 {
            return self.write(To::Stay, entry, out);
        }
        let clock = self.database_now(now);
        let (mut pause, mut wait) = (None, self.expires_at.since(clock));
        let (mut targets, mut pending) = (Vec::new(), 0);
        let mut why = None;
        for member in self.members.iter().filter(|m| m.then().is_none()) {
            pending += 1;
            let said = match &member.doing {
                Doing::Paused {
                    error, pause: own, ..
                } => {
                    pause = pause.max(Some(*own));
                    error.clone()
                }
                Doing::Held { target, after } => {
                    wait = wait.min(*after);
                    targets.push(target);
                    Text::new(&format!("waits for {target}"))
                }
                Doing::Waiting(until) => {
                    if let Some(until) = until {
                        wait = wait.min(until.since(clock));
                    }
                    self.waits_for(member.seq)
                }
                Doing::Ready
                | Doing::Calling(_)
                | Doing::Resting(_)
                | Doing::Ended(..)
                | Doing::Recorded(_) => continue,
            };
            why.get_or_insert(said);
        }
        let same = targets.windows(2).all(|two| two[0] == two[1]);
        let held = (same && targets.len() == pending).then(|| targets.first());
        let waiting_on = held.flatten().map(|target| String::clone(target));
        let idle = self
            .idle_limit()
            .map(|l| self.progressed_at.plus(l).since(clock));
        let after = pause.unwrap_or(wait).min(idle.unwrap_or(Duration::MAX));
        let why = why.unwrap_or_else(|| Text::new("nothing to do"));
        let row = self.row();
        self.pause(after, row, why, waiting_on, entry, out);
    }

    fn waits_for(&self, seq: u32) -> Text {
        let Some(step) = self.planned(seq) else {
            return Text::new("waits");
        };
        let name = &step.name;
        Text::new(&match step.kind {
            Kind::Signal { .. } => format!("waits for the signal {name}"),
            Kind::Timer(_) => format!("waits for the timer {name}"),
            Kind::Saga => format!("waits for the saga that {name} started"),
            Kind::Action | Kind::Decide => format!("waits at {name}"),
        })
    }

    /// Attempts and doubt as the row keeps them. Alone they are the member's; in a group each
    /// member's stand in the log, and the row's doubt is everybody's who has no outcome. What waits
    /// for something from outside has no attempts: by that the store knows whom a signal wakes.
    pub(super) fn row(&self) -> (u32, bool) {
        let pending = || self.members.iter().filter(|m| m.then().is_none());
        let waits = pending().any(|m| matches!(m.doing, Doing::Waiting(_)));
        let attempts = pending().map(|m| m.attempts).max().filter(|_| !waits);
        let doubt = if self.is_alone() {
            pending().any(|m| m.doubt)
        } else {
            self.row_doubt
        };
        (attempts.unwrap_or(0), doubt)
    }

    /// In a group, records what the store does not know of a member; alone, the row tells it.
    fn note(&mut self, now: Now, out: &mut Vec<Order>) -> bool {
        let untold = self.members.iter().find(|m| m.is_untold());
        let entry = untold
            .filter(|_| !self.is_alone())
            .and_then(|m| self.paused(now, m));
        let some = entry.is_some();
        if some {
            self.write(To::Stay, entry, out);
        }
        some
    }

    /// The record of a member without an outcome.
    fn paused(&self, now: Now, member: &Member) -> Option<Entry> {
        let (class, error) = if let Doing::Paused { class, error, .. } = &member.doing {
            (*class, error.clone())
        } else if self.is_alone() {
            return None;
        } else if member.doubt {
            (Class::Unknown, Text::new("it may have been applied"))
        } else {
            (Class::Transient, Text::new("to be called again"))
        };
        let attempt = Attempt::Paused {
            class,
            error,
            doubt: member.doubt,
        };
        self.entry(now, member, attempt)
    }
}
