//! The only loop: wait for one thing, read the clock once, let the machine decide, perform its
//! orders in order.
//!
//! Decides what is waited for and when the loop ends. Knows no role: a role brings its machine and
//! a [`Perform`] that knows the machine's words and, beside the bus, its other ports.

use std::{future::Future, ops::ControlFlow, time::Duration};

use ring_core::{
    bus::{Op, Told},
    machine::{End, Machine},
    time::{Mono, Now},
};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    bus::{Bus, Options, OptionsError},
    clock,
    tasks::{Spawner, Tasks},
    telemetry::{Meter, STALLS},
};

/// A machine is asked at least this often, so that steps of the wall clock are seen.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A wake later than this is counted: the runtime was blocked, or the process paused.
const STALL: Duration = Duration::from_secs(1);

/// Why a role ended although it was not asked to.
#[derive(Debug, Error)]
pub enum DriveError {
    /// A background task panicked.
    #[error("a background task panicked; the log has it")]
    Broken,
    /// The bus can't be connected with these options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The bus can't be used as it is.
    #[error("{0}")]
    Bus(String),
    /// The reader of a port ended by itself.
    #[error("the bus ended by itself")]
    Ended,
}

/// What a machine's order is to the loop.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart where it is made")]
pub enum Step {
    /// An order to the bus: performed at once, in line.
    Bus(Op),
    /// The machine has ended.
    Stop(End),
    /// Already performed, or handed to a bounded queue; its answer comes by `completed`.
    Done,
}

/// How a role's machine is spoken to, and its ports beside the bus.
pub trait Perform {
    /// The machine.
    type Machine: Machine;

    /// "You run now."
    fn started(&self) -> <Self::Machine as Machine>::Input;
    /// "Time has passed."
    fn woke(&self) -> <Self::Machine as Machine>::Input;
    /// "You were asked to leave."
    fn drained(&self) -> <Self::Machine as Machine>::Input;
    /// "The bus told this."
    fn told(&self, told: Told) -> <Self::Machine as Machine>::Input;

    /// Performs an order of a port beside the bus, without waiting; names the others.
    fn perform(&mut self, order: <Self::Machine as Machine>::Order) -> Step;

    /// The next answer of a port beside the bus. Must lose nothing when dropped half-way, as the
    /// receiver of a channel does.
    fn completed(&mut self) -> impl Future<Output = <Self::Machine as Machine>::Input> + Send {
        std::future::pending()
    }

    /// Looks at the machine after each input: the place to publish a snapshot for health, status
    /// and metrics.
    fn observe(&mut self, _machine: &Self::Machine, _now: Now) {}
}

/// The edges of one drive.
#[derive(Debug)]
pub struct Edges {
    /// Where orders to the bus go.
    pub bus: Bus,
    /// What the bus tells.
    pub told: mpsc::Receiver<Told>,
    /// The role's background tasks.
    pub tasks: Spawner,
    /// Asks the role to leave.
    pub shutdown: CancellationToken,
    /// How long leaving may take; afterwards the loop ends anyway.
    pub grace: Duration,
    /// Counts.
    pub meter: Meter,
}

enum Woken<I> {
    Input(I),
    Deadline,
    Asked,
    GraceOver,
    Failed(DriveError),
}

/// A role from start to end: connects, drives, and closes the connection last, whatever happened.
///
/// # Errors
/// [`DriveError`] when the role ended although nobody asked it to.
pub async fn run<P: Perform>(
    machine: P::Machine,
    mut performer: P,
    options: Options,
    tasks: Tasks,
    shutdown: CancellationToken,
    grace: Duration,
) -> Result<End, DriveError> {
    let meter = Meter::new(&options.scope, options.role);
    let (bus, told) = Bus::connect(options, tasks.spawner(), meter.clone()).await?;
    let mut edges = Edges {
        bus,
        told,
        tasks: tasks.spawner(),
        shutdown,
        grace,
        meter,
    };
    let end = drive(machine, &mut performer, &mut edges).await;
    edges.bus.close().await;
    tasks.stop().await;
    end
}

/// Drives a machine until it stops, or until the grace period after `shutdown` is over. The bus is
/// still open afterwards: [`Bus::close`] is the last step of leaving.
///
/// # Errors
/// [`DriveError`] when a background task panicked or the bus can't be used.
pub async fn drive<P: Perform>(
    mut machine: P::Machine,
    performer: &mut P,
    edges: &mut Edges,
) -> Result<End, DriveError> {
    let mut orders = Vec::new();
    let mut leaving: Option<Mono> = None;
    let mut woken = clock::now().mono;
    let mut input = performer.started();
    loop {
        let now = clock::now();
        machine.handle(now, input, &mut orders);
        performer.observe(&machine, now);
        for order in orders.drain(..) {
            if let ControlFlow::Break(end) = perform(performer, &mut edges.bus, order).await {
                return Ok(end);
            }
        }
        // Counted from the last time, not from the last input: a busy machine sees the clock, too.
        let watch = woken.plus(LONGEST_SLEEP);
        let mut wake = machine.wake_at();
        wake.at_mono(watch, "clock watch");
        input = match next(performer, edges, wake, leaving).await {
            Woken::Input(input) => input,
            Woken::Deadline => {
                woken = clock::now().mono;
                performer.woke()
            }
            Woken::Asked => {
                leaving = Some(clock::now().mono.plus(edges.grace));
                performer.drained()
            }
            Woken::GraceOver => {
                tracing::warn!(grace = ?edges.grace, "the grace period is over: leaving as it is");
                return Ok(End::Drained);
            }
            Woken::Failed(error) => return Err(error),
        };
    }
}

async fn perform<P: Perform>(
    performer: &mut P,
    bus: &mut Bus,
    order: <P::Machine as Machine>::Order,
) -> ControlFlow<End> {
    match performer.perform(order) {
        Step::Bus(op) => bus.perform(op).await,
        Step::Stop(end) => return ControlFlow::Break(end),
        Step::Done => {}
    }
    ControlFlow::Continue(())
}

async fn next<P: Perform>(
    performer: &mut P,
    edges: &mut Edges,
    wake: ring_core::time::Wake,
    leaving: Option<Mono>,
) -> Woken<<P::Machine as Machine>::Input> {
    let asleep = clock::now();
    if leaving.is_some_and(|until| asleep.mono >= until) {
        return Woken::GraceOver;
    }
    if let Some(reason) = edges.bus.unusable() {
        return Woken::Failed(DriveError::Bus(reason));
    }
    let (sleep, reason) = wake.after(asleep).unwrap_or((LONGEST_SLEEP, "clock watch"));
    tokio::select! {
        () = edges.tasks.broken() => Woken::Failed(DriveError::Broken),
        () = edges.shutdown.cancelled(), if leaving.is_none() => Woken::Asked,
        () = tokio::time::sleep(sleep) => {
            let slept = clock::now().mono.since(asleep.mono);
            if slept > sleep + STALL {
                edges.meter.count(STALLS);
                tracing::warn!(reason, late = ?(slept - sleep), "woke late");
            }
            Woken::Deadline
        }
        input = performer.completed() => Woken::Input(input),
        told = edges.told.recv() => match told {
            Some(told) => Woken::Input(performer.told(told)),
            None => Woken::Failed(DriveError::Ended),
        },
    }
}

#[cfg(test)]
mod tests;
