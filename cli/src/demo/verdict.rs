//! What the books amount to: every order done once, or undone whole; nothing lost, nothing doubled.
//!
//! Judges; reads no database.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use shop::wire::Order;

use super::books::{Account, Books};

/// Complaints that are listed; more are only counted.
const LISTED: usize = 10;

/// The judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// Orders that were to be placed.
    pub(crate) orders: usize,
    /// Completed, with exactly one confirmed reservation and one charge.
    pub(crate) completed: usize,
    /// Compensated, with none left.
    pub(crate) compensated: usize,
    /// Without a transaction, or not at a good end.
    pub(crate) lost: usize,
    /// Effects beyond the first, and transactions beyond the first of an order.
    pub(crate) doubled: i64,
    /// Orders whose books disagree with their end.
    pub(crate) wrong: usize,
    /// Calls that participants had seen before and answered without an effect.
    pub(crate) repeated_calls: i64,
    /// Actions that came after what undoes them, and were refused.
    pub(crate) late_actions_refused: i64,
    /// What is wrong, order by order.
    pub(crate) complaints: Vec<String>,
}

impl Verdict {
    /// Judges.
    pub(crate) fn of(orders: &[Order], books: &Books) -> Self {
        let mut by_order: BTreeMap<&str, Vec<&Account>> = BTreeMap::new();
        for account in books.accounts.values() {
            by_order.entry(&account.order_id).or_default().push(account);
        }
        let mut verdict = Self {
            orders: orders.len(),
            repeated_calls: books.repeated,
            late_actions_refused: books.blocked,
            ..Self::default()
        };
        let placed: BTreeSet<&str> = orders.iter().map(|order| order.order_id.as_str()).collect();
        for (order_id, _) in by_order.iter().filter(|(id, _)| !placed.contains(*id)) {
            verdict.wrong += 1;
            verdict.complain(order_id, "nobody placed it");
        }
        for order in orders {
            let accounts = by_order.get(order.order_id.as_str());
            verdict.judge(order, accounts.map_or(&[], Vec::as_slice));
        }
        verdict
    }

    /// Whether nothing was lost, doubled or wrong.
    pub(crate) fn holds(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.wrong == 0
    }

    fn judge(&mut self, order: &Order, accounts: &[&Account]) {
        let id = &order.order_id;
        let Some((account, more)) = accounts.split_first() else {
            self.lost += 1;
            return self.complain(id, "has no transaction");
        };
        if !more.is_empty() {
            self.doubled += i64::try_from(more.len()).unwrap_or(i64::MAX);
            self.complain(id, &format!("has {} transactions", accounts.len()));
        }
        let effects = [
            account.reserved,
            account.confirmed,
            account.released,
            account.charged,
            account.refunded,
        ];
        let doubled: i64 = effects.iter().map(|count| (count - 1).max(0)).sum();
        if doubled > 0 {
            self.doubled += doubled;
            self.complain(id, &format!("something was done twice: {account:?}"));
        }
        match account.state.as_deref() {
            Some("completed") if account.is_sold(order) => self.completed += 1,
            Some("compensated") if account.is_undone() => self.compensated += 1,
            Some(state @ ("completed" | "compensated")) => {
                self.wrong += 1;
                self.complain(id, &format!("is {state}, but the books say {account:?}"));
            }
            Some(state) => {
                self.lost += 1;
                self.complain(id, &format!("ended nowhere good: {state}"));
            }
            None => {
                self.lost += 1;
                self.complain(id, "has effects and no transaction");
            }
        }
    }

    fn complain(&mut self, order_id: &str, what: &str) {
        if self.complaints.len() < LISTED {
            self.complaints.push(format!("{order_id} {what}"));
        }
    }
}

impl Account {
    fn is_sold(&self, order: &Order) -> bool {
        (self.reserved, self.confirmed, self.released) == (1, 1, 0)
            && (self.charged, self.refunded) == (1, 0)
            && (self.pieces, self.cents) == (order.quantity.into(), order.amount_cents)
    }

    fn is_undone(&self) -> bool {
        self.reserved == self.released
            && self.charged == self.refunded
            && (self.confirmed, self.pieces, self.cents) == (0, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            order_id: "A-1".to_owned(),
            customer: "ann".to_owned(),
            sku: "pen".to_owned(),
            quantity: 2,
            amount_cents: 500,
        }
    }

    fn sold() -> Account {
        Account {
            state: Some("completed".to_owned()),
            order_id: "A-1".to_owned(),
            reserved: 1,
            confirmed: 1,
            pieces: 2,
            charged: 1,
            cents: 500,
            ..Account::default()
        }
    }

    fn judged(accounts: &[Account]) -> Verdict {
        let accounts = accounts.iter().enumerate();
        let books = Books {
            accounts: accounts.map(|(n, a)| (n.to_string(), a.clone())).collect(),
            ..Books::default()
        };
        Verdict::of(&[order()], &books)
    }

    #[test]
    fn an_order_that_was_sold_once_or_undone_whole_holds() {
        let undone = Account {
            state: Some("compensated".to_owned()),
            confirmed: 0,
            released: 1,
            refunded: 1,
            pieces: 0,
            cents: 0,
            ..sold()
        };
        assert!(judged(&[sold()]).holds());
        assert!(judged(&[undone]).holds());
    }

    #[test]
    fn what_is_lost_doubled_or_wrong_is_found() {
        let lost = judged(&[]);
        assert_eq!((lost.lost, lost.holds()), (1, false));
        let open = judged(&[Account {
            state: Some("paused".to_owned()),
            ..sold()
        }]);
        assert_eq!((open.lost, open.holds()), (1, false));
        let twice = judged(&[Account {
            charged: 2,
            cents: 1000,
            ..sold()
        }]);
        assert_eq!((twice.doubled, twice.wrong), (1, 1));
        let two = judged(&[sold(), sold()]);
        assert_eq!((two.doubled, two.holds()), (1, false));
        let kept = Account {
            state: Some("compensated".to_owned()),
            ..sold()
        };
        assert_eq!(judged(&[kept]).wrong, 1);
        let cheap = judged(&[Account { cents: 1, ..sold() }]);
        assert_eq!(cheap.wrong, 1);
        let stray = judged(&[
            sold(),
            Account {
                order_id: "B-1".to_owned(),
                ..sold()
            },
        ]);
        assert_eq!(stray.wrong, 1);
    }
}
