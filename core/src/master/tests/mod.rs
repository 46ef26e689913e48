//! The machine, told facts and asked for its exact orders.
//!
//! Every test goes through [`Bench`]: it keeps the clocks, tells the master facts and compares what
//! it orders. Windows are 60 s long, heartbeats 5 s apart, as by default; window 1000 has just begun.

mod asked;
mod assign;
mod bench;
mod clock;
mod cutting;
mod frozen;
mod lease;
mod seats;
mod status;
mod without_registry;

use alloc::{string::ToString, vec, vec::Vec};
use core::time::Duration;

use uuid::Uuid;

use self::bench::Bench;
use super::*;
use crate::{
    bus::{ReplyTo, Told},
    id::{Cluster, Nonce, Region},
    registry,
    subject::{Endpoints, Place, Verb},
    token::Range,
    window::{Cut, Grant, Seat, SeatState},
    wire::{
        Answer, Assign, Confirm, CutWire, GrantWire, Leave, Publication, Question, Refusal,
        Register, SlaveBeat, Time,
    },
};

const ME: u128 = 77;
const FIRST: WindowNo = WindowNo(1000);

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn service(text: &str) -> Service {
    Service::new(text).unwrap()
}

fn boot(n: u128) -> BootId {
    BootId(Uuid::from_u128(n))
}

fn who(name: &str, n: u128) -> Who {
    Who {
        id: id(name),
        boot: boot(n),
    }
}

fn term(number: u64) -> Term {
    Term {
        number,
        boot: boot(ME),
    }
}

fn foreign_term(number: u64) -> Term {
    Term {
        number,
        boot: boot(ME + 1),
    }
}

fn load(name: &str, live: u32, sick: u32) -> Load {
    Load {
        service: service(name),
        live,
        sick,
        backlog: 0,
        oldest_due_ms: 0,
    }
}

fn config() -> Config {
    Config {
        scope: Scope {
            region: Region::new("eu-1").unwrap(),
            cluster: Cluster::new("c1").unwrap(),
        },
        id: id("m-1"),
        boot: boot(ME),
        timing: Timing::default(),
        balance: Balance::Weighted,
        build: "1".into(),
        alone: false,
    }
}

fn told(told: registry::Told) -> Input {
    Input::Registry(told)
}

fn seat(name: &str, boot_no: u128, weight: u32, range: Option<Range>, state: SeatState) -> Seat {
    Seat {
        slave: id(name),
        boot: boot(boot_no),
        weight,
        range,
        state,
    }
}

/// A cut of "orders" with live seats of these weights.
fn cut(window: WindowNo, term: Term, seats: &[(&str, u128, u32)]) -> Cut {
    let weights: Vec<u32> = seats.iter().map(|(_, _, weight)| *weight).collect();
    let ranges = Range::RING.split_weighted(&weights);
    let seats = seats
        .iter()
        .zip(ranges)
        .map(|((name, boot, weight), range)| {
            let state = match range {
                Some(_) => SeatState::Live,
                None => SeatState::Empty,
            };
            seat(name, *boot, *weight, range, state)
        });
    Cut {
        service: service("orders"),
        window,
        term,
        seats: seats.collect(),
    }
}

fn store(cuts: &[Cut]) -> Order {
    Order::Registry(registry::Op::StoreCuts {
        cuts: cuts.to_vec(),
        keep: Duration::from_secs(180),
    })
}

fn acquire(floor: u64) -> Order {
    Order::Registry(registry::Op::Acquire {
        floor,
        ttl: Duration::from_secs(10),
    })
}

fn renew(number: u64) -> Order {
    Order::Registry(registry::Op::Renew {
        term: term(number),
        ttl: Duration::from_secs(10),
    })
}

fn release(number: u64) -> Order {
    Order::Registry(registry::Op::Release { term: term(number) })
}

/// The facts told in these orders.
fn facts(orders: &[Order]) -> Vec<Fact> {
    let fact = |order: &Order| match order {
        Order::Bus(bus::Op::Tell(event)) => Some(event.fact.clone()),
        Order::Bus(_) | Order::Registry(_) | Order::Stop(_) => None,
    };
    orders.iter().filter_map(fact).collect()
}

/// The cuts told in these orders.
fn cuts(orders: &[Order]) -> Vec<Cut> {
    let cut = |fact| {
        if let Fact::Cut { cut } = fact {
            Some(cut.open())
        } else {
            None
        }
    };
    facts(orders).into_iter().filter_map(cut).collect()
}
