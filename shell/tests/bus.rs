//! The bus on a real NATS server with the shipped permissions.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use ring_core::{
    bus::{AskError, AskId, Op, Told},
    id::{Cluster, NodeId, Region, Scope},
    subject::{Endpoints, Place, Topic, Verb},
    wire::{self, Answer, Author, Event, Fact, Probe, Publication, Question, Refusal, Role},
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

const LIMIT: Duration = Duration::from_secs(20);
const WITHIN: Duration = Duration::from_secs(2);

struct Server {
    nats: Nats,
    _data: TempDir,
}

struct Node {
    bus: Bus,
    told: Receiver<Told>,
    _tasks: Tasks,
}

impl Server {
    async fn start() -> Self {
        let programs = Binaries::find(&Settings::from_env()).await.unwrap();
        let data = tempfile::tempdir().unwrap();
        let run = Nats::new_run().unwrap();
        let nats = Nats::start(&programs.nats, data.path(), &run).await;
        let nats = nats.unwrap();
        Self { nats, _data: data }
    }

    async fn node(&self, role: Role, id: &str) -> Node {
        let mut node = self.node_later(role, id).await;
        node.until(|told| matches!(told, Told::Connected)).await;
        node
    }

    async fn node_later(&self, role: Role, id: &str) -> Node {
        Node::new(self.options(role, id)).await
    }

    fn options(&self, role: Role, id: &str) -> Options {
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

    async fn user(&self, user: ring_local::Role) -> async_nats::Client {
        async_nats::ConnectOptions::new()
            .user_and_password(user.user().to_owned(), self.nats.password(user))
            .custom_inbox_prefix(user.inbox_prefix())
            .connect(self.nats.url())
            .await
            .unwrap()
    }

    async fn stranger(&self) -> async_nats::Client {
        self.user(ring_local::Role::Master).await
    }
}

impl Node {
    async fn new(options: Options) -> Self {
        let tasks = Tasks::new();
        let meter = Meter::new(&options.scope, options.role);
        let (bus, told) = Bus::connect(options, tasks.spawner(), meter).await.unwrap();
        Self {
            bus,
            told,
            _tasks: tasks,
        }
    }

    async fn next(&mut self) -> Told {
        let next = tokio::time::timeout(LIMIT, self.told.recv()).await;
        next.unwrap().unwrap()
    }

    async fn until(&mut self, wanted: impl Fn(&Told) -> bool) -> Told {
        loop {
            let told = self.next().await;
            if wanted(&told) {
                return told;
            }
        }
    }

    async fn ask(&mut self, id: u64, place: Place) -> Result<Answer, AskError> {
        let op = Op::Ask {
            ask: AskId(id),
            place,
            question: Question::Status,
            within: WITHIN,
        };
        self.bus.perform(op).await;
        self.answered(id).await
    }

