//! Redis as the master's performer uses it: a lease with an end on Redis' own clock, cuts that
//! are set if absent, a cursor for each service. How it fails is the world's business.

use std::collections::BTreeMap;
use std::time::Duration;

use ring_core::{
    id::{BootId, NodeId, Service},
    registry::{Op, Told},
    time::Wall,
    window::{Cut, Term, WindowNo},
};

/// Who asks: what the performer knows beside the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The master.
    pub id: NodeId,
    /// Its boot.
    pub boot: BootId,
}

#[derive(Clone, Debug)]
struct Lease {
    holder: Client,
    term: Term,
    until: Wall,
}

/// What an order changed or found, for counters and invariants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// A missing lease was put back under the term of its holder.
    LeaseRestored,
    /// The stored term was lower than one that had been heard.
    TermHealed,
    /// A cut was stored.
    Stored(Cut),
    /// A cut of another boot was found and handed back.
    Adopted(Cut),
}

/// The store.
#[derive(Debug, Default)]
pub struct Redis {
    lease: Option<Lease>,
    term: Option<(Term, NodeId)>,
    cuts: BTreeMap<(Service, WindowNo), (Cut, Wall)>,
    cursors: BTreeMap<Service, u64>,
    /// A planted defect: cuts are overwritten, `reliability.md` A 17.
    pub overwrites: bool,
    /// A planted defect: every lease is taken under the same term.
    pub one_term: bool,
    /// A planted defect: a lease never ends.
    pub immortal: bool,
}

impl Redis {
    /// Performs one order at this reading of Redis' clock.
    pub fn perform(&mut self, who: &Client, op: Op, clock: Wall, seen: &mut Vec<Trace>) -> Told {
        if !self.immortal {
            self.lease = self.lease.take().filter(|lease| clock < lease.until);
        }
        self.cuts.retain(|_, (_, until)| clock < *until);
        match op {
            Op::Acquire { floor, ttl } => self.acquire(who, floor, clock.plus(ttl), clock, seen),
            Op::Renew { term, ttl } => self.renew(who, term, clock.plus(ttl), clock, seen),
            Op::Release { .. } => {
                self.lease = self
                    .lease
                    .take()
                    .filter(|lease| lease.holder.boot != who.boot);
                Told::Released
            }
            Op::StoreCuts { cuts, keep } => Told::Stored {
                cuts: cuts
                    .into_iter()
                    .map(|cut| self.store(cut, clock.plus(keep), seen))
                    .collect(),
            },
            Op::LoadCuts { windows } => {
                let of = |cut: &&(Cut, Wall)| windows.contains(&cut.0.window);
                let cuts: Vec<Cut> = self
                    .cuts
                    .values()
                    .filter(of)
                    .map(|(cut, _)| cut.clone())
                    .collect();
                let foreign = cuts.iter().filter(|cut| cut.term.boot != who.boot);
                seen.extend(foreign.cloned().map(Trace::Adopted));
                Told::Loaded { windows, cuts }
            }
            Op::Count { service } => {
                let next = self.cursors.entry(service.clone()).or_default();
                let count = *next;
                *next += 1;
                Told::Counted { service, count }
            }
        }
    }

    /// Loses everything (`FLUSHALL`, a restart without a file).
    pub fn flush(&mut self) {
        let (overwrites, one_term, immortal) = (self.overwrites, self.one_term, self.immortal);
        *self = Self {
            overwrites,
            one_term,
            immortal,
            ..Self::default()
        };
    }

    /// Loses lease and term (an eviction, a failover with the last seconds missing).
    pub fn forget(&mut self) {
        self.lease = None;
        self.term = None;
    }

    fn acquire(
        &mut self,
        who: &Client,
        floor: u64,
        until: Wall,
        clock: Wall,
        seen: &mut Vec<Trace>,
    ) -> Told {
        if let Some(lease) = &mut self.lease {
            return extend(lease, who, until, clock);
        }
        let stored = self.term.as_ref().map_or(0, |(term, _)| term.number);
        if stored < floor {
            seen.push(Trace::TermHealed);
        }
        let term = Term {
            number: if self.one_term {
                1
            } else {
                1 + stored.max(floor)
            },
            boot: who.boot,
        };
        self.term = Some((term, who.id.clone()));
        self.lease = Some(Lease {
            holder: who.clone(),
            term,
            until,
        });
        Told::Mine { term, clock }
    }

    fn renew(
        &mut self,
        who: &Client,
        term: Term,
        until: Wall,
        clock: Wall,
        seen: &mut Vec<Trace>,
    ) -> Told {
        if let Some(lease) = &mut self.lease {
            return extend(lease, who, until, clock);
        }
        if let Some((stored, holder)) = self.term.clone().filter(|(stored, _)| *stored > term) {
            let left = Duration::ZERO;
            return Told::Theirs {
                holder,
                term: stored,
                left,
                clock,
            };
        }
        seen.push(Trace::LeaseRestored);
        self.term = Some((term, who.id.clone()));
        self.lease = Some(Lease {
            holder: who.clone(),
            term,
            until,
        });
        Told::Mine { term, clock }
    }

