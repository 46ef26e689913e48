//! The saga `place-order`: reserve the goods, charge the customer, confirm the reservation.
//!
//! ```text
//! reserve ──► charge ──► confirm        charge refused:  refund ◄─ release
//! ```
//!
//! Up to the charge everything can be undone; after it nothing is refused any more, so confirming
//! is tried until it is done. Each step sends a part of the order; its compensation sends the same,
//! and what the action returned. While a service is down, orders wait for it by its name.

use std::time::Duration;

use orchestrator_lib::{Key, Mistakes, Recovery, Retry, Saga};
use ring_participant::client::Target;

use crate::wire::{Order, Receipt, Reservation};

const RESERVE: Key<Reservation> = Key::new("reserve");
const CHARGE: Key<Receipt> = Key::new("charge");
const CONFIRM: Key<()> = Key::new("confirm");

/// How long a participant's failures are put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest that one call may take; then nobody knows whether it was applied.
    pub time_limit: Duration,
    /// First pause between attempts, doubled up to `cap`.
    pub first: Duration,
    /// Longest pause between attempts.
    pub cap: Duration,
    /// Most attempts of a step before the order is undone.
    pub attempts: u32,
}

impl Default for Patience {
    /// A participant may be away for some hours.
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(5),
            first: Duration::from_secs(1),
            cap: Duration::from_secs(120),
            attempts: 200,
        }
    }
}

/// The saga, over the services that it calls.
///
/// # Errors
/// Mistakes in the definition; a test builds it, so a release has none.
pub fn place_order(
    inventory: &Target,
    payment: &Target,
    patience: &Patience,
) -> Result<Saga<Order>, Mistakes> {
    let retry = Retry::exponential(patience.first)
        .cap(patience.cap)
        .attempts(patience.attempts);
    // Undoing is tried as long as the order lives.
    let undo = retry.until_the_lifetime_ends();
    // The client has a time limit of its own and says what it was; the engine's comes after it.
    let limit = patience.time_limit + Duration::from_secs(1);
    Saga::new("place-order", 1)
        .step(
            inventory
                .step(RESERVE, |order: &Order, _| Ok(order.reserve()))
                .retry(retry)
                .retry_compensation(undo)
                .time_limit(limit),
        )
        .step(
            payment
                .step(CHARGE, |order: &Order, _| Ok(order.charge()))
                .retry(retry)
                .retry_compensation(undo)
                .time_limit(limit),
        )
        .step(
            inventory
                .action(CONFIRM, |order: &Order, _| Ok(order.about()))
                .recovery(Recovery::ForwardOnly)
                .retry(undo)
                .time_limit(limit),
        )
        .build()
}

#[cfg(test)]
mod tests {
    use ring_participant::client::{Client, Fixed, Settings};

    use super::*;

    #[test]
    fn the_saga_is_sound() {
        let client = Client::new(Fixed::new(), Settings::default()).unwrap();
        let [inventory, payment] = ["inventory", "payment"].map(|name| client.target(name));
        let saga = place_order(&inventory, &payment, &Patience::default()).unwrap();
        assert_eq!((saga.name(), saga.version()), ("place-order", 1));
    }
}
