//! What a master knows about cuts, and what it rests on.
//!
//! A plain store with its bounds; it refuses to know what time it is and what follows.

use alloc::collections::{BTreeMap, BTreeSet};

use super::MAX_SERVICES;
use crate::{
    id::{NodeId, Service},
    time::Mono,
    window::{Cut, SeatState, WindowNo},
};

/// Which ring in which window.
pub(super) type Key = (WindowNo, Service);

/// What is known about cuts: those of the window before, the current and the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Board {
    /// At most one a service and window.
    pub(super) known: BTreeMap<Key, Known>,
    /// Made, or heard and not known to be stored: to be stored next, the same each time.
    pub(super) proposed: BTreeMap<Key, Proposal>,
    /// An order to store is open since then.
    pub(super) storing: Option<Mono>,
    /// Not before this.
    pub(super) store_next: Mono,
    /// When somebody last reported a grant of a window.
    pub(super) reported: BTreeMap<Key, Mono>,
    /// Services that have live orchestrators, and since when; at most [`MAX_SERVICES`].
    pub(super) services: BTreeMap<Service, Mono>,
    /// The slaves with a seat in each service's last confirmed cut.
    voters: BTreeMap<Service, (WindowNo, BTreeSet<NodeId>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) cut: Cut,
    pub(super) standing: Standing,
    /// Publications still to come, and when the next is due.
    pub(super) again: Option<(u8, Mono)>,
}

/// What a known cut rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Overheard; stored before it is used.
    Heard,
    /// Published while the registry was gone, to be stored when it is back.
    Memory,
    /// Stored.
    Confirmed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) cut: Cut,
    pub(super) since: Mono,
}

impl Board {
    pub(super) fn is_bounded(&self) -> bool {
        let most = 3 * MAX_SERVICES;
        self.known.len() <= most
            && self.proposed.len() <= most
            && self.reported.len() <= most
            && self.services.len() <= MAX_SERVICES
            && self.voters.len() <= MAX_SERVICES
    }

    /// Cuts that may be granted from, of this window and the next.
    pub(super) fn issued(&self, current: WindowNo) -> impl Iterator<Item = &Cut> {
        self.known
            .iter()
            .filter(move |((window, _), known)| {
                *window >= current && known.standing != Standing::Heard
            })
            .map(|(_, known)| &known.cut)
    }

    /// The newest known cut of a service before a window.
    pub(super) fn before(&self, service: &Service, window: WindowNo) -> Option<&Cut> {
        let mut older = self.known.range(..(window, service.clone())).rev();
        older
            .find(|((n, s), _)| *n < window && s == service)
            .map(|(_, known)| &known.cut)
    }

    /// A slave left in order: it can't serve another master.
    pub(super) fn excuse(&mut self, id: &NodeId) {
        for (_, slaves) in self.voters.values_mut() {
            slaves.remove(id);
        }
    }

    /// The slaves whose majority carries a leader without registry.
    pub(super) fn voters(&self) -> BTreeSet<&NodeId> {
        self.voters.values().flat_map(|(_, ids)| ids).collect()
    }

    /// Whether cuts wait to be stored that were already published.
    pub(super) fn has_memory(&self) -> bool {
        self.known
            .values()
            .any(|known| known.standing == Standing::Memory)
    }

    /// Whether something that was to be stored at that time still is. What was proposed later was
    /// not asked for yet.
    pub(super) fn is_unanswered(&self, ordered: Mono) -> bool {
        self.has_memory() || self.proposed.values().any(|p| p.since <= ordered)
    }

    /// A leadership begins or ends: what was stored under another one is stored again, and what
    /// was only proposed is made anew.
    pub(super) fn start_over(&mut self) {
        self.proposed.clear();
        for known in self.known.values_mut() {
            known.again = None;
            if known.standing == Standing::Confirmed {
                known.standing = Standing::Heard;
            }
        }
    }

    /// Somebody holds a grant of this window, by an unknown cut perhaps.
    pub(super) fn note_report(&mut self, now: Mono, key: Key) {
        if self.reported.len() < 2 * MAX_SERVICES || self.reported.contains_key(&key) {
            self.reported.insert(key, now);
        }
    }

    /// A service has live orchestrators.
    pub(super) fn note_service(&mut self, now: Mono, service: &Service) {
        if !self.services.contains_key(service) && self.services.len() < MAX_SERVICES {
            self.services.insert(service.clone(), now);
        }
    }

    /// Whether there are more services than rings.
    pub(super) fn is_full(&self) -> bool {
        self.services.len() == MAX_SERVICES
    }

    pub(super) fn confirm(&mut self, cut: &Cut) {
        let seats = cut.seats.iter();
        let ids = seats
            .filter(|seat| seat.state == SeatState::Live)
            .map(|seat| seat.slave.clone())
            .collect();
        let newer = self
            .voters
            .get(&cut.service)
            .is_none_or(|(window, _)| *window <= cut.window);
        if newer {
            self.voters.insert(cut.service.clone(), (cut.window, ids));
        }
        while self.voters.len() > MAX_SERVICES {
            let oldest = self.voters.iter().min_by_key(|(_, (window, _))| *window);
            let Some(oldest) = oldest.map(|(service, _)| service.clone()) else {
                break;
            };
            self.voters.remove(&oldest);
        }
    }

    /// Whether one more service fits into a window.
    pub(super) fn has_room(&self, window: WindowNo) -> bool {
        self.known.keys().filter(|(n, _)| *n == window).count() < MAX_SERVICES
    }

    /// Forgets all windows but the one before, the current and the next one.
    pub(super) fn keep_near(&mut self, current: WindowNo) {
        let near = current.previous()..=current.next();
        self.known.retain(|(window, _), _| near.contains(window));
        let usable = current..=current.next();
        self.proposed
            .retain(|(window, _), _| usable.contains(window));
        self.reported
            .retain(|(window, _), _| usable.contains(window));
    }
}
