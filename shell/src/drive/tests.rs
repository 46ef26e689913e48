//! The loop, around a toy machine.

use std::sync::{Arc, Mutex};

use ring_core::{
    id::{Cluster, NodeId, Region, Scope},
    time::Wake,
    wire::Role,
};

use super::*;
use crate::bus::{Credentials, server_addresses};

/// Counts what it is told; leaves when asked if it is polite.
#[derive(Debug)]
struct Toy {
    polite: bool,
    due: Option<Mono>,
    stop_after_wakes: u32,
    wakes: u32,
}

impl Machine for Toy {
    type Input = &'static str;
    type Order = &'static str;

    fn handle(&mut self, now: Now, input: &'static str, out: &mut Vec<&'static str>) {
        match input {
            "started" => self.due = Some(now.mono.plus(Duration::from_millis(30))),
            "woke" => {
                self.wakes += 1;
                self.due = self.due.filter(|due| *due > now.mono);
                if self.wakes == self.stop_after_wakes {
                    out.push("first");
                    out.push("stop");
                    out.push("never");
                }
            }
            "drained" if self.polite => out.push("stop"),
            "panic" => panic!("on purpose"),
            _ => {}
        }
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        if let Some(due) = self.due {
            wake.at_mono(due, "toy");
        }
        wake
    }
}

#[derive(Clone, Default)]
struct Ports {
    performed: Arc<Mutex<Vec<&'static str>>>,
    answer: Option<&'static str>,
}

impl Perform for Ports {
    type Machine = Toy;
    fn started(&self) -> &'static str {
        "started"
    }
    fn woke(&self) -> &'static str {
        "woke"
    }
    fn drained(&self) -> &'static str {
        "drained"
    }
    fn told(&self, _told: Told) -> &'static str {
        "told"
    }
    fn perform(&mut self, order: &'static str) -> Step {
        self.performed.lock().unwrap().push(order);
        if order == "stop" {
            Step::Stop(End::Drained)
        } else {
            Step::Done
        }
    }
    async fn completed(&mut self) -> &'static str {
        match self.answer.take() {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn toy() -> Toy {
    Toy {
        polite: true,
        due: None,
        stop_after_wakes: u32::MAX,
        wakes: 0,
    }
}

/// Nobody listens there: the loop goes on without a bus.
fn nowhere() -> Options {
    Options {
        servers: server_addresses("nats://127.0.0.1:1").unwrap(),
        credentials: Credentials::None,
        ca: None,
        role: Role::Slave,
        scope: Scope {
            region: Region::new("r").unwrap(),
            cluster: Cluster::new("c").unwrap(),
        },
        id: NodeId::new("toy").unwrap(),
        boot: clock::boot(),
        build: "0".to_owned(),
    }
}

async fn driven(
    machine: Toy,
    ports: Ports,
    tasks: Tasks,
    shutdown: CancellationToken,
) -> Result<End, DriveError> {
    let grace = Duration::from_millis(1);
    let role = run(machine, ports, nowhere(), tasks, shutdown, grace);
    tokio::time::timeout(Duration::from_secs(20), role)
        .await
        .unwrap()
}

#[tokio::test]
async fn deadlines_are_kept_orders_performed_in_order_and_none_after_stop() {
    let ports = Ports::default();
    let mut machine = toy();
    machine.stop_after_wakes = 2;
    let end = driven(
        machine,
        ports.clone(),
        Tasks::new(),
        CancellationToken::new(),
    )
    .await;
    assert_eq!(end.unwrap(), End::Drained);
    assert_eq!(*ports.performed.lock().unwrap(), ["first", "stop"]);
}

#[tokio::test]
async fn a_machine_that_is_asked_to_leave_says_when_it_has() {
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    let end = driven(toy(), Ports::default(), Tasks::new(), shutdown).await;
    assert_eq!(end.unwrap(), End::Drained);
}

#[tokio::test]
async fn a_machine_that_does_not_leave_is_left_after_the_grace_period() {
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    let mut machine = toy();
    machine.polite = false;
    let end = driven(machine, Ports::default(), Tasks::new(), shutdown).await;
    assert_eq!(end.unwrap(), End::Drained);
}

#[tokio::test]
async fn a_panic_in_a_background_task_ends_the_role() {
    let tasks = Tasks::new();
    tasks.spawner().spawn(async { panic!("on purpose") });
    let end = driven(toy(), Ports::default(), tasks, CancellationToken::new()).await;
    assert!(matches!(end, Err(DriveError::Broken)), "{end:?}");
}

#[tokio::test]
async fn a_panic_in_the_machine_reaches_whoever_runs_the_role() {
    let ports = Ports {
        answer: Some("panic"),
        ..Ports::default()
    };
    let role = tokio::spawn(driven(toy(), ports, Tasks::new(), CancellationToken::new()));
    assert!(role.await.unwrap_err().is_panic());
}
