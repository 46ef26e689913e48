//! Masters and slaves on real servers form a ring, and it outlives a leader.
#![allow(clippy::unwrap_used, reason = "tests")]

mod orchestrator;

use std::{collections::BTreeMap, time::Duration};

use futures_util::StreamExt as _;
use ring_core::{
    id::{Cluster, NodeId, Region, Scope},
    machine::End,
    timing::Timing,
    token::Range,
    window::WindowNo,
    wire::{self, Event, Fact, GrantWire, Publication, Role},
};
use ring_local::{Binaries, Nats, Redis, Settings};
use ring_master::{Config, Master, Seen, registry::Address};
use ring_shell::{
    bus::{Credentials, Options, server_addresses},
    clock,
    view::View,
};
use ring_slave::Slave;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Forming takes a few windows of 2 s; a busy machine gets ten times that.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Servers {
    nats: Nats,
    redis: Redis,
    _data: TempDir,
}

struct Running<V> {
    view: View<V>,
    stop: CancellationToken,
    task: JoinHandle<End>,
}

impl Servers {
    async fn start() -> Self {
        let programs = Binaries::find(&Settings::from_env()).await.unwrap();
        let data = tempfile::tempdir().unwrap();
        let run = Nats::new_run().unwrap();
        let nats = Nats::start(&programs.nats, data.path(), &run);
        let redis = Redis::start(&programs.redis, data.path());
        Self {
            nats: nats.await.unwrap(),
            redis: redis.await.unwrap(),
            _data: data,
        }
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
            scope: Scope {
                region: Region::new("eu-1").unwrap(),
                cluster: Cluster::new("c1").unwrap(),
            },
            id: NodeId::new(id).unwrap(),
            boot: clock::boot(),
            build: "0.0.1".to_owned(),
        }
    }

    fn master(&self, id: &str) -> Running<Seen> {
        let master = Master::new(Config {
            bus: self.options(Role::Master, id),
            timing: timing(),
            balance: ring_core::master::Balance::Weighted,
            redis: Some(Address::new(&self.redis.url().into()).unwrap()),
            listen: None,
            numbers: None,
            grace: LIMIT,
        });
        let (view, stop) = (master.view(), CancellationToken::new());
        let task = tokio::spawn(run(master.run(stop.clone())));
        Running { view, stop, task }
    }

    fn slave(&self, id: &str) -> Running<ring_slave::Seen> {
        let slave = Slave::new(ring_slave::Config {
            bus: self.options(Role::Slave, id),
            timing: timing(),
            listen: None,
            numbers: None,
            grace: LIMIT,
        });
        let (view, stop) = (slave.view(), CancellationToken::new());
        let task = tokio::spawn(run(slave.run(stop.clone())));
        Running { view, stop, task }
    }

    /// What an observer hears: every message of the ring.
    async fn observer(&self) -> async_nats::Subscriber {
        let user = ring_local::Role::Observer;
        let client = async_nats::ConnectOptions::new()
            .user_and_password(user.user().to_owned(), self.nats.password(user))
            .connect(self.nats.url())
            .await
            .unwrap();
        let heard = client.subscribe("ring.>").await.unwrap();
        client.flush().await.unwrap();
        heard
    }
}

async fn run<E: std::fmt::Debug>(role: impl Future<Output = Result<End, E>>) -> End {
    role.await.unwrap()
}

pub(crate) fn timing() -> Timing {
    Timing::for_window(Duration::from_secs(2))
}

/// Listens until a window's orchestrator grants cover the whole ring without gap or overlap, and
/// tells how many there are. Windows before `from` don't count.
async fn covered(heard: &mut async_nats::Subscriber, from: WindowNo) -> (WindowNo, usize) {
    let listening = async {
        let mut windows: BTreeMap<WindowNo, BTreeMap<NodeId, GrantWire>> = BTreeMap::new();
        loop {
            let message = heard.next().await.unwrap();
            let Ok(Publication::Grant(grant)) = wire::decode(&message.payload) else {
                continue;
            };
            if grant.parent.is_none() || grant.window < from {
                continue;
            }
            let window = grant.window;
            let grants = windows.entry(window).or_default();
            grants.insert(grant.holder.clone(), grant);
            if covers(grants.values().map(|grant| grant.range).collect()) {
                return (window, grants.len());
            }
        }
    };
    tokio::time::timeout(LIMIT, listening).await.unwrap()
}

