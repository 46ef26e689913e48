//! Which slave an orchestrator gets: round robin over live slaves, the cursor counted in the
//! registry, or in memory while it is away.
//!
//! The registry answers later, so the question is remembered meanwhile. The file refuses to know
//! the orchestrator: it forgets it with the answer (R12).

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use super::{MAX_SERVICES, Master, Order, asked::answer};
use crate::{
    bus::ReplyTo,
    id::{NodeId, Service},
    registry::Op,
    wire::{Answer, Assign, Refusal},
};

/// Most open questions, a round trip to the registry each: more wait their turn as `Busy`.
const MAX_OPEN: usize = 256;

/// Questions that wait for the registry's count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Desk {
    open: BTreeMap<Service, VecDeque<Open>>,
    /// Counts of our own, by service; at most [`MAX_SERVICES`].
    counts: BTreeMap<Service, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    to: ReplyTo,
    exclude: Vec<NodeId>,
}

impl Desk {
    pub(super) fn is_bounded(&self) -> bool {
        self.len() <= MAX_OPEN && self.counts.len() <= MAX_SERVICES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn len(&self) -> usize {
        self.open.values().map(VecDeque::len).sum()
    }

    /// The oldest open question of a service; counts are interchangeable.
    fn take(&mut self, service: &Service) -> Option<Open> {
        let queue = self.open.get_mut(service)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.open.remove(service);
        }
        first
    }

    /// The next count from memory. A service beyond the limit gets 0: it has no ring either.
    fn count(&mut self, service: &Service) -> u64 {
        if let Some(count) = self.counts.get_mut(service) {
            let before = *count;
            *count = before.wrapping_add(1);
            before
        } else {
            self.learn(service, 0);
            0
        }
    }

    /// The registry's count, so that memory goes on from there.
    fn learn(&mut self, service: &Service, count: u64) {
        if self.counts.len() < MAX_SERVICES || self.counts.contains_key(service) {
            self.counts.insert(service.clone(), count.wrapping_add(1));
        }
    }
}

impl Master {
    pub(super) fn assign(&mut self, to: ReplyTo, assign: Assign, out: &mut Vec<Order>) {
        let Assign {
            service, exclude, ..
        } = assign;
        let open = Open { to, exclude };
        if self.candidates(&service, &[]).is_empty() {
            return answer(to, self.refused(Refusal::NoSlave), out);
        }
        if self.config.alone || self.lease.lost_since.is_some() {
            let count = self.desk.count(&service);
            return self.choose(&service, &open, count, out);
        }
        if self.desk.len() >= MAX_OPEN {
            return answer(to, self.refused(Refusal::Busy), out);
        }
        let queue = self.desk.open.entry(service.clone()).or_default();
        queue.push_back(open);
        out.push(Order::Registry(Op::Count { service }));
    }

    pub(super) fn counted(&mut self, service: &Service, count: u64, out: &mut Vec<Order>) {
        self.desk.learn(service, count);
        if let Some(open) = self.desk.take(service) {
            self.choose(service, &open, count, out);
        }
    }

    pub(super) fn not_counted(&mut self, service: &Service, out: &mut Vec<Order>) {
        if let Some(open) = self.desk.take(service) {
            let count = self.desk.count(service);
            self.choose(service, &open, count, out);
        }
    }

    /// Answers everything that is open: this master leads no longer.
    pub(super) fn refuse_open(&mut self, reason: Refusal, out: &mut Vec<Order>) {
        let open = core::mem::take(&mut self.desk.open);
        for question in open.into_values().flatten() {
            answer(question.to, self.refused(reason), out);
        }
    }

    fn choose(&self, service: &Service, open: &Open, count: u64, out: &mut Vec<Order>) {
        let candidates = self.candidates(service, &open.exclude);
        let said = u64::try_from(candidates.len())
            .ok()
            .and_then(|len| count.checked_rem(len))
            .and_then(|at| candidates.get(usize::try_from(at).ok()?))
            .and_then(|slave| {
                let term = self.lead()?.term;
                let slave = NodeId::clone(slave);
                Some(Answer::Assigned { slave, term })
            });
        answer(
            open.to,
            said.unwrap_or_else(|| self.refused(Refusal::NoSlave)),
            out,
        );
    }

    /// Live slaves that stay, without the excluded ones unless nobody else is left. One who comes
    /// from a slave goes to one that has fewer than its share, so that moving ends.
    fn candidates(&self, service: &Service, exclude: &[NodeId]) -> Vec<&NodeId> {
        let stays = self.roster.iter();
        let stays = stays.filter(|(_, m)| m.leaves_after.is_none() && !m.role.clock_off);
        let count = |role: &super::Slave| role.loads.get(service).map_or(0, |load| load.live);
        let all: Vec<(&NodeId, u32)> = stays.map(|(id, m)| (id, count(&m.role))).collect();
        let others = all.iter().filter(|(id, _)| !exclude.contains(id));
        let others: Vec<(&NodeId, u32)> = others.copied().collect();
        let chosen = match (others.is_empty(), others.len() == all.len()) {
            (true, _) => all,
            (false, true) => others,
            (false, false) => {
                let total: u64 = all.iter().map(|(_, n)| u64::from(*n)).sum();
                let share = total / u64::try_from(all.len()).unwrap_or(1).max(1);
                let below = others.iter().filter(|(_, n)| u64::from(*n) <= share);
                let below: Vec<(&NodeId, u32)> = below.copied().collect();
                if below.is_empty() { others } else { below }
            }
        };
        chosen.into_iter().map(|(id, _)| id).collect()
    }
}
