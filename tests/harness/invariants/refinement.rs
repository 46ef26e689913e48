//! RI3, and a slave's half of RI2: what a slave grants lies inside its own slice, its parts are
//! disjoint and, once all are seen, cover the slice; and it cuts a slice once
//! (`reliability.md` D.1; `design.md` section 3, "Windows").

use std::collections::BTreeMap;

use ring_core::{
    id::{BootId, NodeId, Service},
    token::{Range, coverage},
    window::{Grant, WindowNo},
};

use super::Violation;

type Key = (NodeId, BootId, Service, WindowNo);

/// One slave's cut of one slice, as far as it was seen.
#[derive(Debug)]
struct Parts {
    whole: Range,
    members: u32,
    parts: BTreeMap<u32, (NodeId, BootId, Range)>,
}

/// Every part seen of every slice.
#[derive(Debug, Default)]
pub struct Refinement {
    seen: BTreeMap<Key, Parts>,
}

impl Refinement {
    /// A slave granted an orchestrator its part.
    ///
    /// # Errors
    /// The part contradicts what the slave granted before or does not fit into its slice.
    pub fn part(&mut self, grant: &Grant) -> Result<(), Violation> {
        let bad = |property, story| {
            Err(Violation {
                property,
                window: Some(grant.window),
                story,
            })
        };
        let Some(parent) = &grant.parent else {
            return bad("refinement", format!("{grant:?} was granted by nobody"));
        };
        let slave = (parent.slave.clone(), parent.boot);
        let key = (
            slave.0.clone(),
            slave.1,
            grant.service.clone(),
            grant.window,
        );
        let known = self.seen.entry(key).or_insert_with(|| Parts {
            whole: parent.range,
            members: grant.members,
            parts: BTreeMap::new(),
        });
        if (known.whole, known.members) != (parent.range, grant.members) {
            let story = format!("{slave:?} cut twice: {known:?} and {grant:?}");
            return bad("issued_once", story);
        }
        if !known.whole.covers(grant.range) {
            return bad("refinement", format!("{grant:?} lies outside its slice"));
        }
        let mine = (grant.holder.clone(), grant.boot, grant.range);
        let clash = match known.parts.get(&grant.index) {
            Some(part) => *part != mine,
            None => known
                .parts
                .values()
                .any(|(_, _, range)| range.overlaps(grant.range)),
        };
        if clash {
            return bad(
                "issued_once",
                format!("{slave:?} granted {known:?}, now {grant:?}"),
            );
        }
        known.parts.insert(grant.index, mine);
        if known.parts.len() == usize::try_from(known.members).unwrap_or(usize::MAX) {
            let ranges: Vec<Range> = known.parts.values().map(|(_, _, range)| *range).collect();
            let (gaps, _) = coverage(known.whole, &ranges);
            if !gaps.is_empty() {
                return bad(
                    "refinement",
                    format!("{slave:?} left {gaps:?} of {known:?}"),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring_core::window::{Parent, Term};

    use super::*;

    fn part(index: u32, start: i64, end: i64) -> Grant {
        let boot = BootId(uuid::Uuid::from_u128(9));
        Grant {
            service: Service::new("orders").unwrap(),
            window: WindowNo(7),
            range: Range::new(start, end).unwrap(),
            term: Term { number: 1, boot },
            holder: NodeId::new(format!("o-{index}")).unwrap(),
            boot,
            index,
            members: 2,
            parent: Some(Parent {
                slave: NodeId::new("s-0").unwrap(),
                boot,
                index: 0,
                members: 1,
                range: Range::new(0, 99).unwrap(),
            }),
        }
    }

    fn judge(parts: &[Grant]) -> Result<(), Violation> {
        let mut seen = Refinement::default();
        parts.iter().try_for_each(|grant| seen.part(grant))
    }

    #[test]
    fn parts_that_tile_the_slice_are_right_however_often_they_come() {
        assert_eq!(
            judge(&[part(0, 0, 49), part(1, 50, 99), part(0, 0, 49)]),
            Ok(())
        );
    }

    #[test]
    fn parts_that_overlap_leave_a_gap_or_stick_out_are_violations() {
        assert!(judge(&[part(0, 0, 50), part(1, 50, 99)]).is_err());
        assert!(judge(&[part(0, 0, 40), part(1, 50, 99)]).is_err());
        assert!(judge(&[part(0, 0, 100)]).is_err());
    }

    #[test]
    fn a_slice_cut_twice_is_a_violation() {
        assert!(judge(&[part(0, 0, 49), part(0, 0, 39)]).is_err());
        let mut other = part(1, 50, 99);
        other.members = 3;
        assert!(judge(&[part(0, 0, 49), other]).is_err());
        let mut whole = part(1, 50, 99);
        whole.parent.as_mut().unwrap().range = Range::new(0, 199).unwrap();
        assert!(judge(&[part(0, 0, 49), whole]).is_err());
    }
}
