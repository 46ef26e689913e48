//! What a slave was granted and what it granted out of it.
//!
//! The first grant accepted for a (service, window) stays, and it is cut once: nobody re-cuts a
//! window (`design.md` section 3, "Windows"; RI2, RI3, RI7). Refuses to know members beyond the
//! names handed in for a cut.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use crate::{
    id::{Scope, Service},
    joining::{LARGEST_TERM, learn},
    time::{Mono, Now},
    timing::Timing,
    window::{Grant, Parent, Term, WindowNo},
    wire::{GrantWire, Who},
};

/// Most grants kept: four windows of 64 services, far beyond one coordinator's use. More are
/// dropped and counted.
const MOST: usize = 256;

/// Why grants were dropped, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// For a window that is over, or for one beyond the next.
    pub stale: u64,
    /// Of another scope, holder or boot, or not a slave's.
    pub foreign: u64,
    /// Under a lower term than one already heard, or a nonsensical one.
    pub lower_term: u64,
    /// Another range for a window already granted: a second cut.
    pub conflicting: u64,
    /// No room.
    pub full: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Holdings {
    scope: Scope,
    timing: Timing,
    me: Who,
    term: Option<Term>,
    held: BTreeMap<(Service, WindowNo), Held>,
    pub(super) dropped: Dropped,
    unusable: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Held {
    grant: Grant,
    accepted: Mono,
    /// Empty until cut; never changed afterwards.
    subs: BTreeMap<Who, Grant>,
    /// When the sub-grants are published again, until the window starts.
    again: Mono,
}

impl Holdings {
    pub(super) fn new(scope: Scope, timing: Timing, me: Who) -> Self {
        Self {
            scope,
            timing,
            me,
            term: None,
            held: BTreeMap::new(),
            dropped: Dropped::default(),
            unusable: None,
        }
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(super) fn term(&self) -> Option<Term> {
        self.term
    }

    /// Why its own grants can't be used, until one can: the two sides are configured differently.
    pub(super) fn unusable(&self) -> Option<&'static str> {
        self.unusable
    }

    /// Learns a leader's term; `false` when a higher one is known, or when it makes no sense.
    pub(super) fn learn(&mut self, term: Term) -> bool {
        learn(&mut self.term, term)
    }

    /// Takes a grant; whether it is new. `vouched`: the leader of the highest term said it, so
    /// the cut may be one that it adopted from an earlier term.
    pub(super) fn accept(&mut self, now: Now, wire: GrantWire, vouched: bool) -> bool {
        let mine = wire.holder == self.me.id && wire.boot == self.me.boot;
        let grant = match wire.open(&self.scope, &self.timing) {
            Ok(grant) => grant,
            Err(why) => {
                self.dropped.foreign += 1;
                if mine {
                    self.unusable = Some(why);
                }
                return false;
            }
        };
        if !mine || grant.parent.is_some() {
            self.dropped.foreign += 1;
            return false;
        }
        let current = self.timing.window_at(now.wall);
        if grant.window < current || grant.window > current.next() {
            self.dropped.stale += 1;
            return false;
        }
        let key = (grant.service.clone(), grant.window);
        if let Some(held) = self.held.get(&key) {
            self.dropped.conflicting += u64::from(held.grant.range != grant.range);
            return false;
        }
        let lower = self.term.is_some_and(|known| grant.term < known);
        if grant.term.number >= LARGEST_TERM || (lower && !vouched) {
            self.dropped.lower_term += 1;
            return false;
        }
        if self.held.len() >= MOST {
            self.dropped.full += 1;
            return false;
        }
        self.unusable = None;
        self.term = self.term.max(Some(grant.term));
        let held = Held {
            grant,
            accepted: now.mono,
            subs: BTreeMap::new(),
            again: now.mono,
        };
        self.held.insert(key, held);
        true
    }

    /// Grants not yet cut whose window can still be used.
    pub(super) fn uncut(&self, now: Now) -> Vec<(Service, WindowNo)> {
        let usable = |n: WindowNo| now.wall < self.timing.ends(n).minus(self.timing.guard);
        self.held
            .iter()
            .filter(|((_, n), held)| held.subs.is_empty() && usable(*n))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Cuts a grant equally among members, in their order. A second cut of the same one changes
    /// nothing.
    pub(super) fn cut(&mut self, key: &(Service, WindowNo), members: &BTreeSet<Who>) {
        let Some(held) = self.held.get_mut(key) else {
            return;
        };
        if !held.subs.is_empty() {
            return;
        }
        let whole = &held.grant;
        let parent = Parent {
            slave: self.me.id.clone(),
            boot: self.me.boot,
            index: whole.index,
            members: whole.members,
            range: whole.range,
        };
        let parts = whole.range.split(members.len());
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let subs = (0u32..)
            .zip(members.iter().zip(parts))
            .filter_map(|(index, (who, part))| {
                let sub = Grant {
                    service: whole.service.clone(),
                    window: whole.window,
                    range: part?,
                    term: whole.term,
                    holder: who.id.clone(),
                    boot: who.boot,
                    index,
                    members: count,
                    parent: Some(parent.clone()),
                };
                Some((who.clone(), sub))
            })
            .collect();
        held.subs = subs;
    }

    /// Sub-grants to publish (again) now: at once when cut, then every third of the lead until
    /// the window starts, so that a lost message is healed twice.
    pub(super) fn due(&mut self, now: Now) -> Vec<GrantWire> {
        let mut due = Vec::new();
        for held in self.held.values_mut() {
            if held.subs.is_empty() || now.mono < held.again {
                continue;
            }
            held.again = if now.wall < self.timing.starts(held.grant.window) {
                now.mono.plus(self.timing.lead / 3)
            } else {
                Mono(u64::MAX)
            };
            let subs = held.subs.values().cloned();
            due.extend(subs.map(|g| GrantWire::new(&self.scope, &self.timing, g)));
        }
        due
    }

    /// Publishes everything that is not over once more: its readers are about to lose us.
    pub(super) fn repeat_all(&mut self, now: Now) {
        let current = self.timing.window_at(now.wall);
        for held in self.held.values_mut().filter(|h| h.grant.window >= current) {
            held.again = now.mono;
        }
    }

    /// When [`Holdings::due`] has something.
    pub(super) fn next_due(&self) -> Option<Mono> {
        let cut = self.held.values().filter(|h| !h.subs.is_empty());
        cut.map(|h| h.again).filter(|at| *at < Mono(u64::MAX)).min()
    }

    /// What this member holds for the current window and the next.
    pub(super) fn of(&self, now: Now, who: &Who) -> Vec<GrantWire> {
        let current = self.timing.window_at(now.wall);
        self.held
            .values()
            .filter(|h| h.grant.window >= current)
            .filter_map(|h| h.subs.get(who))
            .map(|g| GrantWire::new(&self.scope, &self.timing, g.clone()))
            .collect()
    }

    /// Its own grants that are not over.
    pub(super) fn own(&self, now: Now) -> impl Iterator<Item = &Grant> {
        let current = self.timing.window_at(now.wall);
        self.held
            .values()
            .map(|h| &h.grant)
            .filter(move |g| g.window >= current)
    }

    /// What it granted out of them.
    pub(super) fn issued(&self, now: Now) -> impl Iterator<Item = &Grant> {
        let current = self.timing.window_at(now.wall);
        self.held
            .values()
            .filter(move |h| h.grant.window >= current)
            .flat_map(|h| h.subs.values())
    }

    /// The newest window granted for a service.
    pub(super) fn newest(&self, service: &Service) -> Option<WindowNo> {
        let all = (service.clone(), WindowNo(0))..=(service.clone(), WindowNo(u64::MAX));
        self.held.range(all).next_back().map(|((_, n), _)| *n)
    }

    /// Forgets what is over. Kept three windows by the clock that never steps, so that a wall
    /// clock that jumped ahead and back can't make anything be cut twice.
    pub(super) fn forget(&mut self, now: Now) {
        let current = self.timing.window_at(now.wall);
        let keep = 3 * self.timing.len;
        self.held
            .retain(|(_, n), h| *n >= current || now.mono.since(h.accepted) < keep);
    }
}
