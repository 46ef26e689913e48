//! What a token costs: hashing an id, cutting the ring equally and by weight.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ring_core::{
    id::{RegionCode, TransactionId},
    time::Wall,
    token::Range,
};
use ring_shell::token::token_of;

fn hash(c: &mut Criterion) {
    let id = TransactionId::compose(Wall(1_796_076_579_123), RegionCode::default(), 42);
    c.bench_function("token/hash", |b| b.iter(|| token_of(black_box(id))));
}

fn split(c: &mut Criterion) {
    let mut group = c.benchmark_group("token/split");
    for parts in [1_u32, 16, 256, 1_000] {
        let count = usize::try_from(parts).unwrap_or_default();
        let weights: Vec<u32> = (1..=parts).collect();
        group.throughput(Throughput::Elements(u64::from(parts)));
        group.bench_with_input(BenchmarkId::new("equal", parts), &count, |b, count| {
            b.iter(|| Range::RING.split(black_box(*count)));
        });
        group.bench_with_input(BenchmarkId::new("weighted", parts), &weights, |b, w| {
            b.iter(|| Range::RING.split_weighted(black_box(w)));
        });
    }
    group.finish();
}

criterion_group!(benches, hash, split);
criterion_main!(benches);
