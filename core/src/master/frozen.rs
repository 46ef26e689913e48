//! Which vanished slaves may keep a frozen seat, and for how long (R8, bounded).
//!
//! It judges a seat; it refuses to know how rings are divided ([`super::seats`]).

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use super::{MAX_SLAVES, Master, Order, Slave};
use crate::{
    id::{BootId, NodeId},
    roster::Member,
    time::{Mono, Now},
    window::{Cut, Seat, SeatState, WindowNo},
    wire::{Fact, Role},
};

/// A slave is waited for at most this often …
const FREEZES: usize = 2;

/// … within this time: one in a crash loop must not keep its part dark for ever.
const FREEZES_WITHIN: Duration = Duration::from_secs(600);

/// Slaves that fell silent. Bounded by [`MAX_SLAVES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vanished {
    gone: BTreeMap<NodeId, Gone>,
    /// When each was waited for lately, at most [`FREEZES`] times each.
    waits: BTreeMap<NodeId, Vec<Mono>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gone {
    boot: BootId,
    /// The window in which it was last heard: the first that counts as frozen.
    window: WindowNo,
    /// Whether it may be waited for at all.
    waited_for: bool,
}

impl Vanished {
    /// A slave fell silent.
    fn note(&mut self, now: Mono, id: &NodeId, boot: BootId, window: WindowNo) {
        self.waits.retain(|_, times| {
            times.retain(|at| now.since(*at) < FREEZES_WITHIN);
            !times.is_empty()
        });
        let room = self.waits.len() < MAX_SLAVES || self.waits.contains_key(id);
        let mut waited_for = false;
        if room {
            let times = self.waits.entry(id.clone()).or_default();
            waited_for = times.len() < FREEZES;
            if waited_for {
                times.push(now);
            }
        }
        if self.gone.len() >= MAX_SLAVES
            && let Some(oldest) = self.gone.iter().min_by_key(|(_, gone)| gone.window)
        {
            let oldest = oldest.0.clone();
            self.gone.remove(&oldest);
        }
        let gone = Gone {
            boot,
            window,
            waited_for,
        };
        self.gone.insert(id.clone(), gone);
    }

    /// It is back: a new registration, in at the next cut.
    pub(super) fn returned(&mut self, id: &NodeId) {
        self.gone.remove(id);
    }

    /// Whether the seat's holder fell silent.
    pub(super) fn holds(&self, seat: &Seat) -> bool {
        self.gone
            .get(&seat.slave)
            .is_some_and(|gone| gone.boot == seat.boot)
    }

    /// Whether this seat of the cut before may stay, frozen, in window `n`. Windows in which the
    /// dead one still held a grant count.
    pub(super) fn may_keep(&self, seat: &Seat, n: WindowNo, limit: Option<u32>) -> bool {
        self.gone.get(&seat.slave).is_some_and(|gone| {
            let used = n.0.saturating_sub(gone.window.0);
            let in_time = limit.is_none_or(|limit| used < u64::from(limit));
            gone.boot == seat.boot && gone.waited_for && in_time
        })
    }
}

impl Master {
    /// Ends sessions, unless it is deaf itself.
    pub(super) fn expire(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.ears.deaf_since.is_some() {
            return;
        }
        for (id, member) in self.roster.depart(self.current(now)) {
            self.gone_in_order(now, &id, member.boot, out);
        }
        for (id, member) in self.roster.expire(now.mono) {
            self.vanish(now, &id, &member, out);
        }
        self.forget_services_without_members();
    }

    /// A slave fell silent: its parts of the windows already cut are declared frozen.
    pub(super) fn vanish(
        &mut self,
        now: Now,
        id: &NodeId,
        member: &Member<Slave>,
        out: &mut Vec<Order>,
    ) {
        let silent = now.mono.since(member.heard);
        let window = self.timing().window_at(now.wall.minus(silent));
        self.vanished.note(now.mono, id, member.boot, window);
        if self.lead().is_none() {
            return;
        }
        self.tell_left(now, id, member.boot, false, out);
        for cut in self.board.issued(self.current(now)) {
            for seat in cut.seats.iter().filter(|seat| {
                (&seat.slave, seat.boot, seat.state) == (id, member.boot, SeatState::Live)
            }) {
                self.tell_frozen(now, cut, seat, out);
            }
        }
    }

    /// A slave left and said so: its seat is free at the next cut.
    pub(super) fn gone_in_order(
        &mut self,
        now: Now,
        id: &NodeId,
        boot: BootId,
        out: &mut Vec<Order>,
    ) {
        self.vanished.returned(id);
        self.board.excuse(id);
        if self.lead().is_some() {
            self.tell_left(now, id, boot, true, out);
        }
    }

    /// Says which seats of a new cut are frozen, and which of the one before no longer are.
    pub(super) fn declare_frozen(&self, now: Now, cut: &Cut, out: &mut Vec<Order>) {
        for seat in &cut.seats {
            if seat.state == SeatState::Frozen {
                self.tell_frozen(now, cut, seat, out);
            }
        }
        let Some(before) = self.board.before(&cut.service, cut.window) else {
            return;
        };
        let stays = |seat: &Seat| {
            cut.seats
                .iter()
                .any(|s| (&s.slave, s.boot) == (&seat.slave, seat.boot))
        };
        for seat in &before.seats {
            let kept = seat.state == SeatState::Frozen || self.vanished.holds(seat);
            if kept && seat.range.is_some() && !stays(seat) {
                let fact = Fact::Thawed {
                    service: cut.service.clone(),
                    slave: seat.slave.clone(),
                    window: cut.window,
                };
                self.tell(now, fact, out);
            }
        }
    }

    fn tell_frozen(&self, now: Now, cut: &Cut, seat: &Seat, out: &mut Vec<Order>) {
        if let Some(range) = seat.range {
            let fact = Fact::Frozen {
                service: cut.service.clone(),
                slave: seat.slave.clone(),
                window: cut.window,
                range,
            };
            self.tell(now, fact, out);
        }
    }

    fn tell_left(&self, now: Now, id: &NodeId, boot: BootId, graceful: bool, out: &mut Vec<Order>) {
        let fact = Fact::Left {
            role: Role::Slave,
            id: id.clone(),
            boot,
            graceful,
            service: None,
        };
        self.tell(now, fact, out);
    }
}
