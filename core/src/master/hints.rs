//! How balance is restored: right after a cut, the fullest slave of a service is asked to give a
//! few orchestrators up.
//!
//! It refuses to know which ones move and where to: the slave chooses, `assign` answers.

use super::Master;
use crate::{
    id::NodeId,
    window::{Cut, SeatState},
    wire::Hint,
};

/// At most one in so many of a slave's orchestrators moves in a window (one at least): a move
/// changes the next cut, and a ring that moves everywhere at once loses its caches.
const ONE_IN: u32 = 8;

impl Master {
    /// After a cut: one hint a service, repeated in every reply until the next cut. The slave
    /// follows it once a window.
    pub(super) fn hint(&mut self, cut: &Cut) {
        let service = &cut.service;
        self.roster.each(|member| {
            member.role.hints.retain(|hint| hint.service != *service);
        });
        let seats = cut.seats.iter();
        let seats = seats.filter(|seat| seat.state != SeatState::Frozen);
        let counts = seats.filter_map(|seat| {
            let member = self.roster.get(&seat.slave)?;
            let stays = member.boot == seat.boot && member.leaves_after.is_none();
            let load = member.role.loads.get(&cut.service);
            stays.then(|| (&seat.slave, load.map_or(0, |load| load.live)))
        });
        let counts: alloc::vec::Vec<(&NodeId, u32)> = counts.collect();
        let most = counts.iter().rev().max_by_key(|(_, live)| *live);
        let least = counts.iter().map(|(_, live)| *live).min();
        let (Some((slave, most)), Some(least)) = (most, least) else {
            return;
        };
        let surplus = (most - least) / 2;
        let count = surplus.min((most / ONE_IN).max(1));
        if count == 0 {
            return;
        }
        let slave = NodeId::clone(slave);
        if let Some(member) = self.roster.get_mut(&slave) {
            let service = cut.service.clone();
            member.role.hints.push(Hint { service, count });
        }
    }
}
