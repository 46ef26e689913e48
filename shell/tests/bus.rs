//! The bus on a real NATS server with the shipped permissions.
#![allow(clippy::unwrap_used, reason = "tests")]

mod node;

use std::time::Duration;

use ring_core::{
    bus::{AskError, AskId, Op, Told},
    subject::{Endpoints, Place, Topic, Verb},
    wire::{self, Answer, Author, Event, Fact, Probe, Publication, Question, Refusal, Role},
};
use ring_shell::{
    bus::{Credentials, server_addresses},
    clock,
};

use self::node::{LIMIT, Node, Server, WITHIN, id};

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
