//! The machine of this process's own lease in the store: one lease a process, for all of its rows.
//!
//! It decides when to open, renew and close the lease, when calls must be dropped, when others may
//! be declared dead, and which rows are strays. A lease holds for its length from when the renewal
//! was *sent*, by a clock that counts suspend. It refuses to know what the rows do.

mod contact;

use alloc::{collections::BTreeSet, vec::Vec};
use core::time::Duration;

use contact::Contact;

use crate::{
    chance,
    id::{Nonce, TransactionId},
    machine::Machine,
    store::{Fence, Incarnation, Renewed},
    time::{Mono, Now, Wake, Wall},
};

/// After a request that failed, the next is sent after this, doubling up to a sixth of the lease.
const AGAIN: Duration = Duration::from_millis(100);

/// The lease machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    lease: Duration,
    /// For the jitter.
    seed: u64,
    state: State,
    contact: Contact,
    /// Requests in a row without an answer.
    failures: u32,
    /// Strays that the last renewal showed: seen again, they are handed back.
    strays: BTreeSet<(TransactionId, Nonce)>,
    draining: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// No incarnation; opened at this time.
    Absent { open_at: Mono },
    /// Asked for one, at this time.
    Opening { since: Mono },
    /// Has one.
    Held(Lease),
    /// Asked the store to end it.
    Closing { of: Incarnation, next: Mono },
    /// Ended.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    of: Incarnation,
    /// Holds until then.
    until: Mono,
    /// The next renewal; while one is under way, when it is given up.
    next: Mono,
    /// A renewal is under way.
    asked: bool,
    /// Calls were dropped because `until` passed.
    dropped: bool,
}

/// Facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The store holds a new incarnation.
    Opened {
        /// When the request was sent.
        sent_at: Mono,
        /// Which.
        incarnation: Incarnation,
        /// The database's clock.
        clock: Wall,
    },
    /// A renewal was answered.
    Renewed {
        /// When the request was sent.
        sent_at: Mono,
        /// Of which incarnation.
        incarnation: Incarnation,
        /// The answer.
        answer: Renewed,
        /// Nonces of all rows in flight here *and* of all claims that are not answered yet.
        known: Vec<Nonce>,
    },
    /// A request to the store failed, or its outcome is not known.
    Unreachable,
    /// The process is about to go: it declares nobody dead any more.
    Drained,
    /// Nothing is in flight any more, or the grace period is over: the lease may end.
    Emptied,
    /// The store ended the lease.
    Closed,
    /// Time passed; the first input.
    Woke,
}

/// Orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Store a new incarnation with a lease of its own.
    Open,
    /// Renew; the answer brings the rows stored as run by it.
    Renew(Incarnation),
    /// Declare dead whose lease is over. Comes only from a process with contact of its own.
    DeclareDead(Incarnation),
    /// The local lease is over: every open call is unknown, nothing new starts.
    DropCalls,
    /// This incarnation was declared dead: its rows are somebody else's.
    Forget(Incarnation),
    /// Hand these rows of this incarnation back: nobody here runs them.
    HandBack(Incarnation, Vec<(TransactionId, Fence)>),
    /// End the lease, so that what is left is taken at once.
    Close(Incarnation),
    /// Nothing more comes.
    Stop,
}

impl Owner {
    /// Without a lease; the first [`Input::Woke`] asks for one.
    #[must_use]
    pub fn new(lease: Duration, seed: u64) -> Self {
        Self {
            lease,
            seed,
            state: State::Absent {
                open_at: Mono::default(),
            },
            contact: Contact::default(),
            failures: 0,
            strays: BTreeSet::new(),
            draining: false,
        }
    }

    /// Until when a call may start, this moment included: a third of the lease is left then, so
    /// that its intent and its time at the participant begin under a lease that holds. None
    /// without a lease.
    #[must_use]
    pub fn start_until(&self) -> Option<Mono> {
        self.deadline().map(|until| until.minus(self.lease / 3))
    }

