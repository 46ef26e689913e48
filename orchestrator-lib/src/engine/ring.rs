//! The node as a member of the ring: drives the member machine over the bus and keeps what it may
//! claim for whoever looks for transactions.
//!
//! Decides nothing: the machine knows windows, and Postgres who wins.

use std::sync::Arc;

use ring_core::{
    bus::Told,
    machine::End,
    orchestrator::{Input, Orchestrator, Order},
    time::{Now, Wall},
    token::Range,
};
use ring_shell::{
    bus::Bus,
    drive::{Edges, Perform, Step, drive},
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Engine;

/// What the ring allows at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Which parts of the ring are this node's.
    pub(crate) ranges: Vec<Range>,
    /// When the current window must be left, its guard already taken off.
    pub(crate) until: Option<Wall>,
    /// Why it does not take its part of the ring; empty when it does.
    pub(crate) reasons: Vec<&'static str>,
}

/// The machine's ports beside the bus.
pub(super) struct Port {
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) view: watch::Sender<View>,
}

impl Perform for Port {
    type Machine = Orchestrator;

    fn started(&self) -> Input {
        Input::Started
    }

    fn woke(&self) -> Input {
        Input::Woke
    }

    fn drained(&self) -> Input {
        Input::Drained
    }

    fn told(&self, told: Told) -> Input {
        Input::Bus(told)
    }

    fn perform(&mut self, order: Order) -> Step {
        match order {
            Order::Bus(op) => Step::Bus(op),
            Order::Stop(end) => Step::Stop(end),
        }
    }

    async fn completed(&mut self) -> Input {
        match self.inputs.recv().await {
            Some(input) => input,
            None => std::future::pending().await,
        }
    }

    fn observe(&mut self, machine: &Orchestrator, now: Now) {
        let view = View {
            ranges: machine.claimable(now.wall),
            until: machine.window_ends(now.wall),
            reasons: machine.ready(now),
        };
        self.view.send_if_modified(|old| {
            let changed = *old != view;
            *old = view;
            changed
        });
    }
}

/// Drives the member until it has left; the bus stays open for events until `close`.
pub(super) async fn run(
    engine: Arc<Engine>,
    mut port: Port,
    mut edges: Edges,
    close: CancellationToken,
) {
    let machine = engine.member();
    match drive(machine, &mut port, &mut edges).await {
        Ok(End::Drained) => tracing::info!("has left the ring"),
        Ok(End::Superseded) => {
            tracing::error!("a newer process has this node's id: it leaves");
            engine.superseded.cancel();
        }
        Err(error) => tracing::error!(%error, "the ring's loop ended; the sweeper goes on"),
    }
    port.view.send_replace(View {
        reasons: vec!["it has left the ring"],
        ..View::default()
    });
    close.cancelled().await;
    edges.bus.close().await;
}

/// A node that retries nothing is no member: a range given to it would have no reader. Its bus
/// is for events alone.
pub(super) async fn stay_out(bus: Bus, mut told: mpsc::Receiver<Told>, close: CancellationToken) {
    let ignored = async { while told.recv().await.is_some() {} };
    tokio::select! {
        () = close.cancelled() => {}
        () = ignored => close.cancelled().await,
    }
    bus.close().await;
}

impl View {
    /// The ranges that may be claimed from now.
    pub(crate) fn claimable(&self, now: Wall) -> &[Range] {
        if self.until.is_some_and(|until| now < until) {
            &self.ranges
        } else {
            &[]
        }
    }
}
