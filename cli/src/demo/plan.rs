//! What happens when, and to whom: drawn from the seed, before anything starts.
//!
//! Decides; starts nothing and reads no clock. The same seed, orders and flags are the same plan.

use std::time::Duration;

use ring_core::chance::mixed;
use shop::{participant::DECLINED, wire::Order};

use crate::args::{Blow, Demo, KillAt};

/// The last blow must leave time to settle: the whole is to end within two minutes.
const LATEST: Duration = Duration::from_secs(45);

/// Orders go on for this long after the last blow, so that it, too, falls into work.
const AFTER_THE_LAST: Duration = Duration::from_secs(2);

/// A held charge arrives this long after payment is back: its order is undone by then.
const LATE_BY: Duration = Duration::from_secs(5);

/// And this long after its order's process may have died: another goes on with it after the lease
/// (6 s) and a few seconds.
const LATE_BY_AFTER_DEATH: Duration = Duration::from_secs(15);

/// Charges that are held back.
const LATE_ORDERS: usize = 2;

/// Order services, the retry nodes first; how many of them are retry nodes.
pub(crate) const ORDER_SERVICES: usize = 3;
/// Retry nodes among them.
pub(crate) const RETRY_NODES: usize = 2;
/// Slaves.
pub(crate) const SLAVES: usize = 2;
/// Masters.
pub(crate) const MASTERS: usize = 2;
/// Nodes of the NATS cluster.
pub(crate) const NATS_NODES: usize = 3;

/// A blow, when it falls and on which one of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// From the first order on.
    pub(crate) at: Duration,
    /// What.
    pub(crate) blow: Blow,
    /// Which one, from 0; masters are found when it falls.
    pub(crate) victim: usize,
}

/// The whole story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In the order in which they are placed; those whose charge is held come first.
    pub(crate) orders: Vec<Order>,
    /// The orders are placed evenly over this time.
    pub(crate) placing: Duration,
    /// In the order of their times.
    pub(crate) acts: Vec<Act>,
    /// How many orders, from the first on, have their charge held.
    pub(crate) late: usize,
    /// How long those are held.
    pub(crate) hold: Duration,
}

/// Draws numbers from a seed.
struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    /// Below `limit`.
    fn draw(&mut self, limit: usize) -> usize {
        self.drawn += 1;
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(mixed(self.seed, self.drawn) % limit).unwrap_or(0)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.draw(last + 1));
        }
    }

    /// A time, up to a second later.
    fn about(&mut self, time: Duration) -> Duration {
        let more = u64::try_from(self.draw(1000)).unwrap_or(0);
        time + Duration::from_millis(more)
    }
}

impl Plan {
    /// Draws it.
    ///
    /// # Errors
    /// A sentence about flags that make no story.
    pub(crate) fn draw(demo: &Demo, mut orders: Vec<Order>) -> Result<Self, String> {
        let mut dice = Dice {
            seed: demo.seed,
            drawn: 0,
        };
        dice.shuffle(&mut orders);
        // Stable: those that can be held first, then the rest as shuffled.
        let mut held = 0;
        for index in 0..orders.len() {
            if held < LATE_ORDERS && !orders[index].customer.starts_with(DECLINED) {
                orders.swap(held, index);
                held += 1;
            }
        }
        let acts = acts(&mut dice, &demo.kill_at)?;
        let last = acts.last().map_or(Duration::ZERO, |act| act.at);
        let hold = acts.iter().filter_map(|act| match act.blow {
            Blow::PaymentUp => Some(act.at + LATE_BY),
            Blow::Order => Some(act.at + LATE_BY_AFTER_DEATH),
            Blow::PaymentDown | Blow::Slave | Blow::Master | Blow::Nats => None,
        });
        Ok(Self {
            orders,
            placing: last + AFTER_THE_LAST,
            late: held,
            hold: hold.max().unwrap_or_default(),
            acts,
        })
    }
}

fn acts(dice: &mut Dice, told: &[KillAt]) -> Result<Vec<Act>, String> {
    let mut acts = Vec::new();
    for blow in Blow::ALL {
        let times: Vec<Duration> = told
            .iter()
            .filter(|k| k.blow == blow)
            .map(|k| k.at)
            .collect();
        let most = most(blow);
        if times.len() > most {
            let name = blow.name();
            return Err(format!(
                "--kill-at {name}: at most {most}, {} were given",
                times.len()
            ));
        }
        // Drawn whether told or not, so that a flag changes nothing else.
        let usual = dice.about(usual(blow));
        let mut victims = victims(dice, blow);
        let times = if times.is_empty() { vec![usual] } else { times };
        for at in times {
            if at > LATEST {
                return Err(format!(
                    "--kill-at {}={}: at most {} after the first order",
                    blow.name(),
                    humantime::format_duration(at),
                    humantime::format_duration(LATEST),
                ));
            }
            acts.push(Act {
                at,
                blow,
                victim: victims.pop().unwrap_or(0),
            });
        }
    }
    acts.sort_by_key(|act| act.at);
    let when = |blow| acts.iter().find(|act| act.blow == blow).map(|act| act.at);
    if when(Blow::PaymentUp) <= when(Blow::PaymentDown) {
        return Err("--kill-at payment-up must come after payment-down".to_owned());
    }
    Ok(acts)
}

