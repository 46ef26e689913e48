//! Shared pieces of the benches: names, times and machines that stand where measuring starts.
//!
//! Decides only the surroundings of a measurement. Refuses to know what is measured in them.

use std::time::Duration;

use ring_core::{
    bus::{Op, ReplyTo, Told},
    id::{BootId, Cluster, NodeId, Nonce, Region, Scope, Service},
    machine::Machine,
    master::{self, Master},
    slave::{self, Slave},
    subject::{Place, Verb},
    time::{Mono, Now, Wall},
    timing::Timing,
    token::Range,
    window::{Grant, Term},
    wire::{
        Answer, Confirm, GrantWire, Load, Publication, Question, Register, SlaveBeat, Time, Who,
    },
};
use uuid::Uuid;

/// The start of a window of 60 s.
pub const START: Now = Now {
    wall: Wall(60_000 * 1_000),
    mono: Mono(5_000_000),
};

/// All questions come with the same chance.
const NONCE: Nonce = Nonce(Uuid::from_u128(77));

/// `START` and so many seconds.
#[must_use]
pub fn after(seconds: u64) -> Now {
    let by = Duration::from_secs(seconds);
    Now {
        wall: START.wall.plus(by),
        mono: START.mono.plus(by),
    }
}

/// The scope of all.
///
/// # Panics
/// Never: the names keep the rules.
#[must_use]
pub fn scope() -> Scope {
    Scope {
        region: Region::new("eu").expect("a region's name"),
        cluster: Cluster::new("main").expect("a cluster's name"),
    }
}

/// The service of all.
///
/// # Panics
/// Never: the name keeps the rule.
#[must_use]
pub fn service() -> Service {
    Service::new("orders").expect("a service's name")
}

/// The n-th node of a kind.
///
/// # Panics
/// When the kind is no name.
#[must_use]
pub fn who(kind: &str, n: u32) -> Who {
    Who {
        id: NodeId::new(format!("{kind}-{n}")).expect("a node's name"),
        boot: BootId(Uuid::from_u128(u128::from(n) + 1)),
    }
}

/// A request as the bus hands it over.
#[must_use]
pub fn asked(place: Place, question: Question) -> Told {
    Told::Asked {
        to: ReplyTo(1),
        place,
        question,
        chance: NONCE,
    }
}

/// The n-th slave's heartbeat at this moment: it counts three orchestrators.
#[must_use]
pub fn slave_beat(n: u32, now: Now) -> master::Input {
    let load = Load {
        service: service(),
        live: 3,
        sick: 0,
        backlog: 0,
        oldest_due_ms: 0,
    };
    let beat = SlaveBeat {
        who: who("slave", n),
        sent_at: Time(now.wall),
        term: None,
        loads: vec![load],
        granted: Vec::new(),
        clock_off: false,
    };
    let place = Place::Master(Verb::Heartbeat);
    master::Input::Bus(asked(place, Question::SlaveBeat(beat)))
}

/// When [`leader`]'s next window is due to be cut, in seconds after [`START`].
pub const CUT_AFTER: u64 = 30;

/// A leading master with so many slaves, a second before it cuts the next window.
#[must_use]
pub fn leader(slaves: u32) -> Master {
    let config = master::Config {
        scope: scope(),
        id: who("master", 0).id,
        boot: who("master", 0).boot,
        timing: Timing::default(),
        balance: master::Balance::Weighted,
        build: "bench".into(),
        alone: true,
    };
    let mut master = Master::new(config, 1);
    let mut out = Vec::new();
    master.handle(START, master::Input::Started, &mut out);
    // It leads after two heartbeats of listening.
    for second in 1..=10 {
        master.handle(after(second), master::Input::Woke, &mut out);
    }
    for n in 0..slaves {
        for (verb, question) in joining(who("slave", n), None) {
            let input = master::Input::Bus(asked(Place::Master(verb), question));
            master.handle(after(10), input, &mut out);
        }
    }
    for second in 11..CUT_AFTER {
        for n in 0..slaves {
            master.handle(after(second), slave_beat(n, after(second)), &mut out);
        }
        master.handle(after(second), master::Input::Woke, &mut out);
        out.clear();
    }
    master
}

