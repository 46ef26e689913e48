//! The three servers start, answer real clients, survive faults and leave nothing behind.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Checked, folder, holds_soon, is_alive, nats_client, state};
use ring_local::{
    Binaries, Durability, Nats, NatsCluster, Postgres, Redis, Role, Set, SetOptions, Settings,
};

#[tokio::test]
async fn a_set_starts_answers_real_clients_and_leaves_no_process() -> Checked {
    let set = Set::start(&Settings::from_env(), &SetOptions::default()).await?;
    let at = set.addresses().clone();

    let client = nats_client(
        &at.nats_url,
        Role::Observer,
        at.nats_password(Role::Observer),
    )
    .await?;
    client.flush().await?;
    let client = redis::Client::open(at.redis_url.as_str())?;
    let mut redis = client.get_multiplexed_async_connection().await?;
    let pong: String = redis::cmd("PING").query_async(&mut redis).await?;
    assert_eq!(pong, "PONG");
    let (postgres, connection) =
        tokio_postgres::connect(&at.postgres_url, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    let limit: String = postgres
        .query_one("show max_connections", &[])
        .await?
        .get(0);
    assert_eq!(limit, "300");

    assert!(at.data.join("dev.json").exists());
    set.stop().await?;
    assert!(
        connection.await?.is_err(),
        "a fast shutdown cuts connections"
    );
    assert!(!is_alive(at.redis_pid) && !is_alive(at.postgres_pid) && !is_alive(at.nats_pids[0]));
    assert!(!at.data.exists());
    Ok(())
}

#[tokio::test]
async fn a_cluster_survives_one_node_killed_and_takes_it_back() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let (data, run) = (folder()?, Nats::new_run()?);
    let mut cluster = NatsCluster::start(&binaries.nats, data.path(), &run, 3).await?;
    cluster.node(0).ok_or("no node")?.kill9().await?;

    let rest = [cluster.nodes()[1].url(), cluster.nodes()[2].url()];
    let password = |role: Role| role.password(&run);
    let heard = nats_client(&rest[0], Role::Observer, password(Role::Observer)).await?;
    let mut events = heard.subscribe("ring.r.c.event.>").await?;
    heard.flush().await?;
    let says = nats_client(&rest[1], Role::Slave, password(Role::Slave)).await?;
    // Interest crosses the cluster a moment after the flush.
    let event = async {
        loop {
            says.publish("ring.r.c.event.joined", "x".into()).await?;
            let next = futures_util::StreamExt::next(&mut events);
            let wait = Duration::from_millis(20);
            if let Ok(Some(event)) = tokio::time::timeout(wait, next).await {
                return Ok::<_, async_nats::PublishError>(event);
            }
        }
    };
    let event = tokio::time::timeout(Duration::from_secs(5), event).await??;
    assert_eq!(event.subject.as_str(), "ring.r.c.event.joined");

    let before = cluster.nodes()[0].url();
    cluster.node(0).ok_or("no node")?.restart().await?;
    assert_eq!(cluster.nodes()[0].url(), before);
    cluster.whole().await?;
    nats_client(&before, Role::Master, password(Role::Master)).await?;
    Ok(cluster.stop().await?)
}

#[tokio::test]
async fn a_killed_postgres_comes_back_with_its_data_on_its_port() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let data = folder()?;
    killed_and_restarted(&binaries, data.path()).await
}

#[tokio::test]
async fn the_pinned_wheels_serve_as_well_as_what_is_installed() -> Checked {
    let settings = Settings {
        wheels_only: true,
        ..Settings::from_env()
    };
    let binaries = Binaries::find(&settings).await?;
    let data = folder()?;
    killed_and_restarted(&binaries, data.path()).await
}

async fn killed_and_restarted(binaries: &Binaries, data: &Path) -> Checked {
    let mut server = Postgres::start(&binaries.postgres, data, "r1", Durability::Fast).await?;
    let url = server.url();
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
        drop(tokio::spawn(connection));
        Ok::<_, tokio_postgres::Error>(client)
    };
    connect()
        .await?
        .batch_execute("create table kept (id int); insert into kept values (7)")
        .await?;
    server.kill9().await?;
    assert!(connect().await.is_err());
    server.restart().await?;
    let kept: i32 = connect()
        .await?
        .query_one("select id from kept", &[])
        .await?
        .get(0);
    assert_eq!(kept, 7);
    server.stop().await?;
    drop(server);

    // Another run on a kept folder, as a bench would start it.
    let mut server = Postgres::start(&binaries.postgres, data, "r2", Durability::Safe).await?;
    let url = server.url();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    drop(tokio::spawn(connection));
    let fsync: String = client.query_one("show fsync", &[]).await?.get(0);
    let kept: i32 = client.query_one("select id from kept", &[]).await?.get(0);
    assert_eq!((fsync.as_str(), kept), ("on", 7));
    Ok(server.stop().await?)
}

#[tokio::test]
async fn a_paused_redis_answers_again_when_it_is_resumed() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let data = folder()?;
    let mut server = Redis::start(&binaries.redis, data.path()).await?;
    let client = redis::Client::open(server.url())?;
    let mut redis = client.get_multiplexed_async_connection().await?;
    server.pause().await?;
    let get = redis::cmd("GET").arg("k").to_owned();
    let asked = tokio::spawn(async move {
        let answer: Result<Option<String>, _> = get.query_async(&mut redis).await;
        answer
    });
    let stopped = || state(server.pid()) == Some('T');
    assert!(holds_soon(stopped).await, "the server still runs");
    assert!(!asked.is_finished());
    server.resume().await?;
    assert_eq!(asked.await??, None);
    Ok(server.stop().await?)
}
