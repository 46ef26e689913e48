//! Durable sagas a second on a real Postgres that syncs: the engine beside a ceiling, in one run.
//!
//! The ceiling is a program that only writes the least that any engine must, group-committed.
//! Rounds alternate, each on a fresh database, and the medians make the ratio. Decides what is
//! compared and what is printed; see `README.md` for how to read it.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod ceiling;
mod cost;
mod drain;
mod engine;
mod measure;

use std::error::Error;

use ring_local::{Durability, Set, SetOptions, Settings, TestDatabase};

use crate::{
    cost::Cost,
    measure::{Round, median},
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Rounds of each program; the median counts, least and most are printed.
const ROUNDS: usize = 3;

/// Transactions in flight: what a small service has, and an engine's default capacity.
const IN_FLIGHT: [usize; 2] = [64, 512];

/// The share of the ceiling that the engine is to reach.
const GOAL: f64 = 0.4;

/// Rounds of one program on an idle machine differ less than this.
const UNSTEADY: f64 = 1.5;

/// What is measured side by side.
#[derive(Clone, Copy, Debug)]
enum Program {
    /// Three durable waits a saga: the first step's record goes with the insert.
    Ceiling,
    /// Four, as the engine: an intent is durable before its step runs.
    CeilingWithIntents,
    /// `orchestrator-lib`.
    Engine,
}

fn main() -> Outcome<()> {
    // `cargo test --benches` and test runners start it without: nothing to do for them.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run())
}

async fn run() -> Outcome<()> {
    let options = SetOptions {
        durability: Durability::Safe,
        ..SetOptions::default()
    };
    let set = Set::start(&Settings::from_env(), &options).await?;
    let pid = set.addresses().postgres_pid;
    println!(
        "a saga = 3 no-op steps; Postgres with fsync; median of {ROUNDS} rounds (least..most)"
    );
    for in_flight in IN_FLIGHT {
        println!("\n{in_flight} in flight");
        compare(&set, pid, in_flight).await?;
        drain(&set, pid, in_flight).await?;
    }
    set.stop().await?;
    Ok(())
}

async fn compare(set: &Set, postgres: u32, in_flight: usize) -> Outcome<()> {
    let programs = [
        Program::Ceiling,
        Program::CeilingWithIntents,
        Program::Engine,
    ];
    let mut rounds: [Vec<(Round, Cost)>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (program, rounds) in programs.iter().zip(&mut rounds) {
            if !program.wanted() {
                continue;
            }
            let database = TestDatabase::create(set.addresses()).await?;
            let before = Cost::so_far(postgres, database.url()).await?;
            let round = program.run(database.url(), in_flight).await?;
            let cost = Cost::so_far(postgres, database.url()).await?.since(&before);
            rounds.push((round, cost));
            database.close().await?;
        }
    }
    let rates = rounds.each_ref().map(|rounds| {
        let mut rates: Vec<f64> = rounds.iter().map(|(round, _)| round.rate()).collect();
        median(&mut rates)
    });
    for ((program, rounds), rate) in programs.iter().zip(&rounds).zip(rates) {
        print(program.name(), rounds, rate);
    }
    let [ceiling, with_intents, engine] = rates;
    println!(
        "  the engine reaches {:.1} % of the ceiling (goal {:.0} %), {:.1} % of it with intents",
        100.0 * engine / ceiling,
        100.0 * GOAL,
        100.0 * engine / with_intents,
    );
    let [ceiling, with_intents, engine] = rounds.each_ref().map(|rounds| {
        let mut cpu: Vec<f64> = rounds.iter().map(|(r, cost)| cost.micros(r.all)).collect();
        median(&mut cpu)
    });
    println!(
        "  by processor time alone: {:.1} % of the ceiling, {:.1} % of it with intents",
        100.0 * ceiling / engine,
        100.0 * with_intents / engine,
    );
    Ok(())
}

/// What an outage left goes on: the time of the work, whatever the backoff.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
async fn drain(set: &Set, postgres: u32, in_flight: usize) -> Outcome<()> {
    println!("  drain of {} paused ones", drain::PAUSED);
    let programs = [Program::Ceiling, Program::Engine];
    let mut rates: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (program, rates) in programs.iter().zip(&mut rates) {
            if !program.wanted() {
                continue;
            }
            let database = TestDatabase::create(set.addresses()).await?;
            let before = Cost::so_far(postgres, database.url()).await?;
            let took = program.drain(database.url(), in_flight).await?;
            let cost = Cost::so_far(postgres, database.url()).await?.since(&before);
            rates.push(drain::PAUSED as f64 / took.as_secs_f64());
            println!(
                "    {:<20} {:>7.3} s; with what came before it: {}",
                program.name(),
                took.as_secs_f64(),
                cost.of_one(drain::PAUSED)
            );
            database.close().await?;
        }
    }
    let [ceiling, engine] = rates.each_mut().map(|rates| median(rates));
    println!(
        "    {engine:.0} sagas/s, {:.1} % of the ceiling's {ceiling:.0} (goal {:.0} %)",
        100.0 * engine / ceiling,
        100.0 * GOAL,
    );
    Ok(())
}

fn print(name: &str, rounds: &[(Round, Cost)], rate: f64) {
    let rates = rounds.iter().map(|(round, _)| round.rate());
    let least = rates.clone().fold(f64::INFINITY, f64::min);
    let most = rates.fold(0.0, f64::max);
    // The figures beside the rate are the median round's.
    let Some((round, cost)) = rounds.iter().find(|(round, _)| round.rate() >= rate) else {
        return;
    };
    println!(
        "  {name:<22} {rate:>7.0} sagas/s ({least:.0}..{most:.0})  p50 {:>5.1} ms  p99 {:>5.1} ms",
        round.percentile_ms(50),
        round.percentile_ms(99),
    );
    println!("  {:<22} a saga: {}", "", cost.of_one(round.all));
    if most > UNSTEADY * least {
        println!(
            "  {:<22} unsteady: something else ran; the ratio by processor time moves less",
            ""
        );
    }
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Ceiling => "ceiling",
            Self::CeilingWithIntents => "ceiling with intents",
            Self::Engine => "engine",
        }
    }

    /// Words on the command line choose programs; without one all take part.
    fn wanted(self) -> bool {
        let words: Vec<String> = std::env::args()
            .skip(1)
            .filter(|arg| !arg.starts_with('-'))
            .collect();
        words.is_empty() || words.iter().any(|word| word == self.name())
    }

    async fn drain(self, url: &str, in_flight: usize) -> Outcome<std::time::Duration> {
        match self {
            Self::Ceiling | Self::CeilingWithIntents => {
                ceiling::drain(url, drain::PAUSED, in_flight).await
            }
            Self::Engine => drain::engine(url, in_flight).await,
        }
    }

    async fn run(self, url: &str, in_flight: usize) -> Outcome<Round> {
        match self {
            Self::Ceiling => ceiling::run(url, in_flight, false).await,
            Self::CeilingWithIntents => ceiling::run(url, in_flight, true).await,
            Self::Engine => engine::run(url, in_flight).await,
        }
    }
}
