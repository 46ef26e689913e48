//! The orchestrator, driven by hand: facts in, exact orders out.

mod generated;
mod search;
mod window;

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::*;
use crate::{
    bus::AskError,
    joining::bench::{
        START, asked, boot, dressed, node, nonce, only, range, scope, service, sub, term, who,
        windows,
    },
    subject::Verb,
    token::Range,
    wire::{
        Answer, Assign, GrantWire, Leave, OrchestratorBeat, Probe, Question, Refusal, Register,
        Time,
    },
};

struct Bench {
    it: Orchestrator,
    now: Now,
}

impl Bench {
    fn fresh() -> Self {
        let config = Config {
            scope: scope(),
            id: node("o-1"),
            service: service("orders"),
            boot: boot(3),
            timing: Timing::default(),
            build: "1".into(),
        };
        Self {
            it: Orchestrator::new(config, 7),
            now: START,
        }
    }

    /// Assigned to slave `s-1`; has asked to register.
    fn assigned() -> (Self, AskId) {
        let mut bench = Self::fresh();
        let (ask, ..) = only(&bench.ops(Input::Started));
        let (register, ..) = only(&bench.answer(ask, Ok(assigned("s-1"))));
        (bench, register)
    }

    /// In at `s-1`, its first heartbeat answered.
    fn joined() -> Self {
        let (mut bench, register) = Self::assigned();
        bench.enter("s-1", register, vec![]);
        bench
    }

    /// From the request to register on: probe, confirmation, first heartbeat.
    fn enter(&mut self, slave: &str, register: AskId, grants: Vec<GrantWire>) {
        let by = who(slave, 2);
        let registered = Answer::Registered {
            by: by.clone(),
            term: None,
        };
        self.answer(register, Ok(registered));
        let (confirm, ..) = only(&self.probe());
        let (beat, ..) = only(&self.answer(confirm, Ok(Answer::Confirmed { by, grants })));
        self.answer(beat, Ok(heard(vec![], false)));
    }

    fn handle(&mut self, input: Input) -> Vec<Order> {
        let mut out = Vec::new();
        self.it.handle(self.now, input, &mut out);
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
        let place = Place::OrchWindows(node("o-1"));
        self.tell(Told::Published { place, body })
    }

    fn probe(&mut self) -> Vec<Op> {
        let probe = Probe {
            boot: boot(3),
            nonce: nonce(77),
        };
        self.publish(Publication::Probe(probe))
    }

    fn grant(&mut self, grant: Grant) {
        assert_eq!(self.publish(Publication::Grant(dressed(grant))), vec![]);
    }

    fn answer(&mut self, ask: AskId, answer: Result<Answer, AskError>) -> Vec<Op> {
        self.tell(Told::Answered { ask, answer })
    }

    fn pass(&mut self, ms: u64) -> Vec<Op> {
        self.now.mono = self.now.mono.plus(Duration::from_millis(ms));
        self.now.wall = self.now.wall.plus(Duration::from_millis(ms));
        self.ops(Input::Woke)
    }

    /// Waits for the next request for which this holds; others stay unanswered.
    fn until(&mut self, wanted: impl Fn(&Question) -> bool) -> (AskId, Place, Question) {
        for _ in 0..160 {
            let found = asked(&self.pass(100)).into_iter().find(|(.., q)| wanted(q));
            if let Some(found) = found {
                return found;
            }
        }
        panic!("not asked in 16 seconds")
    }

    fn beat(&mut self) -> (AskId, OrchestratorBeat) {
        let (ask, _, question) = self.until(|q| matches!(q, Question::OrchestratorBeat(_)));
        let Question::OrchestratorBeat(beat) = question else {
            panic!("{question:?}")
        };
        (ask, beat)
    }
}

fn me() -> Who {
    who("o-1", 3)
}

fn assigned(slave: &str) -> Answer {
    Answer::Assigned {
        slave: node(slave),
        term: term(5),
    }
}

fn heard(grants: Vec<GrantWire>, moves: bool) -> Answer {
    Answer::Heard {
        by: who("s-1", 2),
        term: None,
        now: Time(START.wall),
        grants,
        hints: vec![],
        moves,
    }
}

fn no(reason: Refusal) -> Answer {
    Answer::Refused {
        reason,
        retry_after_ms: 0,
    }
}

/// A grant of slave `s-1`.
fn of_s1(n: u64, part: Range) -> Grant {
    sub(&who("s-1", 2), &me(), n, part)
}

fn excluded(question: &Question) -> Vec<NodeId> {
    let Question::Assign(assign) = question else {
        panic!("{question:?}")
    };
    assign.exclude.clone()
}

fn is_assign(question: &Question) -> bool {
    matches!(question, Question::Assign(_))
}

fn is_register(question: &Question) -> bool {
    matches!(question, Question::Register(_))
}
