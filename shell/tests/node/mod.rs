//! A NATS server of the test's own with the shipped permissions, and nodes on it.

use std::time::Duration;

use ring_core::{
    bus::{AskError, AskId, Op, Told},
    id::{Cluster, NodeId, Region, Scope},
    subject::Place,
    wire::{Answer, Question, Role},
};
use ring_local::{Binaries, Nats, Settings};
use ring_shell::{
    bus::{Bus, Credentials, Options, server_addresses},
    clock,
    tasks::Tasks,
    telemetry::Meter,
};
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;

pub(crate) const LIMIT: Duration = Duration::from_secs(20);
pub(crate) const WITHIN: Duration = Duration::from_secs(2);

pub(crate) struct Server {
    pub(crate) nats: Nats,
    _data: TempDir,
}

pub(crate) struct Node {
    pub(crate) bus: Bus,
    pub(crate) told: Receiver<Told>,
    _tasks: Tasks,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let programs = Binaries::find(&Settings::from_env()).await.unwrap();
        let data = tempfile::tempdir().unwrap();
        let run = Nats::new_run().unwrap();
        let nats = Nats::start(&programs.nats, data.path(), &run).await;
        let nats = nats.unwrap();
        Self { nats, _data: data }
    }

    pub(crate) async fn node(&self, role: Role, id: &str) -> Node {
        let mut node = self.node_later(role, id).await;
        node.until(|told| matches!(told, Told::Connected)).await;
        node
    }

    pub(crate) async fn node_later(&self, role: Role, id: &str) -> Node {
        Node::new(self.options(role, id)).await
    }

    pub(crate) fn options(&self, role: Role, id: &str) -> Options {
        let user = match role {
            Role::Master => ring_local::Role::Master,
            Role::Slave => ring_local::Role::Slave,
            Role::Orchestrator => ring_local::Role::Orchestrator,
        };
        Options {
            servers: server_addresses(&self.nats.url()).unwrap(),
            credentials: Credentials::User {
                user: user.user().to_owned(),
                password: self.nats.password(user).into(),
            },
            ca: None,
            role,
            scope: scope(),
            id: NodeId::new(id).unwrap(),
            boot: clock::boot(),
            build: "0.0.1".to_owned(),
        }
    }

    pub(crate) async fn user(&self, user: ring_local::Role) -> async_nats::Client {
        async_nats::ConnectOptions::new()
            .user_and_password(user.user().to_owned(), self.nats.password(user))
            .custom_inbox_prefix(user.inbox_prefix())
            .connect(self.nats.url())
            .await
            .unwrap()
    }

    pub(crate) async fn stranger(&self) -> async_nats::Client {
        self.user(ring_local::Role::Master).await
    }
}

impl Node {
    pub(crate) async fn new(options: Options) -> Self {
        let tasks = Tasks::new();
        let meter = Meter::new(&options.scope, options.role);
        let (bus, told) = Bus::connect(options, tasks.spawner(), meter).await.unwrap();
        Self {
            bus,
            told,
            _tasks: tasks,
        }
    }

    pub(crate) async fn next(&mut self) -> Told {
        let next = tokio::time::timeout(LIMIT, self.told.recv()).await;
        next.unwrap().unwrap()
    }

    pub(crate) async fn until(&mut self, wanted: impl Fn(&Told) -> bool) -> Told {
        loop {
            let told = self.next().await;
            if wanted(&told) {
                return told;
            }
        }
    }

    pub(crate) async fn ask(&mut self, id: u64, place: Place) -> Result<Answer, AskError> {
        let op = Op::Ask {
            ask: AskId(id),
            place,
            question: Question::Status,
            within: WITHIN,
        };
        self.bus.perform(op).await;
        self.answered(id).await
    }

    pub(crate) async fn answered(&mut self, id: u64) -> Result<Answer, AskError> {
        let told = self
            .until(|told| matches!(told, Told::Answered { ask, .. } if *ask == AskId(id)))
            .await;
        let Told::Answered { answer, .. } = told else {
            panic!("{told:?}")
        };
        answer
    }

    /// Waits until the server has seen what was ordered so far: it answers on the same connection,
    /// in order, that nobody listens there.
    pub(crate) async fn settled(&self) {
        let nobody = "ring.none.none.event.superseded";
        let answer = self.bus.client().request(nobody, "".into()).await;
        let kind = answer.unwrap_err().kind();
        assert_eq!(kind, async_nats::RequestErrorKind::NoResponders);
    }
}

pub(crate) fn scope() -> Scope {
    Scope {
        region: Region::new("eu-1").unwrap(),
        cluster: Cluster::new("c1").unwrap(),
    }
}

pub(crate) fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}