    fn store(&mut self, cut: Cut, until: Wall, seen: &mut Vec<Trace>) -> Cut {
        let key = (cut.service.clone(), cut.window);
        if let Some((stored, _)) = self.cuts.get(&key).filter(|_| !self.overwrites) {
            if stored.term.boot != cut.term.boot {
                seen.push(Trace::Adopted(stored.clone()));
            }
            return stored.clone();
        }
        self.cuts.insert(key, (cut.clone(), until));
        seen.push(Trace::Stored(cut.clone()));
        cut
    }
}

/// A lease is its holder's boot's, whatever term is asked for: as in the scripts.
fn extend(lease: &mut Lease, who: &Client, until: Wall, clock: Wall) -> Told {
    if lease.holder.boot != who.boot {
        return theirs(lease, clock);
    }
    lease.until = until;
    let term = lease.term;
    Told::Mine { term, clock }
}

fn theirs(lease: &Lease, clock: Wall) -> Told {
    Told::Theirs {
        holder: lease.holder.id.clone(),
        term: lease.term,
        left: lease.until.since(clock),
        clock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u128) -> Client {
        Client {
            id: NodeId::new(format!("m-{n}")).unwrap(),
            boot: BootId(uuid::Uuid::from_u128(n)),
        }
    }

    fn acquire(redis: &mut Redis, n: u128, floor: u64, at: i64) -> Told {
        let op = Op::Acquire {
            floor,
            ttl: Duration::from_secs(10),
        };
        redis.perform(&client(n), op, Wall(at), &mut Vec::new())
    }

    #[test]
    fn a_lease_is_held_by_one_until_it_ends() {
        let mut redis = Redis::default();
        let Told::Mine { term, .. } = acquire(&mut redis, 1, 4, 0) else {
            panic!("not taken")
        };
        assert_eq!(term.number, 5);
        assert!(matches!(
            acquire(&mut redis, 2, 0, 9_999),
            Told::Theirs { .. }
        ));
        assert!(
            matches!(acquire(&mut redis, 1, 9, 9_999), Told::Mine { term: t, .. } if t == term)
        );
        let next = acquire(&mut redis, 2, 0, 30_000);
        assert!(matches!(next, Told::Mine { term, .. } if term.number == 6));
    }

    #[test]
    fn a_flushed_lease_is_restored_under_its_own_term() {
        let mut redis = Redis::default();
        let Told::Mine { term, .. } = acquire(&mut redis, 1, 4, 0) else {
            panic!("not taken")
        };
        redis.flush();
        let mut seen = Vec::new();
        let op = Op::Renew {
            term,
            ttl: Duration::from_secs(10),
        };
        let told = redis.perform(&client(1), op, Wall(1), &mut seen);
        assert_eq!(
            told,
            Told::Mine {
                term,
                clock: Wall(1)
            }
        );
        assert_eq!(seen, [Trace::LeaseRestored]);
    }

    #[test]
    fn a_lease_belongs_to_a_boot_whatever_term_it_names() {
        let mut redis = Redis::default();
        let Told::Mine { term, .. } = acquire(&mut redis, 1, 4, 0) else {
            panic!("not taken")
        };
        let other = Term {
            number: 2,
            boot: term.boot,
        };
        let ttl = Duration::from_secs(10);
        let renew = Op::Renew { term: other, ttl };
        let told = redis.perform(&client(1), renew, Wall(1), &mut Vec::new());
        assert!(
            matches!(told, Told::Mine { term: t, .. } if t == term),
            "{told:?}"
        );
        let release = Op::Release { term: other };
        redis.perform(&client(2), release.clone(), Wall(2), &mut Vec::new());
        assert!(matches!(acquire(&mut redis, 2, 0, 2), Told::Theirs { .. }));
        redis.perform(&client(1), release, Wall(3), &mut Vec::new());
        assert!(matches!(acquire(&mut redis, 2, 0, 3), Told::Mine { .. }));
    }

    #[test]
    fn a_lease_is_not_restored_over_a_higher_term() {
        let mut redis = Redis::default();
        let Told::Mine { term, .. } = acquire(&mut redis, 1, 0, 0) else {
            panic!("not taken")
        };
        acquire(&mut redis, 2, 0, 10_000);
        let op = Op::Renew {
            term,
            ttl: Duration::from_secs(10),
        };
        let told = redis.perform(&client(1), op, Wall(30_000), &mut Vec::new());
        assert!(
            matches!(told, Told::Theirs { term, .. } if term.number == 2),
            "{told:?}"
        );
    }
}
