//! How fast the simulated world runs, in facts handed to machines a second: it bounds how many
//! universes a nightly run sees.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use harness::{params::Params, world};

fn universes(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulation/facts");
    group.sample_size(10);
    for seed in [1, 2, 3] {
        let quiet = Params {
            faults: Vec::new(),
            ..Params::from_seed(seed)
        };
        for (name, params) in [("faults", Params::from_seed(seed)), ("quiet", quiet)] {
            let facts = world::run(params.clone(), None, false).facts;
            group.throughput(Throughput::Elements(facts));
            group.bench_with_input(BenchmarkId::new(name, seed), &params, |b, params| {
                b.iter(|| world::run(params.clone(), None, false).facts);
            });
        }
    }
    group.finish();
}

criterion_group!(benches, universes);
criterion_main!(benches);
