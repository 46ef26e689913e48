//! The saga `place-order`: reserve the goods, charge the customer, confirm the reservation.
//!
//! ```text
//! reserve ──► charge ──► confirm        charge refused:  refund ◄─ release
//! ```
//!
//! Up to the charge everything can be undone; after it nothing is refused any more, so confirming
//! is tried until it is done.

use std::time::Duration;

use orchestrator_lib::{Context, Key, Mistakes, Recovery, Retry, Saga, Step, StepError};

use super::client::Participants;
use crate::wire::{About, Charge, Order, Receipt, Reservation, Reserve};

const RESERVE: Key<Reservation> = Key::new("reserve");
const CHARGE: Key<Receipt> = Key::new("charge");

// What is up or down as a whole: orders wait for it, and don't use up their attempts.
const INVENTORY: &str = "inventory";
const PAYMENT: &str = "payment";

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

/// The saga.
///
/// # Errors
/// Mistakes in the definition; a test builds it, so a release has none.
pub fn place_order(patience: &Patience) -> Result<Saga<Order>, Mistakes> {
    let retry = Retry::exponential(patience.first)
        .cap(patience.cap)
        .attempts(patience.attempts);
    // Undoing is tried as long as the order lives.
    let undo = retry.until_the_lifetime_ends();
    // The client has a time limit of its own and says what it was; the engine's comes after it.
    let limit = patience.time_limit + Duration::from_secs(1);
    Saga::new("place-order", 1)
        .step(
            Step::new(RESERVE, reserve)
                .compensate(release)
                .retry(retry)
                .retry_compensation(undo)
                .time_limit(limit)
                .target(INVENTORY),
        )
        .step(
            Step::new(CHARGE, charge)
                .compensate(refund)
                .retry(retry)
                .retry_compensation(undo)
                .time_limit(limit)
                .target(PAYMENT),
        )
        .step(
            Step::new("confirm", confirm)
                .recovery(Recovery::ForwardOnly)
                .retry(undo)
                .time_limit(limit)
                .target(INVENTORY),
        )
        .build()
}

async fn reserve(cx: Context, order: Order) -> Result<Reservation, StepError> {
    let Order {
        order_id,
        sku,
        quantity,
        ..
    } = order;
    let ask = Reserve {
        order_id,
        sku,
        quantity,
    };
    cx.shared::<Participants>()?
        .inventory
        .call(&cx, "reserve", &ask)
        .await
}

async fn release(cx: Context, order: Order, _: Option<Reservation>) -> Result<(), StepError> {
    cx.shared::<Participants>()?
        .inventory
        .call(&cx, "release", &About::of(order))
        .await
}

async fn charge(cx: Context, order: Order) -> Result<Receipt, StepError> {
    let Order {
        order_id,
        customer,
        amount_cents,
        ..
    } = order;
    let ask = Charge {
        order_id,
        customer,
        amount_cents,
    };
    cx.shared::<Participants>()?
        .payment
        .call(&cx, "charge", &ask)
        .await
}

async fn refund(cx: Context, order: Order, _: Option<Receipt>) -> Result<(), StepError> {
    cx.shared::<Participants>()?
        .payment
        .call(&cx, "refund", &About::of(order))
        .await
}

async fn confirm(cx: Context, order: Order) -> Result<(), StepError> {
    cx.shared::<Participants>()?
        .inventory
        .call(&cx, "confirm", &About::of(order))
        .await
}

impl About {
    fn of(order: Order) -> Self {
        Self {
            order_id: order.order_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_saga_is_sound() {
        let saga = place_order(&Patience::default()).unwrap();
        assert_eq!((saga.name(), saga.version()), ("place-order", 1));
    }
}
