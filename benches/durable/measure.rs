//! The closed loop: so many callers, each of which starts a saga when its last one ended.
//!
//! Decides what counts: ends within the measured time, after a warm-up. Knows no program.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench measures real time, finer than the house's clock"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use crate::Outcome;

/// Plans are made, pages and connections are warm after this.
const WARM_UP: Duration = Duration::from_secs(1);

/// Long enough for tens of thousands of sagas, short enough for many rounds.
const MEASURED: Duration = Duration::from_secs(3);

/// What one round gave.
#[derive(Debug)]
pub(crate) struct Round {
    /// From start to known end, sorted; of sagas that ended in the measured time.
    latencies: Vec<Duration>,
    /// All sagas of the round, warm-up included: what its costs are divided by.
    pub(crate) all: usize,
}

/// A program that runs one saga from start to known end.
pub(crate) trait Runs: Send + Sync + 'static {
    /// The `number`-th saga of this round.
    fn one(&self, number: u64) -> impl Future<Output = Outcome<()>> + Send;
}

/// Runs sagas for the warm-up and the measured time.
pub(crate) async fn closed_loop(program: Arc<impl Runs>, in_flight: usize) -> Outcome<Round> {
    let from = Instant::now() + WARM_UP;
    let until = from + MEASURED;
    let mut callers = JoinSet::new();
    for caller in 0..in_flight {
        let program = Arc::clone(&program);
        callers.spawn(async move {
            let (mut latencies, mut all) = (Vec::new(), 0);
            // Numbers of one caller never meet another's.
            let mut number = u64::try_from(caller)? << 32;
            loop {
                let started = Instant::now();
                if started >= until {
                    return Outcome::Ok((latencies, all));
                }
                program.one(number).await?;
                let ended = Instant::now();
                number += 1;
                all += 1;
                if (from..until).contains(&ended) {
                    latencies.push(ended - started);
                }
            }
        });
    }
    let mut round = Round {
        latencies: Vec::new(),
        all: 0,
    };
    while let Some(caller) = callers.join_next().await {
        let (latencies, all) = caller??;
        round.latencies.extend(latencies);
        round.all += all;
    }
    round.latencies.sort_unstable();
    Ok(round)
}

impl Round {
    /// Sagas a second.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / MEASURED.as_secs_f64()
    }

    /// Milliseconds that so many per cent of the sagas took at most.
    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        let rank = (self.latencies.len() * percent).div_ceil(100);
        let found = self.latencies.get(rank.saturating_sub(1));
        found.map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// The middle one of an odd number.
pub(crate) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
