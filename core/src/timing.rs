//! One table of defaults, derived from the window's length so that short windows stay sound
//! (`design.md` section 3), and the rules that a configuration must keep.

use alloc::vec::Vec;
use core::time::Duration;

use thiserror::Error;

use crate::{
    time::{Wall, millis_i64},
    window::WindowNo,
};

/// All time settings of the ring and of owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Length of a window. Default 60 s (R5).
    pub len: Duration,
    /// How long before a window's start it is cut. Default len/2.
    pub lead: Duration,
    /// Nobody claims this close to a window's edges. Default min(1 s, len/10).
    pub guard: Duration,
    /// Clock offset that is still tolerated; more, and the node sits the ring out. Default guard/2.
    pub tolerance: Duration,
    /// Pause between heartbeats. Default min(5 s, lead/6).
    pub heartbeat: Duration,
    /// A member unheard this long is gone. Default max(3 s, 3 heartbeats).
    pub session: Duration,
    /// The leader's lease in Redis, renewed at a third. Default max(2 s, min(10 s, lead/2)).
    pub master_lease: Duration,
    /// A process's lease in Postgres, renewed at a third, whatever `len` is. Default 6 s.
    pub owner_lease: Duration,
    /// Pause between polls inside a window, before jitter. Default 1 s.
    pub poll: Duration,
    /// A due transaction that nobody took for this long is swept by anyone. Default 10 s.
    pub overdue_after: Duration,
    /// Pause between sweeps, before jitter. Default 1 s.
    pub sweep: Duration,
    /// How many windows a vanished slave's seat stays frozen; `None` is for ever (the document's
    /// behaviour, R8). Default 1.
    pub freeze_limit: Option<u32>,
}

/// Settings that differ from the defaults. What is left out follows from what is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Instead of [`Timing::len`].
    pub len: Option<Duration>,
    /// Instead of [`Timing::lead`].
    pub lead: Option<Duration>,
    /// Instead of [`Timing::guard`].
    pub guard: Option<Duration>,
    /// Instead of [`Timing::tolerance`].
    pub tolerance: Option<Duration>,
    /// Instead of [`Timing::heartbeat`].
    pub heartbeat: Option<Duration>,
    /// Instead of [`Timing::session`].
    pub session: Option<Duration>,
    /// Instead of [`Timing::master_lease`].
    pub master_lease: Option<Duration>,
    /// Instead of [`Timing::owner_lease`].
    pub owner_lease: Option<Duration>,
    /// Instead of [`Timing::poll`].
    pub poll: Option<Duration>,
    /// Instead of [`Timing::overdue_after`].
    pub overdue_after: Option<Duration>,
    /// Instead of [`Timing::sweep`].
    pub sweep: Option<Duration>,
    /// Instead of [`Timing::freeze_limit`].
    pub freeze_limit: Option<Option<u32>>,
}

/// No setting is longer: windows and leases are counted in multiples of them, and a sum must stay
/// far from the end of time.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A leader asks for its lease again after a third of it, and gives that order a second.
const LEAST_MASTER_LEASE: Duration = Duration::from_secs(2);

/// One rule that the settings break; a configuration reports all of them at once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimingError {
    /// lead > len − 2·guard
    #[error(
        "lead ({lead:?}) must not exceed window − 2·guard ({most:?}): cut later or lengthen the window"
    )]
    LeadTooLong {
        /// As set.
        lead: Duration,
        /// The most that fits.
        most: Duration,
    },
    /// 2·guard ≥ len
    #[error("two guards ({guard:?} each) leave nothing of the window ({len:?}): shorten the guard")]
    GuardTooLong {
        /// As set.
        guard: Duration,
        /// As set.
        len: Duration,
    },
    /// heartbeat > lead/3
    #[error(
        "heartbeat ({heartbeat:?}) must be at most a third of lead ({lead:?}): a lost window must be healed in time"
    )]
    HeartbeatTooSlow {
        /// As set.
        heartbeat: Duration,
        /// As set.
        lead: Duration,
    },
    /// guard < tolerance
    #[error(
        "guard ({guard:?}) must not be below the tolerated clock offset ({tolerance:?}): windows would overlap"
    )]
    GuardBelowTolerance {
        /// As set.
        guard: Duration,
        /// As set.
        tolerance: Duration,
    },
    /// owner lease < 3 s
    #[error(
        "owner lease ({0:?}) must be at least 3s: a database hiccup would cost the process its work"
    )]
    OwnerLeaseTooShort(Duration),
    /// master lease < 2 s
    #[error(
        "master lease ({0:?}) must be at least 2s: one slow answer of Redis would cost the leader its lease"
    )]
    MasterLeaseTooShort(Duration),
    /// session < 2 heartbeats
    #[error(
        "session ({session:?}) must be at least two heartbeats ({heartbeat:?} each): one lost message would expel a member"
    )]
    SessionTooShort {
        /// As set.
        session: Duration,
        /// As set.
        heartbeat: Duration,
    },
    /// A duration of zero, or a window under 100 ms.
    #[error("{name} must be at least {least:?}")]
    TooShort {
        /// Which setting.
        name: &'static str,
        /// The least allowed.
        least: Duration,
    },
    /// A duration beyond a year.
    #[error("{name} must be at most 366 days")]
    TooLong {
        /// Which setting.
        name: &'static str,
    },
}

