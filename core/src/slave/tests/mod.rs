//! The slave, driven by hand: facts in, exact orders out.

mod clock;
mod cut;
mod generated;
mod life;
mod moves;

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::*;
use crate::{
    bus::AskError,
    joining::bench::{
        START, asked, boot, dressed, grant, leader, node, nonce, only, range, scope, service, term,
        who, windows,
    },
    subject::Verb,
    token::Range,
    wire::{
        Answer, Confirm, GrantWire, Health, Hint, Leave, OrchestratorBeat, Probe, Question,
        Refusal, Register, SlaveBeat, Time,
    },
};

struct Bench {
    slave: Slave,
    now: Now,
    /// Numbers requests to the slave.
    asked: u64,
}

impl Bench {
    fn fresh() -> Self {
        let config = Config {
            scope: scope(),
            id: node("s-1"),
            boot: boot(2),
            timing: Timing::default(),
            build: "1".into(),
        };
        Self {
            slave: Slave::new(config, 7),
            now: START,
            asked: 0,
        }
    }

    /// Accepted by the master of term 5; its first heartbeat is under way.
    fn joined() -> (Self, AskId) {
        let mut it = Self::fresh();
        let (ask, ..) = only(&it.ops(Input::Started));
        it.answer(ask, Ok(registered(5)));
        let (ask, ..) = only(&it.publish(Publication::Probe(probe(2))));
        let (beat, ..) = only(&it.answer(ask, Ok(confirmed(vec![]))));
        (it, beat)
    }

    /// The same with these orchestrators of `orders`, in boots from 10 up, and no heartbeat under
    /// way.
    fn with(ids: &[&str]) -> Self {
        let (mut it, beat) = Self::joined();
        it.answer(beat, Ok(heard(5, it.now, vec![])));
        for (id, n) in ids.iter().zip(10..) {
            it.enter(id, n, "orders");
        }
        it
    }

    /// An orchestrator gets in.
    fn enter(&mut self, id: &str, n: u128, name: &str) -> Answer {
        let register = Question::Register(Register {
            who: who(id, n),
            service: Some(service(name)),
            build: "1".into(),
        });
        self.ask(Verb::Register, register);
        let confirm = Confirm {
            who: who(id, n),
            nonce: nonce(77),
        };
        let (ops, answer) = self.ask(Verb::Confirm, Question::Confirm(confirm));
        // The first of a service is told to the master at once.
        for (ask, ..) in asked(&ops) {
            self.answer(ask, Ok(heard(5, self.now, vec![])));
        }
        answer
    }

    fn handle(&mut self, input: Input) -> Vec<Order> {
        let mut out = Vec::new();
        self.slave.handle(self.now, input, &mut out);
        out
    }

    fn ops(&mut self, input: Input) -> Vec<Op> {
        self.handle(input)
            .into_iter()
            .map(|order| match order {
                Order::Bus(op) => op,
                Order::Stop(end) => panic!("stopped: {end:?}"),
            })
            .collect()
    }

    fn tell(&mut self, told: Told) -> Vec<Op> {
        self.ops(Input::Bus(told))
    }

    fn publish(&mut self, body: Publication) -> Vec<Op> {
        let place = Place::SlaveWindows(node("s-1"));
        self.tell(Told::Published { place, body })
    }

    fn grant(&mut self, grant: Grant) -> Vec<Op> {
        self.publish(Publication::Grant(dressed(grant)))
    }

    fn answer(&mut self, ask: AskId, answer: Result<Answer, AskError>) -> Vec<Op> {
        self.tell(Told::Answered { ask, answer })
    }

    /// Asks the slave: other orders, and its answer.
    fn ask(&mut self, verb: Verb, question: Question) -> (Vec<Op>, Answer) {
        self.asked += 1;
        let to = crate::bus::ReplyTo(self.asked);
        let place = Place::Slave(node("s-1"), verb);
        let told = Told::Asked {
            to,
            place,
            question,
            chance: nonce(77),
        };
        let mut answers = Vec::new();
        let mut others = Vec::new();
        for order in self.handle(Input::Bus(told)) {
            match order {
                Order::Bus(Op::Answer { to: whom, answer }) => {
                    assert_eq!(whom, to);
                    answers.push(answer);
                }
                Order::Bus(op) => others.push(op),
                Order::Stop(_) => {}
            }
        }
        assert_eq!(answers.len(), 1, "one answer a question");
        (others, answers.remove(0))
    }

    fn beat(&mut self, id: &str, n: u128) -> Answer {
        self.beat_with(id, n, Health::default(), 0)
    }

    fn beat_with(&mut self, id: &str, n: u128, health: Health, offset_ms: i64) -> Answer {
        let beat = Question::OrchestratorBeat(OrchestratorBeat {
            who: who(id, n),
            service: service("orders"),
            sent_at: Time(crate::time::Wall(self.now.wall.0 + offset_ms)),
            health,
        });
        self.ask(Verb::Heartbeat, beat).1
    }

    fn pass(&mut self, ms: u64) -> Vec<Op> {
        self.now.mono = self.now.mono.plus(Duration::from_millis(ms));
        self.now.wall = self.now.wall.plus(Duration::from_millis(ms));
        self.ops(Input::Woke)
    }

    /// The next heartbeat to the master.
    fn master_beat(&mut self) -> (AskId, SlaveBeat) {
        for _ in 0..6 {
            let ops = self.pass(1_000);
            for (ask, place, question) in asked(&ops) {
                if let Question::SlaveBeat(beat) = question {
                    assert_eq!(place, Place::Master(Verb::Heartbeat));
                    return (ask, beat);
                }
            }
        }
        panic!("no heartbeat in six seconds")
    }
}

fn probe(n: u128) -> Probe {
    Probe {
        boot: boot(n),
        nonce: nonce(1),
    }
}

fn registered(number: u64) -> Answer {
    Answer::Registered {
        by: leader(number),
        term: Some(term(number)),
    }
}

fn confirmed(grants: Vec<GrantWire>) -> Answer {
    Answer::Confirmed {
        by: leader(5),
        grants,
    }
}

fn heard(number: u64, now: Now, grants: Vec<GrantWire>) -> Answer {
    Answer::Heard {
        by: leader(number),
        term: Some(term(number)),
        now: Time(now.wall),
        grants,
        hints: vec![],
        moves: false,
    }
}

fn hinting(now: Now, count: u32) -> Answer {
    Answer::Heard {
        by: leader(5),
        term: Some(term(5)),
        now: Time(now.wall),
        grants: vec![],
        hints: vec![Hint {
            service: service("orders"),
            count,
        }],
        moves: false,
    }
}

fn refused(answer: &Answer) -> Option<Refusal> {
    if let Answer::Refused { reason, .. } = answer {
        Some(*reason)
    } else {
        None
    }
}

/// Sub-grants published: holder, window, range.
fn published(ops: &[Op]) -> Vec<(NodeId, u64, Range)> {
    let grants = ops.iter().filter_map(|op| {
        let Op::Publish {
            place: Place::OrchWindows(id),
            body: Publication::Grant(wire),
        } = op
        else {
            return None;
        };
        assert_eq!(*id, wire.holder);
        Some((id.clone(), wire.window.0, wire.range))
    });
    grants.collect()
}

/// Holders, windows and ranges in an answer.
fn grants_in(answer: &Answer) -> Vec<(u64, Range)> {
    let (Answer::Heard { grants, .. }
    | Answer::Confirmed { grants, .. }
    | Answer::Grants { grants }) = answer
    else {
        panic!("no grants in {answer:?}")
    };
    grants.iter().map(|g| (g.window.0, g.range)).collect()
}
