//! The grants an orchestrator keeps: for each slave and window the first that it accepted.
//!
//! It decides which grants are its own and not over, and adds up what they cover. Terms are the
//! slave's matter: a slave cuts a window once, so its first grant is its only one.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::{
    id::{NodeId, Scope, Service},
    time::{Mono, Now},
    timing::Timing,
    token::Range,
    window::{Grant, WindowNo},
    wire::{GrantWire, Who},
};

/// Most slaves whose grants are kept: the present one, and former ones whose windows still run. A
/// node that moves more often within two windows loses the oldest.
const SLAVES: usize = 8;

/// Why grants were dropped, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// For a window that is over, or for one beyond the next.
    pub stale: u64,
    /// Of another scope, service or holder, or of a slave with which it never registered.
    pub foreign: u64,
    /// For another boot of its id: a predecessor's, or a live twin's.
    pub other_boot: u64,
    /// Another range for a window already granted by the same slave.
    pub conflicting: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Inbox {
    scope: Scope,
    timing: Timing,
    me: Who,
    service: Service,
    /// With whom it registered, and when last.
    known: BTreeMap<NodeId, Mono>,
    held: BTreeMap<(NodeId, WindowNo), Grant>,
    /// The newest window acted on: a clock that steps back leads to no earlier one (RI6).
    floor: WindowNo,
    pub(super) dropped: Dropped,
    unusable: Option<&'static str>,
}

impl Inbox {
    pub(super) fn new(scope: Scope, timing: Timing, me: Who, service: Service) -> Self {
        Self {
            scope,
            timing,
            me,
            service,
            known: BTreeMap::new(),
            held: BTreeMap::new(),
            floor: WindowNo(0),
            dropped: Dropped::default(),
            unusable: None,
        }
    }

    /// Why its own grants can't be used, until one can: the two sides are configured differently.
    pub(super) fn unusable(&self) -> Option<&'static str> {
        self.unusable
    }

    /// Grants of this slave count from now on.
    pub(super) fn know(&mut self, now: Mono, slave: &NodeId) {
        self.known.insert(slave.clone(), now);
        if self.known.len() > SLAVES {
            let oldest = self.known.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.known.remove(&oldest);
                self.held.retain(|(slave, _), _| *slave != oldest);
            }
        }
    }

    /// Takes a grant, or counts why not.
    pub(super) fn accept(&mut self, now: Now, wire: GrantWire) {
        let mine = wire.holder == self.me.id && wire.boot == self.me.boot;
        let grant = match wire.open(&self.scope, &self.timing) {
            Ok(grant) => grant,
            Err(why) => {
                self.dropped.foreign += 1;
                if mine {
                    self.unusable = Some(why);
                }
                return;
            }
        };
        let slave = grant.parent.as_ref().map(|p| p.slave.clone());
        let slave = slave.filter(|id| self.known.contains_key(id));
        let mine = grant.holder == self.me.id && grant.service == self.service;
        let (Some(slave), true) = (slave, mine) else {
            self.dropped.foreign += 1;
            return;
        };
        if grant.boot != self.me.boot {
            self.dropped.other_boot += 1;
            return;
        }
        let current = self.timing.window_at(now.wall);
        let n = grant.window;
        if n < current.max(self.floor) || n > current.next() {
            self.dropped.stale += 1;
            return;
        }
        match self.held.get(&(slave.clone(), n)) {
            Some(first) => self.dropped.conflicting += u64::from(first.range != grant.range),
            None => {
                self.unusable = None;
                self.held.insert((slave, n), grant);
            }
        }
    }

    /// Time passed: forgets windows that are over, notes which one is acted on.
    pub(super) fn passed(&mut self, now: Now, may_claim: bool) {
        let current = self.timing.window_at(now.wall);
        self.held.retain(|(_, n), _| *n >= current);
        let acts = may_claim && self.timing.claimable(current, now.wall);
        if acts && self.held.keys().any(|(_, n)| *n == current) {
            self.floor = self.floor.max(current);
        }
    }

    /// What the grants for this window cover together, sorted and merged.
    pub(super) fn ranges(&self, n: WindowNo) -> Vec<Range> {
        let of = |(_, window): &(NodeId, WindowNo)| *window == n;
        let mut ranges: Vec<Range> = self
            .held
            .iter()
            .filter(|(key, _)| of(key))
            .map(|(_, grant)| grant.range)
            .collect();
        ranges.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start().0 <= last.end().0.saturating_add(1) => {
                    let end = last.end().max(range.end());
                    *last = Range::new(last.start().0, end.0).unwrap_or(*last);
                }
                Some(_) | None => merged.push(range),
            }
        }
        merged
    }

    /// Whether this slave granted this window.
    pub(super) fn has(&self, slave: &NodeId, n: WindowNo) -> bool {
        self.held.contains_key(&(slave.clone(), n))
    }

    pub(super) fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.held.values()
    }
}