impl Timing {
    /// The defaults for a window length.
    #[must_use]
    pub fn for_window(len: Duration) -> Self {
        Self::derive(&Overrides {
            len: Some(len),
            ..Overrides::default()
        })
    }

    /// The whole table: what is set, and the defaults that follow from it.
    #[must_use]
    pub fn derive(set: &Overrides) -> Self {
        let second = Duration::from_secs(1);
        let len = set.len.unwrap_or(60 * second);
        let lead = set.lead.unwrap_or(len / 2);
        let guard = set.guard.unwrap_or_else(|| second.min(len / 10));
        let heartbeat = set.heartbeat.unwrap_or_else(|| (5 * second).min(lead / 6));
        let session = (3 * second).max(heartbeat.saturating_mul(3));
        let master_lease = LEAST_MASTER_LEASE.max((10 * second).min(lead / 2));
        Self {
            len,
            lead,
            guard,
            tolerance: set.tolerance.unwrap_or(guard / 2),
            heartbeat,
            session: set.session.unwrap_or(session),
            master_lease: set.master_lease.unwrap_or(master_lease),
            owner_lease: set.owner_lease.unwrap_or(6 * second),
            poll: set.poll.unwrap_or(second),
            overdue_after: set.overdue_after.unwrap_or(10 * second),
            sweep: set.sweep.unwrap_or(second),
            freeze_limit: set.freeze_limit.unwrap_or(Some(1)),
        }
    }

    /// Every rule that is broken; empty when the settings are sound.
    #[must_use]
    pub fn errors(&self) -> Vec<TimingError> {
        let mut found = self.out_of_bounds();
        let guards = self.guard.saturating_mul(2);
        if guards >= self.len {
            found.push(TimingError::GuardTooLong {
                guard: self.guard,
                len: self.len,
            });
        } else if self.lead > self.len - guards {
            let most = self.len - guards;
            found.push(TimingError::LeadTooLong {
                lead: self.lead,
                most,
            });
        }
        if self.heartbeat > self.lead / 3 {
            let (heartbeat, lead) = (self.heartbeat, self.lead);
            found.push(TimingError::HeartbeatTooSlow { heartbeat, lead });
        }
        if self.guard < self.tolerance {
            let (guard, tolerance) = (self.guard, self.tolerance);
            found.push(TimingError::GuardBelowTolerance { guard, tolerance });
        }
        if self.owner_lease < Duration::from_secs(3) {
            found.push(TimingError::OwnerLeaseTooShort(self.owner_lease));
        }
        if self.master_lease < LEAST_MASTER_LEASE {
            found.push(TimingError::MasterLeaseTooShort(self.master_lease));
        }
        if self.session < self.heartbeat.saturating_mul(2) {
            let (session, heartbeat) = (self.session, self.heartbeat);
            found.push(TimingError::SessionTooShort { session, heartbeat });
        }
        found
    }

    /// Each setting by itself: neither nothing nor for ever.
    fn out_of_bounds(&self) -> Vec<TimingError> {
        let (ms, none) = (Duration::from_millis, Duration::ZERO);
        let mut found = Vec::new();
        for (name, value, least) in [
            ("window", self.len, ms(100)),
            ("lead", self.lead, none),
            ("guard", self.guard, none),
            ("tolerance", self.tolerance, none),
            ("heartbeat", self.heartbeat, ms(1)),
            ("session", self.session, none),
            ("master_lease", self.master_lease, none),
            ("owner_lease", self.owner_lease, none),
            ("poll", self.poll, ms(10)),
            ("overdue_after", self.overdue_after, ms(100)),
            ("sweep", self.sweep, ms(10)),
        ] {
            if value < least {
                found.push(TimingError::TooShort { name, least });
            }
            if value > LONGEST {
                found.push(TimingError::TooLong { name });
            }
        }
        found
    }

