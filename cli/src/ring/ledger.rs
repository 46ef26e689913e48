//! What a listener writes down to prove coverage: `subjects.md`, "Proving coverage from outside".
//!
//! It takes messages as they come and answers, for a service and a window, what was granted, what
//! was granted twice and what nobody looks after. It knows no clock and no bus.

use std::collections::BTreeMap;

use ring_core::{
    id::{BootId, NodeId, Scope, Service},
    time::Wall,
    token::{Range, coverage},
    window::{SeatState, WindowNo},
    wire::{CutWire, GrantWire},
};

/// One service's ring in one scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ring {
    /// Region and cluster.
    pub(crate) scope: Scope,
    /// The service.
    pub(crate) service: Service,
}

/// Who a grant is for, and out of whose slice: the same grant comes several times.
type Holder = (NodeId, BootId, Option<(NodeId, BootId)>);

/// What was heard about one window of one ring.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    /// First moment of the window.
    pub(crate) starts_at: Wall,
    /// First moment after it.
    pub(crate) ends_at: Wall,
    /// The orchestrators' grants.
    pub(crate) grants: BTreeMap<Holder, GrantWire>,
    /// The cut, when it was heard.
    pub(crate) cut: Option<CutWire>,
    /// Grants or cuts that came again with another map: must not happen.
    pub(crate) changed: u32,
}

/// Everything heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    sheets: BTreeMap<(Ring, WindowNo), Sheet>,
    /// Seats declared frozen by an event of their own, after the cut was published.
    declared: BTreeMap<(Ring, WindowNo), Vec<(NodeId, Range)>>,
}

/// What the published ranges amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Parts that nobody looks after and nobody declared.
    pub(crate) gaps: Vec<Range>,
    /// Parts granted twice.
    pub(crate) overlaps: Vec<Range>,
    /// Declared gaps: frozen seats.
    pub(crate) frozen: Vec<(NodeId, Range)>,
    /// Grants or cuts that changed.
    pub(crate) changed: u32,
}

impl Verdict {
    /// Whether the window is proven; frozen seats count only when `strict`.
    pub(crate) fn holds(&self, strict: bool) -> bool {
        self.gaps.is_empty()
            && self.overlaps.is_empty()
            && self.changed == 0
            && (!strict || self.frozen.is_empty())
    }
}

impl Ledger {
    /// An orchestrator's grant was heard; a slave's own grants are not counted.
    pub(crate) fn grant(&mut self, grant: GrantWire) {
        let Some(parent) = &grant.parent else { return };
        let holder = (
            grant.holder.clone(),
            grant.boot,
            Some((parent.slave.clone(), parent.boot)),
        );
        let ring = Ring {
            scope: scope(&grant),
            service: grant.service.clone(),
        };
        let sheet = self.sheet(ring, grant.window, grant.starts_at.0, grant.ends_at.0);
        match sheet.grants.get(&holder) {
            Some(old) if old.range != grant.range => sheet.changed += 1,
            Some(_) => {}
            None => {
                sheet.grants.insert(holder, grant);
            }
        }
    }

    /// A cut was heard.
    pub(crate) fn cut(&mut self, scope: Scope, cut: CutWire) {
        let ring = Ring {
            scope,
            service: cut.service.clone(),
        };
        let sheet = self.sheet(ring, cut.window, cut.starts_at.0, cut.ends_at.0);
        match &sheet.cut {
            Some(old) if old.seats != cut.seats => sheet.changed += 1,
            Some(_) => {}
            None => sheet.cut = Some(cut),
        }
    }

    /// A seat was declared frozen: its slave vanished after the cut, or before it.
    pub(crate) fn frozen(&mut self, ring: Ring, n: WindowNo, slave: NodeId, range: Range) {
        let seats = self.declared.entry((ring, n)).or_default();
        if !seats.contains(&(slave.clone(), range)) {
            seats.push((slave, range));
        }
    }

    /// What was heard about one window.
    pub(crate) fn window(&self, ring: &Ring, n: WindowNo) -> Option<&Sheet> {
        self.sheets.get(&(ring.clone(), n))
    }

    /// All windows heard of, oldest first.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (&Ring, WindowNo, &Sheet)> {
        self.sheets
            .iter()
            .map(|((ring, n), sheet)| (ring, *n, sheet))
    }

    /// What a window amounts to; one that was never heard of is one gap.
    pub(crate) fn verdict(&self, ring: &Ring, n: WindowNo) -> Verdict {
        let Some(sheet) = self.window(ring, n) else {
            let gaps = vec![Range::RING];
            return Verdict {
                gaps,
                overlaps: vec![],
                frozen: vec![],
                changed: 0,
            };
        };
        let granted: Vec<Range> = sheet.grants.values().map(|g| g.range).collect();
        let mut frozen = sheet.frozen();
        for seat in self.declared.get(&(ring.clone(), n)).into_iter().flatten() {
            // Who died after cutting its slice left grants that are good until the window ends.
            if !frozen.contains(seat) && !coverage(seat.1, &granted).0.is_empty() {
                frozen.push(seat.clone());
            }
        }
        let declared: Vec<Range> = frozen.iter().map(|(_, range)| *range).collect();
        let (_, overlaps) = coverage(Range::RING, &granted);
        let (gaps, _) = coverage(Range::RING, &[granted, declared].concat());
        Verdict {
            gaps,
            overlaps,
            frozen,
            changed: sheet.changed,
        }
    }

    /// Forgets the windows that end before this moment.
    pub(crate) fn forget(&mut self, before: Wall) {
        self.sheets.retain(|_, sheet| sheet.ends_at >= before);
        let oldest = self
            .sheets
            .keys()
            .map(|(_, n)| *n)
            .min()
            .unwrap_or_default();
        self.declared.retain(|(_, n), _| *n >= oldest);
    }

    fn sheet(&mut self, ring: Ring, n: WindowNo, starts_at: Wall, ends_at: Wall) -> &mut Sheet {
        self.sheets.entry((ring, n)).or_insert_with(|| Sheet {
            starts_at,
            ends_at,
            grants: BTreeMap::new(),
            cut: None,
            changed: 0,
        })
    }
}

impl Sheet {
    fn frozen(&self) -> Vec<(NodeId, Range)> {
        let seats = self.cut.iter().flat_map(|cut| &cut.seats);
        seats
            .filter(|seat| seat.state == SeatState::Frozen)
            .filter_map(|seat| seat.range.map(|range| (seat.slave.clone(), range)))
            .collect()
    }
}

fn scope(grant: &GrantWire) -> Scope {
    Scope {
        region: grant.region.clone(),
        cluster: grant.cluster.clone(),
    }
}

#[cfg(test)]
mod tests;
