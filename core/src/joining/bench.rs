//! Values for the tests of members: names, times, grants, and what was asked.

use alloc::{collections::BTreeSet, vec::Vec};

use uuid::Uuid;

use crate::{
    bus::{AskId, Op},
    id::{BootId, Cluster, NodeId, Nonce, Region, Scope, Service},
    subject::Place,
    time::{Mono, Now, Wall},
    timing::Timing,
    token::Range,
    window::{Grant, Parent, Term, WindowNo},
    wire::{GrantWire, Question, Who},
};

/// Ten seconds into window 10.
pub(crate) const START: Now = Now {
    wall: Wall(610_000),
    mono: Mono(1_000_000),
};

pub(crate) fn scope() -> Scope {
    Scope {
        region: Region::new("eu-1").unwrap(),
        cluster: Cluster::new("c1").unwrap(),
    }
}

pub(crate) fn boot(n: u128) -> BootId {
    BootId(Uuid::from_u128(n))
}

pub(crate) fn nonce(n: u128) -> Nonce {
    Nonce(Uuid::from_u128(n))
}

pub(crate) fn node(id: &str) -> NodeId {
    NodeId::new(id).unwrap()
}

pub(crate) fn who(id: &str, n: u128) -> Who {
    Who {
        id: node(id),
        boot: boot(n),
    }
}

pub(crate) fn service(name: &str) -> Service {
    Service::new(name).unwrap()
}

pub(crate) fn term(number: u64) -> Term {
    Term {
        number,
        boot: boot(900 + u128::from(number)),
    }
}

pub(crate) fn leader(number: u64) -> Who {
    Who {
        id: node("m"),
        boot: term(number).boot,
    }
}

pub(crate) fn range(start: i64, end: i64) -> Range {
    Range::new(start, end).unwrap()
}

pub(crate) fn dressed(grant: Grant) -> GrantWire {
    GrantWire::new(&scope(), &Timing::default(), grant)
}

/// A slave's grant for orders.
pub(crate) fn grant(holder: &Who, n: u64, range: Range) -> Grant {
    Grant {
        service: service("orders"),
        window: WindowNo(n),
        range,
        term: term(5),
        holder: holder.id.clone(),
        boot: holder.boot,
        index: 0,
        members: 1,
        parent: None,
    }
}

/// An orchestrator's grant for orders, out of the whole ring at this slave.
pub(crate) fn sub(slave: &Who, holder: &Who, n: u64, range: Range) -> Grant {
    let parent = Parent {
        slave: slave.id.clone(),
        boot: slave.boot,
        index: 0,
        members: 1,
        range: Range::RING,
    };
    Grant {
        parent: Some(parent),
        ..grant(holder, n, range)
    }
}

/// What was asked, in order.
pub(crate) fn asked(ops: &[Op]) -> Vec<(AskId, Place, Question)> {
    ops.iter()
        .filter_map(|op| match op {
            Op::Ask {
                ask,
                place,
                question,
                ..
            } => Some((*ask, place.clone(), question.clone())),
            Op::Publish { .. }
            | Op::Tell(_)
            | Op::Answer { .. }
            | Op::Listen(_)
            | Op::Ignore(_)
            | Op::Serve(_)
            | Op::Withdraw(_)
            | Op::Reconnect => None,
        })
        .collect()
}

/// The one request among the orders.
pub(crate) fn only(ops: &[Op]) -> (AskId, Place, Question) {
    let mut all = asked(ops);
    assert_eq!(all.len(), 1, "{ops:?}");
    all.remove(0)
}

/// Windows of grants, for short assertions.
pub(crate) fn windows<'a>(grants: impl Iterator<Item = &'a Grant>) -> BTreeSet<u64> {
    grants.map(|g| g.window.0).collect()
}
