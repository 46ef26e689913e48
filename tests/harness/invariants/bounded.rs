//! A limit on everything (style rule 13): orders for one input, requests under way, inputs of each
//! kind within a second of true time. A machine beyond them floods the bus or spins.
//!
//! A second and not less: timers and Redis answer within a millisecond or two, so a machine that
//! spins gets one or two inputs in each.

use super::Violation;
use crate::actor::Fact;

/// Orders for one input: a window for each of a dozen members and services, twice, and events.
const ORDERS: usize = 200;
/// Requests of one node under way at once: heartbeat, registration, window, assign, a few left over.
const ASKS: usize = 16;
/// Wakes of a node: dozens of deadlines in the shortest windows. Spinning brings over a thousand.
const WAKES: u32 = 400;
/// Answers of Redis: lease, cuts and cursors of a few services. Spinning brings hundreds.
const REGISTRY: u32 = 100;
/// From the bus: everybody's heartbeats, and after a pause all that waited.
const BUS: u32 = 8_192;
/// The rest: measurements, starts, orders to leave.
const REST: u32 = 64;

/// Inputs of one node within a second, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Time passed.
    pub wakes: u32,
    /// From the registry.
    pub registry: u32,
    /// From the bus.
    pub bus: u32,
    /// Anything else.
    pub rest: u32,
}

impl Fed {
    /// One more.
    pub fn note(&mut self, fact: &Fact) {
        let count = match fact {
            Fact::Woke => &mut self.wakes,
            Fact::Registry(_) => &mut self.registry,
            Fact::Bus(_) => &mut self.bus,
            Fact::Started | Fact::Measured(_) | Fact::ClockMeasured(_) | Fact::Drained => {
                &mut self.rest
            }
        };
        *count += 1;
    }

    fn beyond(self) -> Option<(&'static str, u32, u32)> {
        [
            ("wakes", self.wakes, WAKES),
            ("answers of Redis", self.registry, REGISTRY),
            ("inputs from the bus", self.bus, BUS),
            ("other inputs", self.rest, REST),
        ]
        .into_iter()
        .find(|(_, count, most)| count > most)
    }
}

/// Checks one transition.
///
/// # Errors
/// A limit is broken.
pub fn check(orders: usize, asks: usize, fed: Fed) -> Result<(), Violation> {
    let story = if orders > ORDERS {
        format!("{orders} orders for one input (at most {ORDERS})")
    } else if asks > ASKS {
        format!("{asks} requests under way (at most {ASKS})")
    } else if let Some((what, count, most)) = fed.beyond() {
        format!("{count} {what} within a second (at most {most})")
    } else {
        return Ok(());
    };
    Err(Violation {
        property: "bounded",
        window: None,
        story,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_watched() {
        let most = Fed {
            wakes: WAKES,
            registry: REGISTRY,
            bus: BUS,
            rest: REST,
        };
        assert_eq!(check(ORDERS, ASKS, most), Ok(()));
        assert!(check(ORDERS + 1, 0, most).is_err());
        assert!(check(0, ASKS + 1, most).is_err());
        let told = ring_core::registry::Told::Released;
        let woken = ring_core::bus::Told::Connected;
        for fact in [
            Fact::Woke,
            Fact::Registry(told),
            Fact::Bus(woken),
            Fact::Drained,
        ] {
            let mut fed = most;
            fed.note(&fact);
            assert!(check(0, 0, fed).is_err(), "{fact:?}");
        }
    }
}
