//! What the services say to each other, and what makes an order sound.
//!
//! Knows no HTTP and no database.

use serde::{Deserialize, Serialize};

/// Longest text in an order, in characters: it stands in indexes and on labels.
const LONGEST_TEXT: usize = 64;

/// Most pieces of one sku in an order, and most cents: a typing error should not empty the shop.
const MOST_PIECES: u32 = 1_000;
const MOST_CENTS: i64 = 100_000_000;

/// An order as the customer gives it, and the saga's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The customer's own number: the same one is the same order.
    pub order_id: String,
    /// Who pays.
    pub customer: String,
    /// What.
    pub sku: String,
    /// How many pieces.
    pub quantity: u32,
    /// The price of all of them, in cents.
    pub amount_cents: i64,
}

/// Asks the inventory to reserve goods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// For which order.
    pub order_id: String,
    /// What.
    pub sku: String,
    /// How many pieces.
    pub quantity: u32,
}

/// Goods that were put aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The inventory's number of it.
    pub reservation: i64,
}

/// Asks payment to charge a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// For which order.
    pub order_id: String,
    /// Who pays.
    pub customer: String,
    /// In cents.
    pub amount_cents: i64,
}

/// Money that was paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Payment's number of it.
    pub receipt: i64,
}

/// Names an order where the transaction says the rest: to confirm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Which order.
    pub order_id: String,
}

impl Order {
    /// What the inventory needs of it.
    #[must_use]
    pub fn reserve(&self) -> Reserve {
        Reserve {
            order_id: self.order_id.clone(),
            sku: self.sku.clone(),
            quantity: self.quantity,
        }
    }

    /// What payment needs of it.
    #[must_use]
    pub fn charge(&self) -> Charge {
        Charge {
            order_id: self.order_id.clone(),
            customer: self.customer.clone(),
            amount_cents: self.amount_cents,
        }
    }

    /// Its name.
    #[must_use]
    pub fn about(&self) -> About {
        About {
            order_id: self.order_id.clone(),
        }
    }

    /// Everything that is wrong with it, as sentences; nothing when it can be taken.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let texts = [
            ("order_id", &self.order_id),
            ("customer", &self.customer),
            ("sku", &self.sku),
        ];
        let mut found: Vec<String> = texts
            .into_iter()
            .filter_map(|(name, text)| text_mistake(name, text))
            .collect();
        if !(1..=MOST_PIECES).contains(&self.quantity) {
            found.push(format!(
                "quantity must be 1 to {MOST_PIECES}, it is {}",
                self.quantity
            ));
        }
        if !(1..=MOST_CENTS).contains(&self.amount_cents) {
            found.push(format!(
                "amount_cents must be 1 to {MOST_CENTS}, it is {}",
                self.amount_cents
            ));
        }
        found
    }
}

fn text_mistake(name: &str, text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() {
        Some(format!("{name} is empty"))
    } else if text.chars().count() > LONGEST_TEXT || !text.chars().all(plain) {
        Some(format!(
            "{name} must be at most {LONGEST_TEXT} letters, digits, dashes or underscores, it is {text:?}"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_of_an_order_are_named_at_once() {
        let order = Order {
            order_id: String::new(),
            customer: "a.b".to_owned(),
            sku: "pen".to_owned(),
            quantity: 0,
            amount_cents: -1,
        };
        let found = order.mistakes().join("; ");
        for name in ["order_id", "customer", "quantity", "amount_cents"] {
            assert!(found.contains(name), "{found}");
        }
        assert!(!found.contains("sku"), "{found}");
    }
}