    /// The window that holds this moment. Times before the epoch read as window 0.
    #[must_use]
    pub fn window_at(&self, at: Wall) -> WindowNo {
        let len = millis_i64(self.len).max(1);
        WindowNo(u64::try_from(at.0.div_euclid(len)).unwrap_or(0))
    }

    /// First moment of a window.
    #[must_use]
    pub fn starts(&self, n: WindowNo) -> Wall {
        let n = i64::try_from(n.0).unwrap_or(i64::MAX);
        Wall(n.saturating_mul(millis_i64(self.len).max(1)))
    }

    /// First moment after a window.
    #[must_use]
    pub fn ends(&self, n: WindowNo) -> Wall {
        self.starts(n).plus(self.len)
    }

    /// When a window is to be cut: `lead` before its start.
    #[must_use]
    pub fn cut_at(&self, n: WindowNo) -> Wall {
        self.starts(n).minus(self.lead)
    }

    /// Whether a node may claim by a grant for window `n` at this moment: inside the guards (RI4).
    #[must_use]
    pub fn claimable(&self, n: WindowNo, at: Wall) -> bool {
        self.starts(n).plus(self.guard) <= at && at < self.ends(n).minus(self.guard)
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::derive(&Overrides::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_design_tables_numbers() {
        let t = Timing::default();
        let s = Duration::from_secs;
        assert_eq!((t.len, t.lead, t.guard), (s(60), s(30), s(1)));
        assert_eq!(
            (t.tolerance, t.heartbeat),
            (Duration::from_millis(500), s(5))
        );
        assert_eq!(
            (t.session, t.master_lease, t.owner_lease),
            (s(15), s(10), s(6))
        );
        assert_eq!(t.errors(), []);
    }

    #[test]
    fn windows_of_any_sensible_length_are_sound_by_default() {
        for ms in [1_000, 3_000, 4_000, 6_000, 10_000, 60_000, 300_000] {
            let t = Timing::for_window(Duration::from_millis(ms));
            assert_eq!(t.errors(), [], "{ms} ms");
        }
    }

    #[test]
    fn what_is_not_set_follows_from_what_is() {
        let s = Duration::from_secs;
        let lead = Some(s(12));
        let t = Timing::derive(&Overrides {
            lead,
            ..Overrides::default()
        });
        assert_eq!((t.len, t.lead, t.guard), (s(60), s(12), s(1)));
        assert_eq!((t.heartbeat, t.session, t.master_lease), (s(2), s(6), s(6)));
        let t = Timing::derive(&Overrides {
            guard: Some(s(4)),
            heartbeat: Some(s(9)),
            ..Overrides::default()
        });
        assert_eq!((t.tolerance, t.session), (s(2), s(27)));
    }

    #[test]
    fn settings_without_end_are_refused_and_not_added_up() {
        let most = Some(Duration::MAX);
        let all = Timing::derive(&Overrides {
            len: most,
            guard: most,
            heartbeat: most,
            owner_lease: most,
            ..Overrides::default()
        });
        let found = all.errors();
        for name in ["window", "guard", "heartbeat", "session", "owner_lease"] {
            let refused = TimingError::TooLong { name };
            assert!(found.contains(&refused), "{name}: {found:?}");
        }
    }

    #[test]
    fn every_broken_rule_is_reported_at_once() {
        let t = Timing {
            lead: Duration::from_secs(59),
            heartbeat: Duration::from_secs(30),
            owner_lease: Duration::from_secs(1),
            master_lease: Duration::from_secs(1),
            ..Timing::default()
        };
        assert_eq!(t.errors().len(), 5, "{:?}", t.errors());
    }

    #[test]
    fn a_window_is_claimable_only_between_its_guards() {
        let t = Timing::default();
        let n = t.window_at(Wall(60_000 * 7 + 5));
        assert_eq!(n, WindowNo(7));
        assert_eq!(t.starts(n), Wall(420_000));
        assert!(!t.claimable(n, Wall(420_999)));
        assert!(t.claimable(n, Wall(421_000)));
        assert!(t.claimable(n, Wall(478_999)));
        assert!(!t.claimable(n, Wall(479_000)));
        assert_eq!(t.cut_at(n), Wall(390_000));
    }
}
