//! What deciding costs: one transaction of three steps from claim to end, in the machine alone.
//! What storing it costs beside that is told by the bench `durable`.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use ring_benches::START;
use ring_core::{
    id::{Nonce, RegionCode, SagaName, StepName, TransactionId},
    machine::Machine,
    saga::{Class, Input, Order, Outcome, Payload, Plan, PlannedStep, Text, Transaction},
    store::{Capability, Fence, Start, Written},
    token::Token,
};
use uuid::Uuid;

/// A plan of three steps and a start of it.
fn fixture() -> (Arc<Plan>, Start) {
    let saga = SagaName::new("bench").expect("a saga's name");
    let runs = Capability {
        saga: saga.clone(),
        version: 1,
        digest: "d".into(),
    };
    let step = |name| PlannedStep::new(StepName::new(name).expect("a step's name"));
    let plan = Plan::new(runs, ["a", "b", "c"].map(step).into()).expect("a plan");
    let start = Start {
        id: TransactionId::compose(START.wall, RegionCode::default(), 42),
        token: Token(0),
        saga,
        version: 1,
        digest: "d".into(),
        key: "k".into(),
        input: Payload::null(),
        lifetime: Duration::from_secs(600),
        claim: None,
    };
    (Arc::new(plan), start)
}

fn started(plan: &Arc<Plan>, start: &Start) -> Transaction {
    let fence = Fence {
        epoch: 1,
        nonce: Nonce(Uuid::from_u128(1)),
    };
    Transaction::started(Arc::clone(plan), start, fence, START)
}

/// Drives it to its end; the number of orders. Calls from this one on are refused.
fn live(machine: &mut Transaction, refused: u32) -> usize {
    let (mut out, mut count) = (Vec::new(), 0);
    let mut input = Input::Claimed;
    loop {
        machine.handle(START, input, &mut out);
        let order = out.pop();
        count += 1;
        input = match order {
            Some(Order::Call(call)) => Input::Returned {
                call: call.call,
                outcome: if call.call == refused {
                    Outcome::Failed {
                        class: Class::Business,
                        error: Text::new("declined"),
                        retry_after: None,
                    }
                } else {
                    Outcome::Done(Payload::null())
                },
            },
            Some(Order::Write(write)) => Input::Written {
                number: write.number,
                answer: Written::Done { wake_seq: 0 },
            },
            Some(Order::Stop(_) | Order::Hear | Order::Abandon { .. }) | None => return count,
        };
        out.clear();
    }
}

fn life(c: &mut Criterion) {
    let (plan, start) = fixture();
    let mut group = c.benchmark_group("saga/life of three steps");
    for (name, refused) in [("completed", 0), ("last step refused, compensated", 3)] {
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_batched_ref(
                || started(&plan, &start),
                |machine| live(black_box(machine), refused),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, life);
criterion_main!(benches);
