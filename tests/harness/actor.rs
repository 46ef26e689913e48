//! The three machines behind one face, so that the world needs one loop. It decides nothing.

use ring_core::{
    bus,
    id::{BootId, NodeId, Scope, Service},
    machine::{End, Machine},
    master::{self, Master},
    orchestrator::{self, Orchestrator},
    registry,
    slave::{self, Slave},
    time::{Now, Wake, Wall},
    timing::Timing,
    token::Range,
    wire::{Health, Role},
};

/// What any machine may be told.
#[derive(Clone, Debug)]
pub enum Fact {
    /// Its process runs.
    Started,
    /// From the bus.
    Bus(bus::Told),
    /// From Redis.
    Registry(registry::Told),
    /// From its own polls of the store.
    Measured(Health),
    /// Its wall clock minus the database's, milliseconds.
    ClockMeasured(i64),
    /// Time passed.
    Woke,
    /// It is asked to leave.
    Drained,
}

/// What any machine may order.
#[derive(Clone, Debug)]
pub enum Order {
    /// To the bus.
    Bus(bus::Op),
    /// To Redis.
    Registry(registry::Op),
    /// To be driven no more.
    Stop(End),
}

/// Who a process is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its role.
    pub role: Role,
    /// Region and cluster.
    pub scope: Scope,
    /// Its id.
    pub id: NodeId,
    /// An orchestrator's service.
    pub service: Service,
}

/// A machine of any role.
#[derive(Debug)]
pub enum Actor {
    /// Cuts the ring.
    Master(Box<Master>),
    /// Cuts its slice.
    Slave(Box<Slave>),
    /// Claims.
    Orchestrator(Box<Orchestrator>),
}

impl Actor {
    /// Starts a machine as this boot.
    #[must_use]
    pub fn start(who: &Identity, boot: BootId, timing: Timing, equal: bool, seed: u64) -> Self {
        let Identity {
            role,
            scope,
            id,
            service,
        } = who.clone();
        let build = String::from("sim");
        match role {
            Role::Master => {
                let balance = if equal {
                    master::Balance::Equal
                } else {
                    master::Balance::default()
                };
                let alone = false;
                let config = master::Config {
                    scope,
                    id,
                    boot,
                    timing,
                    balance,
                    build,
                    alone,
                };
                Self::Master(Box::new(Master::new(config, seed)))
            }
            Role::Slave => {
                let config = slave::Config {
                    scope,
                    id,
                    boot,
                    timing,
                    build,
                };
                Self::Slave(Box::new(Slave::new(config, seed)))
            }
            Role::Orchestrator => {
                let config = orchestrator::Config {
                    scope,
                    id,
                    service,
                    boot,
                    timing,
                    build,
                };
                Self::Orchestrator(Box::new(Orchestrator::new(config, seed)))
            }
        }
    }

    /// Tells the machine a fact. One that its role can't be told is dropped: nobody sends it.
    pub fn handle(&mut self, now: Now, fact: Fact, out: &mut Vec<Order>) {
        match self {
            Self::Master(machine) => {
                let input = match fact {
                    Fact::Started => master::Input::Started,
                    Fact::Bus(told) => master::Input::Bus(told),
                    Fact::Registry(told) => master::Input::Registry(told),
                    Fact::Woke => master::Input::Woke,
                    Fact::Drained => master::Input::Drained,
                    Fact::Measured(_) | Fact::ClockMeasured(_) => return,
                };
                run(machine.as_mut(), now, input, out, |order| match order {
                    master::Order::Bus(op) => Order::Bus(op),
                    master::Order::Registry(op) => Order::Registry(op),
                    master::Order::Stop(end) => Order::Stop(end),
                });
            }
            Self::Slave(machine) => {
                let input = match fact {
                    Fact::Started => slave::Input::Started,
                    Fact::Bus(told) => slave::Input::Bus(told),
                    Fact::Woke => slave::Input::Woke,
                    Fact::Drained => slave::Input::Drained,
                    Fact::Registry(_) | Fact::Measured(_) | Fact::ClockMeasured(_) => return,
                };
                run(machine.as_mut(), now, input, out, |order| match order {
                    slave::Order::Bus(op) => Order::Bus(op),
                    slave::Order::Stop(end) => Order::Stop(end),
                });
            }
            Self::Orchestrator(machine) => {
                let input = match fact {
                    Fact::Started => orchestrator::Input::Started,
                    Fact::Bus(told) => orchestrator::Input::Bus(told),
                    Fact::Measured(health) => orchestrator::Input::Measured(health),
                    Fact::ClockMeasured(offset_ms) => {
                        orchestrator::Input::ClockMeasured { offset_ms }
                    }
                    Fact::Woke => orchestrator::Input::Woke,
                    Fact::Drained => orchestrator::Input::Drained,
                    Fact::Registry(_) => return,
                };
                run(machine.as_mut(), now, input, out, |order| match order {
                    orchestrator::Order::Bus(op) => Order::Bus(op),
                    orchestrator::Order::Stop(end) => Order::Stop(end),
                });
            }
        }
    }

    /// The machine's next deadlines.
    #[must_use]
    pub fn wake_at(&self) -> Wake {
        match self {
            Self::Master(machine) => machine.wake_at(),
            Self::Slave(machine) => machine.wake_at(),
            Self::Orchestrator(machine) => machine.wake_at(),
        }
    }

    /// What an orchestrator may claim by its clock; nothing for the other roles.
    #[must_use]
    pub fn claimable(&self, wall: Wall) -> Vec<Range> {
        match self {
            Self::Orchestrator(machine) => machine.claimable(wall),
            Self::Master(_) | Self::Slave(_) => Vec::new(),
        }
    }
}

fn run<M: Machine>(
    machine: &mut M,
    now: Now,
    input: M::Input,
    out: &mut Vec<Order>,
    order: impl Fn(M::Order) -> Order,
) {
    let mut orders = Vec::new();
    machine.handle(now, input, &mut orders);
    out.extend(orders.into_iter().map(order));
}
