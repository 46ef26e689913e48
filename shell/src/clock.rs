//! The only reader of the OS clocks, and the only source of chance and identity.
//!
//! Decides which clock counts: Unix time for windows, and for time limits the one that goes on
//! through a suspend (Linux `CLOCK_BOOTTIME`, [`std::time::Instant`] does not, rust#87906).

use ring_core::{
    id::{BootId, Nonce},
    time::{Mono, Now, Wall},
};
use rustix::time::{ClockId, Timespec, clock_gettime};
use uuid::Uuid;

#[cfg(any(target_os = "linux", target_os = "android"))]
const TIME_LIMITS: ClockId = ClockId::Boottime;
// Elsewhere the plain monotonic clock has to do; macOS' counts suspend, too.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TIME_LIMITS: ClockId = ClockId::Monotonic;

/// Both clocks, read together.
#[must_use]
pub fn now() -> Now {
    Now {
        wall: Wall(millis(clock_gettime(ClockId::Realtime))),
        mono: Mono(u64::try_from(millis(clock_gettime(TIME_LIMITS))).unwrap_or(0)),
    }
}

/// A new boot id, one a start of a process: UUIDv7, so later boots compare greater.
#[must_use]
pub fn boot() -> BootId {
    BootId(Uuid::now_v7())
}

/// Fresh chance for one purpose.
#[must_use]
pub fn nonce() -> Nonce {
    Nonce(Uuid::new_v4())
}

/// 64 bits of fresh chance: a machine's seed, the low bits of a transaction id.
#[must_use]
pub fn chance() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // Version and variant are six fixed bits; folded, each bit has chance in it.
    high ^ low.rotate_left(32)
}

fn millis(t: Timespec) -> i64 {
    t.tv_sec
        .saturating_mul(1000)
        .saturating_add(t.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_forward() {
        let first = now();
        let second = now();
        assert!(first.mono <= second.mono);
        assert!(first.wall.0 > 1_700_000_000_000, "{first:?}");
    }

    #[test]
    fn later_boots_compare_greater_and_chance_differs() {
        assert!(boot() < boot());
        assert_ne!(chance(), chance());
        assert_ne!(nonce(), nonce());
    }
}