/// Both phases of getting in.
fn joining(who: Who, service: Option<Service>) -> [(Verb, Question); 2] {
    let register = Register {
        who: who.clone(),
        service,
        build: "bench".into(),
    };
    let confirm = Confirm { who, nonce: NONCE };
    [
        (Verb::Register, Question::Register(register)),
        (Verb::Confirm, Question::Confirm(confirm)),
    ]
}

const TERM: Term = Term {
    number: 1,
    boot: BootId(Uuid::from_u128(1)),
};

/// A slave that a master let in, with so many orchestrators and nothing granted yet.
#[must_use]
pub fn slave(orchestrators: u32) -> Slave {
    let me = who("slave", 0);
    let config = slave::Config {
        scope: scope(),
        id: me.id.clone(),
        boot: me.boot,
        timing: Timing::default(),
        build: "bench".into(),
    };
    let mut slave = Slave::new(config, 7);
    let mut orders = told(&mut slave, slave::Input::Started);
    while let Some(ask) = orders.iter().find_map(asks) {
        let answer = Ok(welcome(&ask.1));
        let input = slave::Input::Bus(Told::Answered { ask: ask.0, answer });
        orders = told(&mut slave, input);
        if matches!(ask.1, Question::Register(_)) {
            let probe = ring_core::wire::Probe {
                boot: me.boot,
                nonce: NONCE,
            };
            let place = Place::SlaveWindows(me.id.clone());
            let body = Publication::Probe(probe);
            let input = slave::Input::Bus(Told::Published { place, body });
            orders.extend(told(&mut slave, input));
        }
    }
    for n in 0..orchestrators {
        for (verb, question) in joining(who("orch", n), Some(service())) {
            let place = Place::Slave(me.id.clone(), verb);
            drop(told(&mut slave, slave::Input::Bus(asked(place, question))));
        }
    }
    slave
}

fn told(slave: &mut Slave, input: slave::Input) -> Vec<slave::Order> {
    let mut out = Vec::new();
    slave.handle(START, input, &mut out);
    out
}

fn asks(order: &slave::Order) -> Option<(ring_core::bus::AskId, Question)> {
    if let slave::Order::Bus(Op::Ask { ask, question, .. }) = order {
        Some((*ask, question.clone()))
    } else {
        None
    }
}

/// What a master with nothing to grant answers.
fn welcome(question: &Question) -> Answer {
    let by = who("master", 0);
    if matches!(question, Question::Register(_)) {
        let term = Some(TERM);
        return Answer::Registered { by, term };
    }
    if matches!(question, Question::Confirm(_)) {
        let grants = Vec::new();
        return Answer::Confirmed { by, grants };
    }
    Answer::Heard {
        by,
        term: Some(TERM),
        now: Time(START.wall),
        grants: Vec::new(),
        hints: Vec::new(),
        moves: false,
    }
}

/// The whole ring for the window after [`START`], granted to [`slave()`].
#[must_use]
pub fn whole_ring() -> slave::Input {
    let me = who("slave", 0);
    let timing = Timing::default();
    let grant = Grant {
        service: service(),
        window: timing.window_at(START.wall).next(),
        range: Range::RING,
        term: TERM,
        holder: me.id.clone(),
        boot: me.boot,
        index: 0,
        members: 1,
        parent: None,
    };
    let body = Publication::Grant(GrantWire::new(&scope(), &timing, grant));
    let place = Place::SlaveWindows(me.id);
    slave::Input::Bus(Told::Published { place, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_cuts_the_next_window_for_every_slave() {
        let mut out = Vec::new();
        leader(16).handle(after(CUT_AFTER), master::Input::Woke, &mut out);
        let windows = out.iter().filter(|order| {
            matches!(order, master::Order::Bus(Op::Publish { body: Publication::Grant(g), .. })
                if g.starts_at.0 == after(60).wall)
        });
        assert_eq!(windows.count(), 16);
    }

    #[test]
    fn a_slave_cuts_its_slice_for_every_orchestrator() {
        let orders = told(&mut slave(100), whole_ring());
        let windows = orders.iter().filter(|order| {
            matches!(
                order,
                slave::Order::Bus(Op::Publish {
                    body: Publication::Grant(_),
                    ..
                })
            )
        });
        assert_eq!(windows.count(), 100);
    }
}
