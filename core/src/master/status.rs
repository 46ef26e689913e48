//! What a master tells people and tools about itself. It changes nothing.

use alloc::vec::Vec;

use super::{Master, Phase};
use crate::{
    roster::Member,
    time::{Now, millis_u64},
    token::Range,
    window::{Cut, SeatState, Term},
    wire::{self, Answer, CutWire, MasterStatus, MemberStatus, ServiceCut, Time, Who},
};

/// Why a master goes on with less than it should have.
pub(super) const NO_REGISTRY: &str =
    "the registry (Redis) can't be reached: cuts and the round robin are kept in memory";

const TOO_MANY_SERVICES: &str =
    "there are as many services as rings are kept for: more would only be swept";

impl Master {
    /// The term under which it leads.
    #[must_use]
    pub fn leading(&self) -> Option<Term> {
        self.lead().map(|lead| lead.term)
    }

    /// Why it works with less than it should have; `None` when nothing is missing.
    #[must_use]
    pub fn degraded(&self) -> Option<&str> {
        if self.lease.lost_since.is_some() {
            Some(NO_REGISTRY)
        } else if self.board.is_full() {
            Some(TOO_MANY_SERVICES)
        } else {
            None
        }
    }

    /// Why it could not do its work now, as leader or as standby; empty when it could.
    #[must_use]
    pub fn ready(&self, now: Now) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        if self.ears.deaf_since.is_some() {
            reasons.push("it does not hear the bus (NATS)");
        }
        if self.is_clock_off(now) {
            reasons.push("its clock is off from the majority's");
        }
        match &self.phase {
            Phase::Standby => {
                if now.mono.since(self.ears.since) < self.quiet() {
                    reasons.push("it listens before it competes");
                }
                if self.lease.lost_since.is_some() {
                    reasons.push("the registry (Redis) can't be reached: it could not take over");
                }
            }
            Phase::Leading(lead) if !lead.loaded => {
                reasons.push("it reads the stored cuts");
            }
            Phase::Leading(_) => {}
            Phase::Leaving { .. } | Phase::Over => reasons.push("it is leaving"),
        }
        reasons
    }

    /// Its view of the ring. Without leadership the term is the highest heard, under its own boot.
    /// What does not fit into a message is left out, members first.
    #[must_use]
    pub fn status(&self, now: Now) -> MasterStatus {
        let lead = self.lead();
        let heard = Term {
            number: self.floor,
            boot: self.config.boot,
        };
        let mut status = MasterStatus {
            who: self.who(),
            term: lead.map_or(heard, |lead| lead.term),
            since: Time(lead.map_or(now.wall, |lead| lead.since)),
            degraded: self.degraded().map(Into::into),
            clock_offset_ms: self.clock_offset_ms(),
            window_ms: millis_u64(self.timing().len),
            slaves: self.members(now),
            cuts: self.cuts(now),
            build: self.config.build.clone(),
        };
        while wire::encode(&Answer::Master(status.clone())).is_err()
            && !(status.slaves.is_empty() && status.cuts.is_empty())
        {
            let list = status.slaves.len();
            status.slaves.truncate(list / 2);
            if list == 0 {
                status.cuts.truncate(status.cuts.len() / 2);
            }
        }
        status
    }

    fn members(&self, now: Now) -> Vec<MemberStatus> {
        let status = |id: &crate::id::NodeId, member: &Member<super::Slave>| MemberStatus {
            who: Who {
                id: id.clone(),
                boot: member.boot,
            },
            heard_ms: millis_u64(now.mono.since(member.heard)),
            clock_offset_ms: member.role.offsets.iter().max().copied().unwrap_or(0),
            loads: member.role.loads.values().cloned().collect(),
            service: None,
            health: None,
            build: member.build.clone(),
        };
        self.roster.iter().map(|(id, m)| status(id, m)).collect()
    }

    fn cuts(&self, now: Now) -> Vec<ServiceCut> {
        let dark = |cut: &Cut| {
            let seats = cut.seats.iter();
            let frozen =
                seats.filter(|seat| seat.state == SeatState::Frozen || self.vanished.holds(seat));
            let width: u128 = frozen.filter_map(|s| s.range.map(Range::width)).sum();
            u32::try_from(width * 1_000_000 / Range::RING.width()).unwrap_or(1_000_000)
        };
        self.board
            .issued(self.current(now))
            .map(|cut| ServiceCut {
                cut: CutWire::new(self.timing(), cut),
                frozen_ppm: dark(cut),
            })
            .collect()
    }
}
