//! A limit on everything (style rule 13): orders for one input, requests under way, inputs at one
//! true instant. A machine beyond them floods the bus or spins.

use super::Violation;

/// Orders for one input: a window for each of a dozen members and services, twice, and events.
const ORDERS: usize = 200;
/// Requests of one node under way at once: heartbeat, registration, window, assign, a few left over.
const ASKS: usize = 16;
/// Inputs of one node within one millisecond, beyond what a burst of the bus explains.
const SPIN: u32 = 400;

/// Checks one transition.
///
/// # Errors
/// A limit is broken.
pub fn check(orders: usize, asks: usize, inputs_in_a_ms: u32) -> Result<(), Violation> {
    let story = if orders > ORDERS {
        format!("{orders} orders for one input (at most {ORDERS})")
    } else if asks > ASKS {
        format!("{asks} requests under way (at most {ASKS})")
    } else if inputs_in_a_ms > SPIN {
        format!("{inputs_in_a_ms} inputs within a millisecond (at most {SPIN})")
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
        assert_eq!(check(ORDERS, ASKS, SPIN), Ok(()));
        assert!(check(ORDERS + 1, 0, 0).is_err());
        assert!(check(0, ASKS + 1, 0).is_err());
        assert!(check(0, 0, SPIN + 1).is_err());
    }
}
