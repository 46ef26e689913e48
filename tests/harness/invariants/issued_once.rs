//! RI2: a (service, window) is never stored or published with two maps (`reliability.md` D.1;
//! `design.md` section 3: a cut is an immutable value).

use std::collections::BTreeMap;

use ring_core::{
    id::{BootId, NodeId, Service},
    token::Range,
    window::{Cut, Grant, Seat, WindowNo},
};

use super::Violation;

type Holder = (NodeId, BootId);

/// Every map seen of a window.
#[derive(Debug, Default)]
pub struct IssuedOnce {
    cuts: BTreeMap<(Service, WindowNo), Vec<Seat>>,
    slices: BTreeMap<(Service, WindowNo), BTreeMap<Holder, Range>>,
}

impl IssuedOnce {
    /// A cut was stored, or told as an event.
    ///
    /// # Errors
    /// The window was cut differently before.
    pub fn cut(&mut self, cut: &Cut) -> Result<(), Violation> {
        let key = (cut.service.clone(), cut.window);
        let known = self.cuts.entry(key).or_insert_with(|| cut.seats.clone());
        if *known != cut.seats {
            let story = format!(
                "{} was cut as {known:?} and as {:?}",
                cut.service, cut.seats
            );
            return Err(Violation {
                property: "issued_once",
                window: Some(cut.window),
                story,
            });
        }
        Ok(())
    }

    /// A master granted a slave its slice.
    ///
    /// # Errors
    /// The slave had another one, or somebody else has part of it.
    pub fn slice(&mut self, grant: &Grant) -> Result<(), Violation> {
        let slices = self
            .slices
            .entry((grant.service.clone(), grant.window))
            .or_default();
        let mine = (grant.holder.clone(), grant.boot);
        let clash = match slices.get(&mine) {
            Some(known) => (*known != grant.range).then_some((&mine, known)),
            None => slices.iter().find(|(_, known)| known.overlaps(grant.range)),
        };
        if let Some((holder, known)) = clash {
            let story = format!(
                "{}: {holder:?} has {known}, now {mine:?} gets {}",
                grant.service, grant.range
            );
            return Err(Violation {
                property: "issued_once",
                window: Some(grant.window),
                story,
            });
        }
        slices.insert(mine, grant.range);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring_core::window::{SeatState, Term};

    use super::*;

    fn boot(n: u128) -> BootId {
        BootId(uuid::Uuid::from_u128(n))
    }

    fn cut(range: Range) -> Cut {
        let slave = NodeId::new("s-0").unwrap();
        Cut {
            service: Service::new("orders").unwrap(),
            window: WindowNo(7),
            term: Term {
                number: 1,
                boot: boot(1),
            },
            seats: vec![Seat {
                slave,
                boot: boot(2),
                weight: 1,
                range: Some(range),
                state: SeatState::Live,
            }],
        }
    }

    fn slice(holder: &str, range: Range) -> Grant {
        let cut = cut(range);
        Grant {
            service: cut.service,
            window: cut.window,
            range,
            term: cut.term,
            holder: NodeId::new(holder).unwrap(),
            boot: boot(2),
            index: 0,
            members: 1,
            parent: None,
        }
    }

    #[test]
    fn two_maps_of_one_window_are_a_violation_and_two_terms_are_none() {
        let half = Range::new(0, 9).unwrap();
        let mut seen = IssuedOnce::default();
        assert_eq!(seen.cut(&cut(Range::RING)), Ok(()));
        let mut again = cut(Range::RING);
        again.term.number = 5;
        assert_eq!(seen.cut(&again), Ok(()));
        assert!(seen.cut(&cut(half)).is_err());
    }

    #[test]
    fn a_slice_that_changes_or_overlaps_is_a_violation() {
        let (low, high) = (Range::new(0, 9).unwrap(), Range::new(10, 19).unwrap());
        let mut seen = IssuedOnce::default();
        assert_eq!(seen.slice(&slice("a", low)), Ok(()));
        assert_eq!(seen.slice(&slice("b", high)), Ok(()));
        assert_eq!(seen.slice(&slice("a", low)), Ok(()));
        assert!(seen.slice(&slice("a", high)).is_err());
        assert!(seen.slice(&slice("c", low)).is_err());
    }
}