    async fn answered(&mut self, id: u64) -> Result<Answer, AskError> {
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
    async fn settled(&self) {
        let nobody = "ring.none.none.event.none";
        let answer = self.bus.client().request(nobody, "".into()).await;
        let kind = answer.unwrap_err().kind();
        assert_eq!(kind, async_nats::RequestErrorKind::NoResponders);
    }
}

fn scope() -> Scope {
    Scope {
        region: Region::new("eu-1").unwrap(),
        cluster: Cluster::new("c1").unwrap(),
    }
}

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn probe() -> Publication {
    Publication::Probe(Probe {
        boot: clock::boot(),
        nonce: clock::nonce(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_reaches_whoever_listens() {
    let server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    let mut master = server.node(Role::Master, "m-1").await;
    slave
        .bus
        .perform(Op::Listen(Topic::SlaveWindows(id("s-1"))))
        .await;
    slave.settled().await;
    let (place, body) = (Place::SlaveWindows(id("s-1")), probe());
    let op = Op::Publish {
        place: place.clone(),
        body: body.clone(),
    };
    master.bus.perform(op).await;
    assert_eq!(slave.next().await, Told::Published { place, body });

    // An event comes back to a master that listens to events.
    master.bus.perform(Op::Listen(Topic::Events)).await;
    let by = Author {
        role: Role::Master,
        id: id("m-1"),
        boot: clock::boot(),
    };
    let event = Event::new(clock::now().wall, by, Fact::Superseded);
    master.bus.perform(Op::Tell(event.clone())).await;
    assert_eq!(master.next().await, Told::Event(event));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens_and_nobody_answers_are_different_facts() {
    let server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    let mut master = server.node(Role::Master, "m-1").await;
    let place = Place::Master(Verb::Status);
    assert_eq!(
        slave.ask(1, place.clone()).await,
        Err(AskError::NoResponders)
    );

    master.bus.perform(Op::Serve(Endpoints::Master)).await;
    master.bus.perform(Op::Serve(Endpoints::Master)).await;
    master.settled().await;
    assert_eq!(slave.ask(2, place.clone()).await, Err(AskError::TimedOut));

    // The forgotten question is still with the master; it answers the next one.
    let op = Op::Ask {
        ask: AskId(3),
        place: place.clone(),
        question: Question::Status,
        within: WITHIN,
    };
    slave.bus.perform(op).await;
    for _ in 0..2 {
        let told = master
            .until(|told| matches!(told, Told::Asked { .. }))
            .await;
        let Told::Asked { to, place: at, .. } = told else {
            panic!("{told:?}")
        };
        assert_eq!(at, place);
        let answer = Answer::Refused {
            reason: Refusal::Busy,
            retry_after_ms: 5,
        };
        master.bus.perform(Op::Answer { to, answer }).await;
    }
    let answer = slave.answered(3).await.unwrap();
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");

    master.bus.perform(Op::Withdraw(Endpoints::Master)).await;
    let limit = clock::now().mono.plus(LIMIT);
    let mut ask = 4;
    while slave.ask(ask, place.clone()).await != Err(AskError::NoResponders) {
        assert!(clock::now().mono < limit, "still served");
        ask += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_overheard_without_being_taken_away() {
    let server = Server::start().await;
    let mut standby = server.node(Role::Master, "m-2").await;
    let mut leader = server.node(Role::Master, "m-1").await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    standby.bus.perform(Op::Listen(Topic::MasterRequests)).await;
    standby.settled().await;
    leader.bus.perform(Op::Serve(Endpoints::Master)).await;
    leader.settled().await;
    let place = Place::Master(Verb::Status);
    let op = Op::Ask {
        ask: AskId(1),
        place: place.clone(),
        question: Question::Status,
        within: WITHIN,
    };
    slave.bus.perform(op).await;
    let question = Question::Status;
    assert_eq!(standby.next().await, Told::Overheard { place, question });
    leader
        .until(|told| matches!(told, Told::Asked { .. }))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_bytes_are_dropped_and_the_good_ones_behind_them_arrive() {
    let server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    slave
        .bus
        .perform(Op::Listen(Topic::SlaveWindows(id("s-1"))))
        .await;
    slave.settled().await;
    let stranger = server.stranger().await;
    let subject = "ring.eu-1.c1.slave.s-1";
    let large = vec![b' '; wire::MAX_BYTES + 1];
    for bad in [
        &b""[..],
        b"{",
        b"{\"v\":2}",
        b"{\"v\":1,\"kind\":\"x\"}",
        &large,
    ] {
        stranger
            .publish(subject, bad.to_vec().into())
            .await
            .unwrap();
    }
    let body = probe();
    let good = wire::encode(&body).unwrap();
    stranger.publish(subject, good.into()).await.unwrap();
    let place = Place::SlaveWindows(id("s-1"));
    assert_eq!(slave.next().await, Told::Published { place, body });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_garbled_request_is_refused_in_the_words_of_nats_services() {
    let server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    slave
        .bus
        .perform(Op::Serve(Endpoints::Slave(id("s-1"))))
        .await;
    slave.settled().await;
    let operator = server.user(ring_local::Role::Operator).await;
    let subject = "ring.eu-1.c1.slave.s-1.status";
    let answer = operator.request(subject, "what?".into()).await.unwrap();
    let headers = answer.headers.unwrap();
    assert_eq!(
        headers.get("Nats-Service-Error-Code").unwrap().as_str(),
        "400"
    );

    let answer = operator.request("$SRV.INFO.ring-slave", "".into()).await;
    let info = String::from_utf8(answer.unwrap().payload.to_vec()).unwrap();
    for part in [
        "\"region\":\"eu-1\"",
        "\"id\":\"s-1\"",
        "\"role\":\"slave\"",
        subject,
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_while_the_server_is_away_is_lost_and_not_late() {
    let mut server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    let mut master = server.node(Role::Master, "m-1").await;
    slave
        .bus
        .perform(Op::Listen(Topic::SlaveWindows(id("s-1"))))
        .await;
    slave.settled().await;
    server.nats.kill9().await.unwrap();
    master
        .until(|told| matches!(told, Told::Disconnected))
        .await;
    slave.until(|told| matches!(told, Told::Disconnected)).await;
    let place = Place::SlaveWindows(id("s-1"));
    let publish = |body| Op::Publish {
        place: place.clone(),
        body,
    };
    master.bus.perform(publish(probe())).await;
    server.nats.restart().await.unwrap();
    master.until(|told| matches!(told, Told::Connected)).await;
    slave.until(|told| matches!(told, Told::Connected)).await;
    slave.settled().await;
    let body = probe();
    master.bus.perform(publish(body.clone())).await;
    let place = place.clone();
    assert_eq!(slave.next().await, Told::Published { place, body });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_when_the_server_dies_does_not_wait_in_vain() {
    let mut server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    let mut master = server.node(Role::Master, "m-1").await;
    master.bus.perform(Op::Serve(Endpoints::Master)).await;
    master.settled().await;
    let op = Op::Ask {
        ask: AskId(1),
        place: Place::Master(Verb::Status),
        question: Question::Status,
        within: Duration::from_secs(600),
    };
    slave.bus.perform(op).await;
    master
        .until(|told| matches!(told, Told::Asked { .. }))
        .await;
    server.nats.kill9().await.unwrap();
    assert_eq!(slave.answered(1).await, Err(AskError::TimedOut));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_come_later_are_connected_then() {
    let mut server = Server::start().await;
    server.nats.stop().await.unwrap();
    let mut slave = server.node_later(Role::Slave, "s-1").await;
    assert_eq!(slave.next().await, Told::Disconnected);
    assert!(!slave.bus.is_up());
    slave
        .bus
        .perform(Op::Listen(Topic::SlaveWindows(id("s-1"))))
        .await;
    server.nats.restart().await.unwrap();
    assert_eq!(slave.next().await, Told::Connected);
    let mut master = server.node(Role::Master, "m-1").await;
    slave.settled().await;
    let (place, body) = (Place::SlaveWindows(id("s-1")), probe());
    let op = Op::Publish {
        place: place.clone(),
        body: body.clone(),
    };
    master.bus.perform(op).await;
    assert_eq!(slave.next().await, Told::Published { place, body });
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_an_address_are_used() {
    let server = Server::start().await;
    let url = server.nats.url_for(ring_local::Role::Slave);
    let mut options = server.options(Role::Slave, "s-1");
    options.servers = server_addresses(&url).unwrap();
    options.credentials = Credentials::None;
    let mut node = Node::new(options).await;
    node.until(|told| matches!(told, Told::Connected)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_says_everything_and_ends() {
    let server = Server::start().await;
    let mut slave = server.node(Role::Slave, "s-1").await;
    let mut master = server.node(Role::Master, "m-1").await;
    slave
        .bus
        .perform(Op::Listen(Topic::SlaveWindows(id("s-1"))))
        .await;
    slave.settled().await;
    let (place, body) = (Place::SlaveWindows(id("s-1")), probe());
    let op = Op::Publish {
        place: place.clone(),
        body: body.clone(),
    };
    master.bus.perform(Op::Serve(Endpoints::Master)).await;
    master.bus.perform(op).await;
    let started = clock::now().mono;
    master.bus.close().await;
    assert!(clock::now().mono.since(started) < Duration::from_secs(1));
    assert_eq!(slave.next().await, Told::Published { place, body });
}
