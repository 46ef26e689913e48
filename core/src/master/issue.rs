//! What is said about a cut: grants to their holders, the event, and the clash of two cuts.
//!
//! It refuses to know when a cut is due and whether it had to be stored first ([`super::cutting`]).

use alloc::vec::Vec;
use core::time::Duration;

use super::{
    MAX_SLAVES, Master, Order,
    board::{Known, Standing},
};
use crate::{
    bus,
    subject::Place,
    time::Now,
    token::{Range, coverage},
    window::{Cut, Grant, Seat, SeatState},
    wire::{CutWire, Fact, GrantWire, Publication, Who},
};

/// How often a window is published after the first time: a lost message is healed by heartbeats
/// anyway, these save the wait.
const REPEATS: u8 = 2;

impl Master {
    /// Notes a cut and, when leading, tells it to everybody whom it concerns.
    pub(super) fn issue(&mut self, now: Now, cut: Cut, standing: Standing, out: &mut Vec<Order>) {
        let current = self.current(now);
        let key = (cut.window, cut.service.clone());
        let leads = self.lead().is_some();
        let old = cut.window < current;
        if old || !(self.board.known.contains_key(&key) || self.board.has_room(cut.window)) {
            return;
        }
        if leads {
            self.publish(&cut, out);
            let wire = CutWire::new(self.timing(), &cut);
            self.tell(now, Fact::Cut { cut: wire }, out);
            self.declare_frozen(now, &cut, out);
            self.hint(&cut);
        }
        let pause = self.repeat_after();
        let known = Known {
            cut,
            standing,
            again: leads.then(|| (REPEATS, now.mono.plus(pause))),
        };
        self.board.known.insert(key, known);
    }

    fn repeat_after(&self) -> Duration {
        self.timing().heartbeat.max(self.timing().lead / 4)
    }

    /// Publishes issued windows again, as long as they last.
    pub(super) fn publish_again(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.lead().is_none() {
            return;
        }
        let current = self.current(now);
        let next = now.mono.plus(self.repeat_after());
        let mut due = Vec::new();
        for ((window, _), known) in &mut self.board.known {
            let Some((left, at)) = known.again else {
                continue;
            };
            if *window < current {
                known.again = None;
            } else if at <= now.mono {
                known.again = (left > 1).then_some((left - 1, next));
                due.push(known.cut.clone());
            }
        }
        for cut in due {
            self.publish(&cut, out);
        }
    }

    fn publish(&self, cut: &Cut, out: &mut Vec<Order>) {
        for (index, seat) in cut.seats.iter().enumerate() {
            if let Some(grant) = self.grant(cut, index) {
                out.push(Order::Bus(bus::Op::Publish {
                    place: Place::SlaveWindows(seat.slave.clone()),
                    body: Publication::Grant(grant),
                }));
            }
        }
    }

    /// The grant of a live seat, in the envelope of my own term: slaves refuse older ones.
    fn grant(&self, cut: &Cut, index: usize) -> Option<GrantWire> {
        let seat = cut.seats.get(index)?;
        let grant = Grant {
            service: cut.service.clone(),
            window: cut.window,
            range: seat.range.filter(|_| seat.state == SeatState::Live)?,
            term: self.lead()?.term,
            holder: seat.slave.clone(),
            boot: seat.boot,
            index: u32::try_from(index).ok()?,
            members: u32::try_from(cut.seats.len()).ok()?,
            parent: None,
        };
        Some(GrantWire::new(&self.config.scope, self.timing(), grant))
    }

    /// The newest grants cut for exactly this boot: the current window and the next.
    pub(super) fn grants_for(&self, now: Now, who: &Who) -> Vec<GrantWire> {
        let mut grants = Vec::new();
        for cut in self.board.issued(self.current(now)) {
            let mine = |seat: &Seat| (&seat.slave, seat.boot) == (&who.id, who.boot);
            if let Some(index) = cut.seats.iter().position(mine) {
                grants.extend(self.grant(cut, index));
            }
        }
        grants
    }

    /// Another master's cut was overheard: kept unless one is known, and counted when they differ.
    pub(super) fn overhear_cut(&mut self, now: Now, cut: Cut, out: &mut Vec<Order>) {
        let current = self.current(now);
        let near = (current..=current.next()).contains(&cut.window);
        let whole = coverage(Range::RING, &cut.ranges()) == (Vec::new(), Vec::new());
        if !near || !whole || cut.seats.len() > MAX_SLAVES {
            return;
        }
        let key = (cut.window, cut.service.clone());
        if let Some(known) = self.board.known.get(&key) {
            let mine = known.cut.clone();
            self.compare(now, &mine, &cut, out);
        } else if self.board.has_room(cut.window) {
            self.board.confirm(&cut);
            let known = Known {
                cut,
                standing: Standing::Heard,
                again: None,
            };
            self.board.known.insert(key, known);
        }
    }

    /// Says so when two cuts of one window give the same tokens to different holders.
    pub(super) fn compare(&self, now: Now, mine: &Cut, theirs: &Cut, out: &mut Vec<Order>) {
        if mine.same_map(theirs) || self.lead().is_none() {
            return;
        }
        let parts = mine.seats.iter().filter_map(|a| Some((a, a.range?)));
        for (a, part) in parts {
            let clash = theirs.seats.iter().find(|b| {
                (&b.slave, b.boot) != (&a.slave, a.boot)
                    && b.range.is_some_and(|range| range.overlaps(part))
            });
            if let Some(range) = clash.and_then(|b| b.range) {
                let start = range.start().0.max(part.start().0);
                let end = range.end().0.min(part.end().0);
                let (service, window) = (mine.service.clone(), mine.window);
                if let Ok(range) = Range::new(start, end) {
                    self.tell(
                        now,
                        Fact::Overlap {
                            service,
                            window,
                            range,
                        },
                        out,
                    );
                }
                return;
            }
        }
    }
}