fn covers(mut ranges: Vec<Range>) -> bool {
    ranges.sort_unstable();
    let touches = |pair: &[Range]| pair[0].end().0.checked_add(1) == Some(pair[1].start().0);
    ranges.windows(2).all(touches)
        && ranges.first().map(|range| range.start()) == Some(Range::RING.start())
        && ranges.last().map(|range| range.end()) == Some(Range::RING.end())
}

async fn leads(master: &mut Running<Seen>) -> Seen {
    let leading = master.view.until(|seen| seen.leading.is_some());
    let seen = tokio::time::timeout(LIMIT, leading).await;
    seen.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_forms_and_outlives_its_leader() {
    let servers = Servers::start().await;
    let mut heard = servers.observer().await;
    let mut first = servers.master("m-1");
    let old = leads(&mut first).await.leading.unwrap();
    let mut second = servers.master("m-2");
    let slaves = [servers.slave("s-1"), servers.slave("s-2")];
    let nodes = ["o-1", "o-2", "o-3"].map(|id| orchestrator::start(&servers, id));

    let started = timing().window_at(clock::now().wall);
    let (window, holders) = covered(&mut heard, started).await;
    eprintln!(
        "covered by {holders} after {} windows",
        window.0 - started.0
    );

    // As a kill would: it says no word.
    first.task.abort();
    let killed = timing().window_at(clock::now().wall);
    let new = leads(&mut second).await.leading.unwrap();
    assert!(new.number > old.number, "{old:?} {new:?}");
    let (window, holders) = covered(&mut heard, killed.next().next()).await;
    assert_eq!(holders, 3);
    eprintln!(
        "covered again in window {} after the kill",
        window.0 - killed.0
    );

    for node in nodes {
        node.stop.cancel();
        assert_eq!(node.task.await.unwrap(), End::Drained);
    }
    for slave in slaves {
        slave.stop.cancel();
        assert_eq!(slave.task.await.unwrap(), End::Drained);
    }
    second.stop.cancel();
    assert_eq!(second.task.await.unwrap(), End::Drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_boot_of_an_id_supersedes_the_silent_older_one() {
    let servers = Servers::start().await;
    let mut master = servers.master("m-1");
    leads(&mut master).await;
    let mut heard = servers.observer().await;
    let older = servers.slave("s-1");
    joined(&mut heard, "s-1").await;
    // A twin waits while the holder lives.
    let mut newer = servers.slave("s-1");
    let waiting = newer
        .view
        .until(|seen| seen.reasons.iter().any(|r| r.contains("this id")));
    tokio::time::timeout(LIMIT, waiting).await.unwrap().unwrap();
    older.task.abort();
    joined(&mut heard, "s-1").await;
    let ready = newer.view.until(|seen| seen.reasons.is_empty());
    tokio::time::timeout(LIMIT, ready).await.unwrap().unwrap();
    newer.stop.cancel();
    assert_eq!(newer.task.await.unwrap(), End::Drained);
    master.stop.cancel();
    assert_eq!(master.task.await.unwrap(), End::Drained);
}

async fn joined(heard: &mut async_nats::Subscriber, who: &str) {
    let listening = async {
        loop {
            let message = heard.next().await.unwrap();
            if let Ok(Event {
                fact: Fact::Joined { id, .. },
                ..
            }) = wire::decode(&message.payload)
                && id.as_str() == who
            {
                return;
            }
        }
    };
    tokio::time::timeout(LIMIT, listening).await.unwrap();
}
