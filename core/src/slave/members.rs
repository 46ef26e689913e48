//! The slave's orchestrators: whom a cut counts, what the master is told of them, who should
//! move away.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::time::Duration;

use super::Slave;
use crate::{
    bus::Op,
    id::{NodeId, Service},
    roster::{Limits, Member},
    subject::Place,
    time::{Now, millis_i64},
    window::WindowNo,
    wire::{Author, Event, Fact, Health, Hint, Load, Publication, Role as Kind, Who},
};

/// 10,000 orchestrators are twice the largest burst that was planned for (`reliability.md` row
/// 54), and 200 newcomers at once let 5,000 in within seconds. The session is configured.
pub(super) const LIMITS: Limits = Limits {
    members: 10_000,
    newcomers: 200,
    session: Duration::ZERO,
};

/// Most services of one slave; more are refused as `Busy`. A heartbeat lists them all.
const SERVICES: usize = 64;

/// Most that move after one cut: each loses a window, so few at a time.
const MOVERS: u32 = 8;

/// What an orchestrator is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) service: Service,
    pub(super) health: Health,
}

impl Slave {
    /// Cuts what is not cut yet, publishes what is due.
    pub(super) fn issue(&mut self, now: Now, out: &mut Vec<Op>) {
        if core::mem::take(&mut self.to_cut) {
            if self.sits_out() {
                self.to_cut = true;
            } else {
                for key in self.holdings.uncut(now) {
                    let members = self.for_cut(&key);
                    self.holdings.cut(&key, &members);
                }
            }
        }
        for wire in self.holdings.due(now) {
            let place = Place::OrchWindows(wire.holder.clone());
            let body = Publication::Grant(wire);
            out.push(Op::Publish { place, body });
        }
    }

    /// Whom a grant is cut among: who stays for its window, without those that can't work while
    /// others can.
    pub(super) fn for_cut(&self, (service, window): &(Service, WindowNo)) -> BTreeSet<Who> {
        let staying = || self.staying(service, *window);
        let any_well = staying().any(|(_, m)| !m.role.health.sick);
        staying()
            .filter(|(_, m)| !any_well || !m.role.health.sick)
            .map(|(id, m)| Who {
                id: id.clone(),
                boot: m.boot,
            })
            .collect()
    }

    fn staying<'a>(
        &'a self,
        service: &'a Service,
        window: WindowNo,
    ) -> impl Iterator<Item = (&'a NodeId, &'a Member<Role>)> {
        self.roster
            .iter()
            .filter(move |(_, m)| m.role.service == *service)
            .filter(move |(_, m)| m.leaves_after.is_none_or(|last| window <= last))
    }

    /// Whether a confirmed member is the only one of its service that stays.
    pub(super) fn is_first(&self, service: &Service) -> bool {
        self.staying(service, WindowNo(u64::MAX)).take(2).count() == 1
    }

    /// Whether a service is here already, or one more fits. In a storm of registrations the first
    /// is the rule and found among the first members: all are looked through for a new one only.
    pub(super) fn takes(&self, service: &Service) -> bool {
        let of = |(_, m): (&NodeId, &Member<Role>)| m.role.service == *service;
        self.roster.iter().any(of) || self.services().len() < SERVICES
    }

    /// The services of its members.
    pub(super) fn services(&self) -> BTreeSet<Service> {
        self.roster
            .iter()
            .map(|(_, m)| m.role.service.clone())
            .collect()
    }

    /// Counts by service, of those that will be here for the next cut.
    pub(super) fn loads(&self, now: Now) -> Vec<Load> {
        let current = self.timing.window_at(now.wall);
        let mut loads = BTreeMap::new();
        for (_, member) in self.roster.iter() {
            let Role {
                service, health, ..
            } = &member.role;
            let load = loads.entry(service.clone()).or_insert_with(|| {
                let newest = self.holdings.newest(service).unwrap_or(current);
                let next_cut = newest.max(current).next();
                let load = Load {
                    service: service.clone(),
                    live: 0,
                    sick: 0,
                    backlog: 0,
                    oldest_due_ms: 0,
                };
                (next_cut, load)
            });
            let (next_cut, load) = load;
            load.backlog = load.backlog.saturating_add(health.backlog);
            load.oldest_due_ms = load.oldest_due_ms.max(health.oldest_due_ms);
            if member.leaves_after.is_none_or(|last| *next_cut <= last) {
                load.live = load.live.saturating_add(1);
                // Who can't use the master's grants can't serve anybody either.
                let sick = health.sick || self.holdings.unusable().is_some();
                load.sick = load.sick.saturating_add(u32::from(sick));
            }
        }
        loads.into_values().map(|(_, load)| load).collect()
    }

    /// Most members' clocks are off against ours.
    pub(super) fn members_disagree(&self) -> bool {
        let tolerated = millis_i64(self.timing.tolerance).unsigned_abs();
        let off = |m: &Member<Role>| m.offset_ms.unsigned_abs() > tolerated;
        let disagree = self.roster.iter().filter(|(_, m)| off(m)).count();
        disagree * 2 > self.roster.len()
    }

    /// The master's hints: so many of a service should move. One round a cut, since later hints
    /// may not know yet who already goes.
    pub(super) fn follow(&mut self, hints: &[Hint]) {
        for hint in hints {
            let Some(newest) = self.holdings.newest(&hint.service) else {
                continue;
            };
            let before = self.moved_for.insert(hint.service.clone(), newest);
            if before == Some(newest) {
                continue;
            }
            let movers: Vec<Who> = self
                .staying(&hint.service, WindowNo(u64::MAX))
                .map(|(id, m)| Who {
                    id: id.clone(),
                    boot: m.boot,
                })
                .filter(|who| !self.moving.contains(who))
                .take(usize::try_from(hint.count.min(MOVERS)).unwrap_or(0))
                .collect();
            self.moving.extend(movers);
        }
        let present = self.services();
        self.moved_for
            .retain(|service, _| present.contains(service));
    }

    /// Takes those out whose session or last window is over. Who could hear nobody expires
    /// nobody.
    pub(super) fn expire(&mut self, now: Now, out: &mut Vec<Op>) {
        if self.connected && self.sweep_at <= now.mono {
            for (id, member) in self.roster.expire(now.mono) {
                self.tell_left(now, id, &member, false, out);
            }
            let whole = now.mono.plus(self.timing.session);
            self.sweep_at = self.roster.next_expiry().unwrap_or(whole).min(whole);
            self.moving.retain(|who| self.roster.member(who).is_some());
        }
        let current = self.timing.window_at(now.wall);
        if self.departed_for != current {
            self.departed_for = current;
            for (id, member) in self.roster.depart(current) {
                self.tell_left(now, id, &member, true, out);
            }
        }
    }

    pub(super) fn tell_left(
        &self,
        now: Now,
        id: NodeId,
        member: &Member<Role>,
        graceful: bool,
        out: &mut Vec<Op>,
    ) {
        let fact = Fact::Left {
            role: Kind::Orchestrator,
            id,
            boot: member.boot,
            graceful,
            service: Some(member.role.service.clone()),
        };
        out.push(Op::Tell(Event::new(now.wall, self.author(), fact)));
    }

    pub(super) fn author(&self) -> Author {
        let Who { id, boot } = self.me.clone();
        Author {
            role: Kind::Slave,
            id,
            boot,
        }
    }
}