/// Apart, so that each one's effect on the ring can be told from the next one's.
fn usual(blow: Blow) -> Duration {
    Duration::from_secs(match blow {
        Blow::PaymentDown => 5,
        Blow::Slave => 7,
        Blow::Order => 17,
        Blow::PaymentUp => 23,
        Blow::Master => 26,
        Blow::Nats => 32,
    })
}

/// Somebody of each kind must be left to go on.
fn most(blow: Blow) -> usize {
    match blow {
        Blow::PaymentDown | Blow::PaymentUp => 1,
        Blow::Slave => SLAVES - 1,
        Blow::Master => MASTERS - 1,
        Blow::Order => ORDER_SERVICES - 1,
        Blow::Nats => NATS_NODES - 1,
    }
}

/// Whom a blow hits, last first; one retry node is never among them.
fn victims(dice: &mut Dice, blow: Blow) -> Vec<usize> {
    let mut all: Vec<usize> = match blow {
        Blow::PaymentDown | Blow::PaymentUp | Blow::Master => return vec![],
        Blow::Slave => (0..SLAVES).collect(),
        Blow::Nats => (0..NATS_NODES).collect(),
        Blow::Order => {
            let spared = dice.draw(RETRY_NODES);
            (0..ORDER_SERVICES)
                .filter(|index| *index != spared)
                .collect()
        }
    };
    dice.shuffle(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demo(seed: u64, kill_at: &[&str]) -> Demo {
        Demo {
            orders: None,
            seed,
            kill_at: kill_at.iter().map(|text| text.parse().unwrap()).collect(),
            keep: false,
            data: None,
        }
    }

    fn shipped() -> Vec<Order> {
        shop::csv::read(shop::csv::SHIPPED).unwrap()
    }

    fn plan(seed: u64, kill_at: &[&str]) -> Result<Plan, String> {
        Plan::draw(&demo(seed, kill_at), shipped())
    }

    #[test]
    fn one_seed_is_one_plan_and_another_is_another() {
        assert_eq!(plan(7, &[]), plan(7, &[]));
        assert_ne!(plan(7, &[]), plan(8, &[]));
    }

    #[test]
    fn a_told_time_changes_nothing_else() {
        let (usual, told) = (plan(7, &[]).unwrap(), plan(7, &["slave=3s"]).unwrap());
        assert_eq!(usual.orders, told.orders);
        let others = |plan: &Plan| -> Vec<Act> {
            plan.acts
                .iter()
                .copied()
                .filter(|act| act.blow != Blow::Slave)
                .collect()
        };
        assert_eq!(others(&usual), others(&told));
        assert_eq!(told.acts[0].at, Duration::from_secs(3));
    }

    #[test]
    fn all_orders_are_placed_and_held_ones_come_first_and_would_be_accepted() {
        for seed in 0..20 {
            let plan = plan(seed, &[]).unwrap();
            assert_eq!(plan.orders.len(), 500);
            assert_eq!(plan.late, LATE_ORDERS);
            assert!(
                plan.orders[..plan.late]
                    .iter()
                    .all(|o| !o.customer.starts_with(DECLINED))
            );
        }
    }

    #[test]
    fn a_retry_node_and_one_of_each_kind_is_left() {
        for seed in 0..50 {
            let plan = plan(seed, &["order=1s", "order=2s", "nats=3s", "nats=4s"]).unwrap();
            let hit = |blow| -> Vec<usize> {
                let hits = plan.acts.iter().filter(|act| act.blow == blow);
                hits.map(|act| act.victim).collect()
            };
            let orders = hit(Blow::Order);
            assert!(
                (0..RETRY_NODES).any(|node| !orders.contains(&node)),
                "{orders:?}"
            );
            assert_ne!(orders[0], orders[1]);
            assert_ne!(hit(Blow::Nats)[0], hit(Blow::Nats)[1]);
        }
    }

    #[test]
    fn flags_that_make_no_story_are_refused_in_words() {
        for (flags, says) in [
            (vec!["slave=1s", "slave=2s"], "at most 1"),
            (vec!["nats=2m"], "at most 45s"),
            (vec!["payment-up=1s"], "after payment-down"),
        ] {
            let said = plan(1, &flags).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
        assert!("slave".parse::<KillAt>().is_err());
        assert!(
            "cat=1s"
                .parse::<KillAt>()
                .unwrap_err()
                .contains("payment-down")
        );
        assert!("nats=soon".parse::<KillAt>().unwrap_err().contains("8s"));
    }
}
