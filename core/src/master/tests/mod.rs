//! The machine, told facts and asked for its exact orders.
//!
//! Every test goes through [`Bench`]: it keeps the clocks, tells the master facts and compares what
//! it orders. Windows are 60 s long, heartbeats 5 s apart, as by default; window 1000 has just begun.

mod asked;
mod assign;
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

struct Bench {
    master: Master,
    now: Now,
    replies: u64,
}

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

impl Bench {
    fn new(config: Config) -> Self {
        Self {
            master: Master::new(config, 1),
            now: Now {
                wall: Wall(60_000 * 1000),
                mono: Mono(5_000_000),
            },
            replies: 0,
        }
    }

    /// A standby that runs.
    fn standby() -> Self {
        let mut bench = Self::new(config());
        bench.does(Input::Started);
        bench
    }

    /// A leader under term 1 that found nothing stored.
    fn leader() -> Self {
        Self::leader_of(config())
    }

    fn leader_of(config: Config) -> Self {
        let alone = config.alone;
        let mut bench = Self::new(config);
        bench.does(Input::Started);
        bench.listen();
        if !alone {
            bench.does(bench.mine(1));
            bench.does(bench.loaded(vec![]));
        }
        assert_eq!(bench.master.leading(), Some(term(1)));
        bench
    }

    /// Two heartbeat intervals, so that it competes.
    fn listen(&mut self) -> Vec<Order> {
        self.pass(10)
    }

    fn does(&mut self, input: Input) -> Vec<Order> {
        let mut out = Vec::new();
        self.master.handle(self.now, input, &mut out);
        out
    }

    /// The one place that compares orders.
    #[track_caller]
    fn check(&mut self, input: Input, expected: &[Order]) {
        assert_eq!(self.does(input), expected);
    }

    fn advance(&mut self, by: Duration) {
        self.now.wall = self.now.wall.plus(by);
        self.now.mono = self.now.mono.plus(by);
    }