    /// When the local lease ends; none without a lease.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        match &self.state {
            State::Held(lease) => Some(lease.until),
            State::Absent { .. }
            | State::Opening { .. }
            | State::Closing { .. }
            | State::Closed => None,
        }
    }

    /// The own incarnation, for claims and starts.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        match &self.state {
            State::Held(lease) => Some(lease.of),
            State::Absent { .. }
            | State::Opening { .. }
            | State::Closing { .. }
            | State::Closed => None,
        }
    }

    fn again(&self, now: Mono) -> Mono {
        let cap = self.lease / 6;
        let pause = chance::pause(self.seed, self.failures, AGAIN, cap, chance::FLOOR);
        now.plus(pause)
    }

    fn opened(&mut self, now: Mono, sent_at: Mono, of: Incarnation, clock: Wall) {
        if !matches!(self.state, State::Opening { .. }) {
            return;
        }
        self.failures = 0;
        self.strays.clear();
        self.contact.heard(sent_at, now, clock);
        self.state = State::Held(Lease {
            of,
            until: sent_at.plus(self.lease),
            next: sent_at.plus(self.lease / 3),
            asked: false,
            dropped: false,
        });
    }

    fn held(
        &mut self,
        now: Mono,
        sent_at: Mono,
        (clock, running): (Wall, &[(TransactionId, Fence)]),
        known: &[Nonce],
        out: &mut Vec<Order>,
    ) {
        let State::Held(lease) = &mut self.state else {
            return;
        };
        let of = lease.of;
        lease.until = lease.until.max(sent_at.plus(self.lease));
        lease.next = sent_at.plus(self.lease / 3).max(now);
        lease.asked = false;
        lease.dropped &= lease.until <= now;
        self.failures = 0;
        self.contact.heard(sent_at, now, clock);
        let strays = self.strays_twice(running, known);
        if !strays.is_empty() {
            out.push(Order::HandBack(of, strays));
        }
        if !self.draining && self.contact.lasts(now, self.lease) {
            out.push(Order::DeclareDead(of));
        }
    }

    /// Rows that nobody here runs and that the last renewal showed, too. Those seen for the first
    /// time may have ended, or been claimed, while the answer was under way.
    fn strays_twice(
        &mut self,
        running: &[(TransactionId, Fence)],
        known: &[Nonce],
    ) -> Vec<(TransactionId, Fence)> {
        let stray = |(_, fence): &&(TransactionId, Fence)| !known.contains(&fence.nonce);
        let (twice, once): (Vec<_>, Vec<_>) = running
            .iter()
            .filter(stray)
            .copied()
            .partition(|(id, fence)| self.strays.contains(&(*id, fence.nonce)));
        self.strays = once.iter().map(|(id, fence)| (*id, fence.nonce)).collect();
        twice
    }

    fn dead(&mut self, now: Mono, of: Incarnation, out: &mut Vec<Order>) {
        let State::Held(lease) = &self.state else {
            return;
        };
        if !lease.dropped {
            out.push(Order::DropCalls);
        }
        out.push(Order::Forget(of));
        self.strays.clear();
        self.state = State::Absent { open_at: now };
        self.act(now, out);
    }

    fn unreachable(&mut self, now: Mono) {
        self.failures = self.failures.saturating_add(1);
        self.contact.broke();
        let again = self.again(now);
        match &mut self.state {
            State::Opening { .. } => self.state = State::Absent { open_at: again },
            State::Held(lease) => {
                lease.asked = false;
                lease.next = lease.next.min(again).max(now);
            }
            State::Closing { next, .. } => *next = again,
            State::Absent { .. } | State::Closed => {}
        }
    }

    fn emptied(&mut self, now: Mono, out: &mut Vec<Order>) {
        match self.state {
            State::Held(Lease { of, .. }) => {
                out.push(Order::Close(of));
                let next = now.plus(self.lease / 3);
                self.state = State::Closing { of, next };
            }
            State::Absent { .. } | State::Opening { .. } => self.closed(out),
            State::Closing { .. } | State::Closed => {}
        }
    }

    fn closed(&mut self, out: &mut Vec<Order>) {
        if self.state != State::Closed {
            self.state = State::Closed;
            out.push(Order::Stop);
        }
    }

    /// What the time asks for.
    fn act(&mut self, now: Mono, out: &mut Vec<Order>) {
        let third = self.lease / 3;
        match &mut self.state {
            State::Absent { open_at } if *open_at <= now && !self.draining => {
                self.state = State::Opening { since: now };
                out.push(Order::Open);
            }
            // No answer at all: asked again. Two incarnations may come of it; the one nobody
            // renews dies without rows.
            State::Opening { since } if since.plus(third) <= now => {
                *since = now;
                out.push(Order::Open);
            }
            State::Held(lease) => {
                if lease.until <= now && !lease.dropped {
                    lease.dropped = true;
                    out.push(Order::DropCalls);
                }
                if lease.next <= now {
                    // No answer for a third of the lease is no contact either.
                    if core::mem::replace(&mut lease.asked, true) {
                        self.contact.broke();
                    }
                    lease.next = now.plus(third);
                    out.push(Order::Renew(lease.of));
                }
            }
            State::Closing { of, next } if *next <= now => {
                *next = now.plus(third);
                out.push(Order::Close(*of));
            }
            State::Absent { .. }
            | State::Opening { .. }
            | State::Closing { .. }
            | State::Closed => {}
        }
    }
}

impl Machine for Owner {
    type Input = Input;
    type Order = Order;

    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Order>) {
        let now = now.mono;
        match input {
            Input::Opened {
                sent_at,
                incarnation,
                clock,
            } => self.opened(now, sent_at, incarnation, clock),
            Input::Renewed {
                sent_at,
                incarnation,
                answer,
                known,
            } => {
                // An answer for an incarnation before this one is old news.
                if self.incarnation() == Some(incarnation) {
                    match answer {
                        Renewed::Held { clock, running, .. } => {
                            self.held(now, sent_at, (clock, &running), &known, out);
                        }
                        Renewed::Dead => self.dead(now, incarnation, out),
                    }
                }
            }
            Input::Unreachable => self.unreachable(now),
            Input::Drained => self.draining = true,
            Input::Emptied => self.emptied(now, out),
            Input::Closed => self.closed(out),
            Input::Woke => {}
        }
        self.act(now, out);
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        match &self.state {
            State::Absent { open_at } if !self.draining => wake.at_mono(*open_at, "open a lease"),
            State::Opening { since } => {
                wake.at_mono(since.plus(self.lease / 3), "open a lease again");
            }
            State::Held(lease) => {
                wake.at_mono(lease.next, "renew the lease");
                if !lease.dropped {
                    wake.at_mono(lease.until, "the lease ends");
                }
            }
            State::Closing { next, .. } => wake.at_mono(*next, "close the lease again"),
            State::Absent { .. } | State::Closed => {}
        }
        wake
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod generated;
