//! Planted defects: each makes one promise of the design untrue, from outside the machines. A
//! batch of universes must notice every one of them (`reliability.md` E.5), else the invariants
//! prove nothing.

use ring_core::{
    id::{BootId, Service},
    timing::Timing,
    token::Range,
    wire::{Answer, GrantWire, Load, Publication, Question, Role},
};

/// One planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutant {
    /// Orchestrators claim right up to the window's edges.
    GuardZero,
    /// Redis overwrites a cut that is there.
    RegistryOverwrites,
    /// Redis' lease never ends.
    LeaseImmortal,
    /// Answers carry no grants: a lost publication is lost for good.
    AnswersWithoutGrants,
    /// A slave cuts its slice anew when it publishes it again.
    SlaveRecuts,
    /// A grant is used by whoever has the holder's id, whatever its boot.
    BootIgnored,
    /// Every leader leads under the same term.
    TermReused,
    /// A slave without orchestrators of a service gets a slice of it.
    WeightlessServed,
    /// A seat once frozen stays so.
    FrozenForEver,
    /// A slave's silent orchestrators keep their parts.
    SessionEndless,
    /// Grants are for one token less than was cut.
    GrantsShrunk,
    /// A master stores the same cuts again as soon as it is answered: so it once did with a stored
    /// cut that it could not read.
    StoredWithoutEnd,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::GuardZero,
        Self::RegistryOverwrites,
        Self::LeaseImmortal,
        Self::AnswersWithoutGrants,
        Self::SlaveRecuts,
        Self::BootIgnored,
        Self::TermReused,
        Self::WeightlessServed,
        Self::FrozenForEver,
        Self::SessionEndless,
        Self::GrantsShrunk,
        Self::StoredWithoutEnd,
    ];

    /// The settings with which a node is made.
    #[must_use]
    pub fn timing(self, role: Role, mut timing: Timing) -> Timing {
        match (self, role) {
            (Self::GuardZero, Role::Orchestrator) => timing.guard = std::time::Duration::ZERO,
            (Self::FrozenForEver, Role::Master) => timing.freeze_limit = None,
            (Self::SessionEndless, Role::Slave) => timing.session *= 1_000,
            _ => {}
        }
        timing
    }

    /// What is published instead; `again` counts how often this grant was published before.
    pub fn publication(self, by: Role, body: &mut Publication, again: u32) {
        let Publication::Grant(grant) = body else {
            return;
        };
        match (self, by) {
            (Self::SlaveRecuts, Role::Slave) if again > 0 => shrink(grant),
            (Self::GrantsShrunk, Role::Slave) => shrink(grant),
            _ => {}
        }
    }

    /// What is heard instead.
    pub fn heard(self, by: Role, boot: BootId, body: &mut Publication) {
        if let (Self::BootIgnored, Role::Orchestrator, Publication::Grant(grant)) = (self, by, body)
        {
            grant.boot = boot;
        }
    }

    /// What is asked instead.
    pub fn question(self, question: &mut Question) {
        let (Self::WeightlessServed, Question::SlaveBeat(beat)) = (self, question) else {
            return;
        };
        for service in ["svc-0", "svc-1", "svc-2"]
            .map(Service::new)
            .into_iter()
            .flatten()
        {
            if let Some(load) = beat.loads.iter_mut().find(|load| load.service == service) {
                load.live = load.live.max(1);
            } else {
                let load = Load {
                    service,
                    live: 1,
                    sick: 0,
                    backlog: 0,
                    oldest_due_ms: 0,
                };
                beat.loads.push(load);
            }
        }
    }

    /// What is answered instead.
    pub fn answer(self, by: Role, answer: &mut Answer) {
        let (Answer::Heard { grants, .. }
        | Answer::Confirmed { grants, .. }
        | Answer::Grants { grants }) = answer
        else {
            return;
        };
        match (self, by) {
            (Self::AnswersWithoutGrants, _) => grants.clear(),
            (Self::GrantsShrunk, Role::Slave) => grants.iter_mut().for_each(shrink),
            _ => {}
        }
    }
}

fn shrink(grant: &mut GrantWire) {
    let (start, end) = (grant.range.start().0, grant.range.end().0);
    grant.range = Range::new(start, end - 1).unwrap_or(grant.range);
}