    /// Lets seconds pass, woken each second as the shell does.
    fn pass(&mut self, seconds: u64) -> Vec<Order> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.advance(Duration::from_secs(1));
            all.extend(self.does(Input::Woke));
        }
        all
    }

    /// Lets seconds pass while these slaves send heartbeats and the registry does what it is told.
    fn live(&mut self, seconds: u64, slaves: &[(&str, u128, u32)]) -> Vec<Order> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.advance(Duration::from_secs(1));
            for (name, boot, live) in slaves {
                let loads = vec![load("orders", *live, 0)];
                all.extend(self.beat(name, *boot, loads));
            }
            let mut next = self.does(Input::Woke);
            while !next.is_empty() {
                let answers = self.obey(&next);
                all.append(&mut next);
                for answer in answers {
                    next.extend(self.does(answer));
                }
            }
        }
        all
    }

    /// A registry that holds nothing else and answers at once.
    fn obey(&self, orders: &[Order]) -> Vec<Input> {
        let answer = |order: &Order| match order {
            Order::Registry(registry::Op::Renew { term, .. }) => Some(registry::Told::Mine {
                term: *term,
                clock: self.now.wall,
            }),
            Order::Registry(registry::Op::StoreCuts { cuts, .. }) => {
                Some(registry::Told::Stored { cuts: cuts.clone() })
            }
            Order::Registry(op) => panic!("{op:?} is not expected here"),
            Order::Bus(_) | Order::Stop(_) => None,
        };
        orders.iter().filter_map(answer).map(told).collect()
    }

    fn mine(&self, number: u64) -> Input {
        told(registry::Told::Mine {
            term: term(number),
            clock: self.now.wall,
        })
    }

    fn theirs(&self, number: u64) -> Input {
        told(registry::Told::Theirs {
            holder: id("m-2"),
            term: foreign_term(number),
            left: Duration::from_secs(10),
            clock: self.now.wall,
        })
    }

    fn loaded(&self, cuts: Vec<Cut>) -> Input {
        let current = self.master.current(self.now);
        told(registry::Told::Loaded {
            windows: vec![current, current.next()],
            cuts,
        })
    }

    fn ask(&mut self, place: Place, question: Question) -> (ReplyTo, Vec<Order>) {
        self.replies += 1;
        let to = ReplyTo(self.replies);
        let orders = self.does(Input::Bus(Told::Asked {
            to,
            place,
            question,
            chance: Nonce(Uuid::from_u128(u128::from(self.replies))),
        }));
        (to, orders)
    }

    /// The answer to a question, and whatever else was ordered.
    #[track_caller]
    fn asked(&mut self, place: Place, question: Question) -> (Answer, Vec<Order>) {
        let (mine, mut orders) = self.ask(place, question);
        let at = orders.iter().position(
            |order| matches!(order, Order::Bus(bus::Op::Answer { to, .. }) if *to == mine),
        );
        match orders.remove(at.expect("an answer")) {
            Order::Bus(bus::Op::Answer { answer, .. }) => (answer, orders),
            other => panic!("{other:?}"),
        }
    }

    fn question(&self, name: &str, boot_no: u128, loads: Vec<Load>) -> SlaveBeat {
        SlaveBeat {
            who: who(name, boot_no),
            sent_at: Time(self.now.wall),
            term: None,
            loads,
            granted: vec![],
            clock_off: false,
        }
    }

    /// A slave's heartbeat; what was ordered beside the answer.
    fn beat(&mut self, name: &str, boot_no: u128, loads: Vec<Load>) -> Vec<Order> {
        let beat = self.question(name, boot_no, loads);
        self.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat))
            .1
    }

    fn overhear(&mut self, beat: SlaveBeat) -> Vec<Order> {
        self.does(Input::Bus(Told::Overheard {
            place: Place::Master(Verb::Heartbeat),
            question: Question::SlaveBeat(beat),
        }))
    }

    fn register(&mut self, name: &str, boot_no: u128) -> Answer {
        let register = Register {
            who: who(name, boot_no),
            service: None,
            build: "1".into(),
        };
        self.asked(Place::Master(Verb::Register), Question::Register(register))
            .0
    }

    /// Both phases of joining.
    #[track_caller]
    fn join(&mut self, name: &str, boot_no: u128) -> Vec<Order> {
        let register = Register {
            who: who(name, boot_no),
            service: None,
            build: "1".into(),
        };
        let (_, orders) = self.asked(Place::Master(Verb::Register), Question::Register(register));
        let nonce = orders.iter().find_map(|order| match order {
            Order::Bus(bus::Op::Publish {
                body: Publication::Probe(probe),
                ..
            }) => Some(probe.nonce),
            _ => None,
        });
        let confirm = Confirm {
            who: who(name, boot_no),
            nonce: nonce.expect("a probe"),
        };
        let (answer, orders) = self.asked(Place::Master(Verb::Confirm), Question::Confirm(confirm));
        assert!(matches!(answer, Answer::Confirmed { .. }), "{answer:?}");
        orders
    }

    fn event(&self, fact: Fact) -> Order {
        let by = Author {
            role: Role::Master,
            id: id("m-1"),
            boot: boot(ME),
        };
        Order::Bus(bus::Op::Tell(Event::new(self.now.wall, by, fact)))
    }

    fn foreign_event(&self, fact: Fact) -> Input {
        let by = Author {
            role: Role::Master,
            id: id("m-2"),
            boot: boot(ME + 1),
        };
        Input::Bus(Told::Event(Event::new(self.now.wall, by, fact)))
    }

    fn cut_event(&self, cut: &Cut) -> Order {
        let cut = CutWire::new(&Timing::default(), cut);
        self.event(Fact::Cut { cut })
    }

    /// A grant of a cut as published by this master.
    fn grant(&self, cut: &Cut, index: usize) -> GrantWire {
        let seat = &cut.seats[index];
        let grant = Grant {
            service: cut.service.clone(),
            window: cut.window,
            range: seat.range.unwrap(),
            term: self.master.leading().unwrap(),
            holder: seat.slave.clone(),
            boot: seat.boot,
            index: u32::try_from(index).unwrap(),
            members: u32::try_from(cut.seats.len()).unwrap(),
            parent: None,
        };
        GrantWire::new(&config().scope, &Timing::default(), grant)
    }

    fn publication(&self, cut: &Cut, index: usize) -> Order {
        Order::Bus(bus::Op::Publish {
            place: Place::SlaveWindows(cut.seats[index].slave.clone()),
            body: Publication::Grant(self.grant(cut, index)),
        })
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
    let cut = |fact| match fact {
        Fact::Cut { cut } => Some(cut.open()),
        _ => None,
    };
    facts(orders).into_iter().filter_map(cut).collect()
}
