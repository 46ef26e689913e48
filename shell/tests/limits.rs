//! A NATS server that takes too little is refused, with the reason.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{net::TcpListener, time::Duration};

use ring_core::{
    bus::Told,
    id::{Cluster, NodeId, Region, Scope},
    wire::Role,
};
use ring_local::{Binaries, Process, Settings, Spec};
use ring_shell::{
    bus::{Bus, Credentials, Options, server_addresses},
    clock,
    tasks::Tasks,
    telemetry::Meter,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_small_max_payload_is_refused() {
    let programs = Binaries::find(&Settings::from_env()).await.unwrap();
    let data = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let configuration = data.path().join("small.conf");
    let text = format!("listen: \"127.0.0.1:{port}\"\nmax_payload: 1024\n");
    std::fs::write(&configuration, text).unwrap();
    let log = data.path().join("nats.log");
    let spec =
        Spec::new("nats", &programs.nats, log).args(["-c".as_ref(), configuration.as_os_str()]);
    let _server = Process::spawn(&spec).await.unwrap();

    let options = Options {
        servers: server_addresses(&format!("nats://127.0.0.1:{port}")).unwrap(),
        credentials: Credentials::None,
        ca: None,
        role: Role::Slave,
        scope: Scope {
            region: Region::new("eu-1").unwrap(),
            cluster: Cluster::new("c1").unwrap(),
        },
        id: NodeId::new("s-1").unwrap(),
        boot: clock::boot(),
        build: "0.0.1".to_owned(),
    };
    let tasks = Tasks::new();
    let meter = Meter::new(&options.scope, Role::Slave);
    let (bus, mut told) = Bus::connect(options, tasks.spawner(), meter).await.unwrap();
    let connected = async { while told.recv().await != Some(Told::Connected) {} };
    tokio::time::timeout(Duration::from_secs(20), connected)
        .await
        .unwrap();
    let why = bus.unusable().unwrap();
    assert!(why.contains("raise max_payload"), "{why}");
}
