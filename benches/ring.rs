//! What the ring's coordinators cost: the master for 1, 16 and 256 slaves, a slave for 1, 100 and
//! 1,000 orchestrators. The machines alone: no bus, no JSON.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ring_benches::{CUT_AFTER, after, leader, slave, slave_beat, whole_ring};
use ring_core::{machine::Machine, master};

fn heartbeat(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring/master hears one heartbeat");
    for slaves in [1, 16, 256] {
        let (mut master, now) = (leader(slaves), after(CUT_AFTER - 1));
        let beat = slave_beat(slaves / 2, now);
        group.bench_function(BenchmarkId::from_parameter(slaves), |b| {
            b.iter_batched(
                || beat.clone(),
                |beat| {
                    let mut out = Vec::new();
                    master.handle(now, beat, &mut out);
                    out
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn master_cuts(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring/master cuts for slaves");
    for slaves in [1, 16, 256] {
        let master = leader(slaves);
        group.throughput(Throughput::Elements(u64::from(slaves)));
        group.bench_function(BenchmarkId::from_parameter(slaves), |b| {
            b.iter_batched_ref(
                || master.clone(),
                |master| {
                    let mut out = Vec::new();
                    master.handle(after(CUT_AFTER), master::Input::Woke, &mut out);
                    out
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn slave_cuts(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring/slave cuts for orchestrators");
    for orchestrators in [1, 100, 1_000] {
        let (slave, now) = (slave(orchestrators), after(0));
        group.throughput(Throughput::Elements(u64::from(orchestrators)));
        group.bench_function(BenchmarkId::from_parameter(orchestrators), |b| {
            b.iter_batched_ref(
                || (slave.clone(), Some(whole_ring())),
                |(slave, grant)| {
                    let mut out = Vec::new();
                    if let Some(grant) = grant.take() {
                        slave.handle(now, grant, &mut out);
                    }
                    out
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, heartbeat, master_cuts, slave_cuts);
criterion_main!(benches);
