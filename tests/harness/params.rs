//! Everything about a run, drawn from its seed: who takes part, how long windows are, and which
//! few faults are enabled (swarm testing: a run with every fault on hides defects,
//! `reliability.md` E.1).

use std::time::Duration;

use ring_core::timing::Timing;

use crate::rng::Rng;

/// What may go wrong. A run enables two to five of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Messages vanish at random.
    Loss,
    /// Messages come twice.
    Duplication,
    /// Some messages take up to three seconds, so they overtake each other.
    Delay,
    /// Two nodes can't reach each other (a split between servers of the bus).
    Cut,
    /// One node's messages to another vanish, the way back works.
    OneWay,
    /// One node loses its connection and is told so; it publishes into its buffer meanwhile.
    Disconnection,
    /// One node's connection is dead and nobody is told.
    HalfOpen,
    /// The bus is down for all.
    BusDown,
    /// A process dies, perhaps between two orders, and starts again as a new boot.
    Crash,
    /// A process stands still (SIGSTOP); its messages wait for it.
    Pause,
    /// A machine is suspended; its messages are lost and its connection breaks.
    Suspend,
    /// A process with an id that somebody has starts elsewhere.
    Twin,
    /// A process is asked to leave, and comes back later.
    Drain,
    /// Wall clocks step, within the tolerance.
    SmallStep,
    /// Wall clocks step by seconds to minutes: beyond every tolerance.
    BigStep,
    /// An orchestrator's store hangs: it says that it is sick.
    SickStore,
    /// Redis is slow but answers.
    RedisSlow,
    /// Redis can't be reached by anyone.
    RedisDown,
    /// One master can't reach Redis.
    RedisPartition,
    /// Redis does what it was told and the answer is lost.
    RedisAmbiguous,
    /// Redis loses everything.
    RedisFlush,
    /// Redis loses lease and term, not the cuts (a failover, an eviction).
    RedisForgets,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Loss,
        Self::Duplication,
        Self::Delay,
        Self::Cut,
        Self::OneWay,
        Self::Disconnection,
        Self::HalfOpen,
        Self::BusDown,
        Self::Crash,
        Self::Pause,
        Self::Suspend,
        Self::Twin,
        Self::Drain,
        Self::SmallStep,
        Self::BigStep,
        Self::SickStore,
        Self::RedisSlow,
        Self::RedisDown,
        Self::RedisPartition,
        Self::RedisAmbiguous,
        Self::RedisFlush,
        Self::RedisForgets,
    ];
}

/// One universe.
#[derive(Clone, Debug)]
pub struct Params {
    /// Its seed.
    pub seed: u64,
    /// The ring's settings, the same on every node.
    pub timing: Timing,
    /// Whether slices are equal whatever the counts (`balance = "equal"`).
    pub equal: bool,
    /// Masters.
    pub masters: u64,
    /// Slaves.
    pub slaves: u64,
    /// The service of each orchestrator, by number.
    pub orchestrators: Vec<u64>,
    /// What may go wrong.
    pub faults: Vec<Fault>,
    /// Mean pause between two faults, milliseconds.
    pub pause_ms: u64,
    /// Likelihood of loss and duplication, parts per million each, when enabled.
    pub noise_ppm: u32,
    /// Windows of chaos.
    pub chaos: u64,
    /// In the healed phase every published window is lost: heartbeats alone must do.
    pub deaf: bool,
    /// Constant clock offsets stay within this, microseconds: below the tolerance.
    pub skew_us: i64,
}

impl Params {
    /// Draws a universe.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(1);
        let len = [4_000, 6_000, 10_000, 20_000, 60_000][rng.index(5)];
        let mut timing = Timing::for_window(Duration::from_millis(len));
        timing.freeze_limit = Some([1, 1, 1, 0, 2][rng.index(5)]);
        let services = 1 + rng.below(3);
        let count = rng.log_within(1, 12);
        let orchestrators = (0..count).map(|_| rng.below(services)).collect();
        let mut faults = Vec::new();
        let wanted = 2 + rng.index(4);
        while faults.len() < wanted {
            let one = Fault::ALL[rng.index(Fault::ALL.len())];
            if !faults.contains(&one) {
                faults.push(one);
            }
        }
        let tolerance = i64::try_from(timing.tolerance.as_micros()).unwrap_or(0);
        Self {
            seed,
            equal: rng.happens(50_000),
            masters: 1 + rng.below(3),
            slaves: 1 + rng.below(5),
            orchestrators,
            faults,
            pause_ms: rng.log_within(len / 8, len * 4),
            noise_ppm: u32::try_from(rng.log_within(2_000, 300_000)).unwrap_or(0),
            chaos: 4 + rng.below(9),
            deaf: rng.happens(150_000),
            // A tenth is left for drift and for small steps that do not add up.
            skew_us: tolerance * 4 / 10,
            timing,
        }
    }

    /// Whether a fault is enabled.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Windows after the healing within which the ring must be whole again: the one that was
    /// already cut, one to notice who is gone, the frozen ones (`design.md` section 3: whole in
    /// the third window after a death), and, where sessions are long against windows, the time
    /// until the silent are noticed and a leader is found.
    #[must_use]
    pub fn recovery(&self) -> u64 {
        let t = &self.timing;
        let notice = t.session + t.master_lease + 4 * t.heartbeat;
        let late = notice.saturating_sub(t.lead).as_millis();
        let extra = u64::try_from(late.div_ceil(t.len.as_millis())).unwrap_or(0);
        3 + u64::from(t.freeze_limit.unwrap_or(0)) + extra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_universe_has_sound_settings_and_few_faults() {
        for seed in 0..2_000 {
            let p = Params::from_seed(seed);
            assert_eq!(p.timing.errors(), [], "seed {seed}");
            assert!((2..=5).contains(&p.faults.len()), "seed {seed}");
            assert!((1..=12).contains(&p.orchestrators.len()), "seed {seed}");
        }
    }

    #[test]
    fn every_fault_is_drawn_by_some_universe() {
        let drawn: std::collections::BTreeSet<Fault> = (0..500)
            .flat_map(|seed| Params::from_seed(seed).faults)
            .collect();
        assert_eq!(drawn.len(), Fault::ALL.len());
    }
}
