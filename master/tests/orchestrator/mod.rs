//! An orchestrator without sagas: only a member of the ring.

use ring_core::{
    bus::Told,
    id::Service,
    machine::End,
    orchestrator::{Config, Input, Orchestrator, Order},
    wire::Role,
};
use ring_shell::{
    clock,
    drive::{self, Perform, Step},
    tasks::Tasks,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{LIMIT, Servers, timing};

pub(crate) struct Node {
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<End>,
}

struct Ports;

impl Perform for Ports {
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
}

pub(crate) fn start(servers: &Servers, id: &str) -> Node {
    let options = servers.options(Role::Orchestrator, id);
    let machine = Orchestrator::new(
        Config {
            scope: options.scope.clone(),
            id: options.id.clone(),
            service: Service::new("orders").unwrap(),
            boot: options.boot,
            timing: timing(),
            build: options.build.clone(),
        },
        clock::chance(),
    );
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let task = tokio::spawn(async move {
        drive::run(machine, Ports, options, Tasks::new(), asked, LIMIT)
            .await
            .unwrap()
    });
    Node { stop, task }
}
