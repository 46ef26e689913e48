//! The registry on a real Redis: what must hold when answers get lost and data goes away.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use redis::AsyncCommands as _;
use ring_core::{
    id::{BootId, Cluster, NodeId, Region, Scope, Service},
    registry::{Op, Told},
    timing::Timing,
    token::Range,
    window::{Cut, Seat, SeatState, Term, WindowNo},
    wire::Role,
};
use ring_local::{Binaries, Redis, Settings};
use ring_master::registry::{Address, Holder, Orders, start};
use ring_shell::{clock, tasks::Tasks, telemetry::Meter};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

const TTL: Duration = Duration::from_secs(10);

struct Server {
    redis: Redis,
    _data: TempDir,
}

struct Master {
    orders: Orders,
    told: UnboundedReceiver<Told>,
    boot: BootId,
    _tasks: Tasks,
}

impl Server {
    async fn start() -> Self {
        let programs = Binaries::find(&Settings::from_env()).await.unwrap();
        let data = tempfile::tempdir().unwrap();
        let redis = Redis::start(&programs.redis, data.path()).await.unwrap();
        Self { redis, _data: data }
    }

    fn master(&self, id: &str) -> Master {
        let scope = Scope {
            region: Region::new("eu-1").unwrap(),
            cluster: Cluster::new("c1").unwrap(),
        };
        let tasks = Tasks::new();
        let boot = clock::boot();
        let holder = Holder {
            scope: scope.clone(),
            id: NodeId::new(id).unwrap(),
            boot,
            timing: Timing::default(),
        };
        let address = Address::new(&self.redis.url().into()).unwrap();
        let meter = Meter::new(&scope, Role::Master);
        let (orders, told) = start(holder, address, &tasks.spawner(), meter);
        Master {
            orders,
            told,
            boot,
            _tasks: tasks,
        }
    }

    async fn connection(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.redis.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    async fn flush(&self) {
        let mut connection = self.connection().await;
        let _: () = redis::cmd("FLUSHALL")
            .query_async(&mut connection)
            .await
            .unwrap();
    }
}

impl Master {
    async fn ask(&mut self, op: Op) -> Told {
        self.orders.perform(op);
        let answer = tokio::time::timeout(Duration::from_secs(10), self.told.recv());
        answer.await.unwrap().unwrap()
    }

    async fn acquire(&mut self, floor: u64) -> Told {
        self.ask(Op::Acquire { floor, ttl: TTL }).await
    }

    /// The term under which the lease is mine after this.
    async fn acquired(&mut self, floor: u64) -> Term {
        let told = self.acquire(floor).await;
        let Told::Mine { term, .. } = told else {
            panic!("{told:?}")
        };
        term
    }

    async fn renew(&mut self, number: u64) -> Told {
        let boot = self.boot;
        let term = Term { number, boot };
        self.ask(Op::Renew { term, ttl: TTL }).await
    }

    async fn store(&mut self, cut: &Cut) -> Vec<Cut> {
        let cuts = vec![cut.clone()];
        let told = self.ask(Op::StoreCuts { cuts, keep: TTL }).await;
        let Told::Stored { cuts } = told else {
            panic!("{told:?}")
        };
        cuts
    }
}

fn cut(service: &str, window: u64, by: &Master, slave: &str) -> Cut {
    let boot = by.boot;
    Cut {
        service: Service::new(service).unwrap(),
        window: WindowNo(window),
        term: Term { number: 1, boot },
        seats: vec![Seat {
            slave: NodeId::new(slave).unwrap(),
            boot,
            weight: 1,
            range: Some(Range::RING),
            state: SeatState::Live,
        }],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_repeated_after_a_lost_answer_keeps_its_term() {
    let server = Server::start().await;
    let mut one = server.master("m-1");
    let first = one.acquired(6).await;
    assert_eq!(first.number, 7);
    assert_eq!(one.acquired(6).await, first);
    assert_eq!(one.acquired(100).await, first, "mine stays as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_lease_is_somebody_elses_until_it_is_given_back() {
    let server = Server::start().await;
    let (mut one, mut two) = (server.master("m-1"), server.master("m-2"));
    let term = one.acquired(0).await;
    let Told::Theirs {
        holder,
        term: theirs,
        left,
        clock,
    } = two.acquire(0).await
    else {
        panic!("two masters at once")
    };
    assert_eq!((holder.as_str(), theirs), ("m-1", term));
    assert!(left > Duration::ZERO && left <= TTL, "{left:?}");
    assert!((clock.0 - clock::now().wall.0).abs() < 5_000, "{clock:?}");
    assert!(matches!(two.renew(9).await, Told::Theirs { .. }));
    let stranger = Op::Release { term };
    assert_eq!(two.ask(stranger).await, Told::Released);
    assert!(
        matches!(two.acquire(0).await, Told::Theirs { .. }),
        "not theirs to give back"
    );

    assert_eq!(one.ask(Op::Release { term }).await, Told::Released);
    assert_eq!(two.acquired(0).await.number, term.number + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_do_not_go_back_when_redis_forgets_everything() {
    let server = Server::start().await;
    let (mut one, mut two) = (server.master("m-1"), server.master("m-2"));
    let term = one.acquired(41).await;
    server.flush().await;
    assert!(matches!(one.renew(term.number).await, Told::Mine { term: t, .. } if t == term));
    assert_eq!(one.ask(Op::Release { term }).await, Told::Released);
    assert_eq!(two.acquired(0).await.number, term.number + 1);

    // Flushed while nobody leads: what was heard is the floor.
    server.flush().await;
    let mut three = server.master("m-3");
    assert_eq!(
        three.acquired(term.number + 1).await.number,
        term.number + 2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_succeeded_does_not_restore_its_lease() {
    let server = Server::start().await;
    let (mut one, mut two) = (server.master("m-1"), server.master("m-2"));
    let old = one.acquired(0).await;
    let _: i64 = server
        .connection()
        .await
        .del("ringsaga:{eu-1.c1}:lease")
        .await
        .unwrap();
    let new = two.acquired(0).await;
    assert!(new > old);
    assert_eq!(two.ask(Op::Release { term: new }).await, Told::Released);
    let Told::Theirs { term, left, .. } = one.renew(old.number).await else {
        panic!("terms went back")
    };
    assert_eq!((term, left), (new, Duration::ZERO));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_cut_of_a_window_stays_and_everybody_gets_it() {
    let server = Server::start().await;
    let (mut one, mut two) = (server.master("m-1"), server.master("m-2"));
    let first = cut("orders", 7, &one, "s-1");
    let second = cut("orders", 7, &two, "s-2");
    assert_eq!(one.store(&first).await, std::slice::from_ref(&first));
    assert_eq!(two.store(&second).await, std::slice::from_ref(&first));
    let other = cut("carts", 7, &two, "s-2");
    assert_eq!(two.store(&other).await, std::slice::from_ref(&other));

    let windows = vec![WindowNo(6), WindowNo(7)];
    let Told::Loaded { cuts, .. } = one.ask(Op::LoadCuts { windows }).await else {
        panic!("not loaded")
    };
    assert_eq!(cuts.len(), 2);
    assert!(cuts.contains(&first) && cuts.contains(&other), "{cuts:?}");
    let ttl: i64 = server
        .connection()
        .await
        .pttl("ringsaga:{eu-1.c1}:cuts:7")
        .await
        .unwrap();
    assert!(ttl > 0, "cuts are not kept for ever: {ttl}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_round_robin_counts_on_for_whoever_asks() {
    let server = Server::start().await;
    let (mut one, mut two) = (server.master("m-1"), server.master("m-2"));
    let service = Service::new("orders").unwrap();
    for (expected, who) in [(0, &mut one), (1, &mut two)] {
        let service = service.clone();
        let told = who.ask(Op::Count { service }).await;
        assert!(
            matches!(told, Told::Counted { count, .. } if count == expected),
            "{told:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_or_dies_is_unreachable_soon_and_used_again_when_back() {
    let mut server = Server::start().await;
    let mut one = server.master("m-1");
    let term = one.acquired(0).await;
    server.redis.pause().await.unwrap();
    let asked = clock::now().mono;
    assert!(matches!(
        one.renew(term.number).await,
        Told::Unreachable { .. }
    ));
    let waited = clock::now().mono.since(asked);
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    server.redis.resume().await.unwrap();
    again(&mut one, term).await;

    server.redis.kill9().await.unwrap();
    assert!(matches!(
        one.renew(term.number).await,
        Told::Unreachable { .. }
    ));
    server.redis.restart().await.unwrap();
    again(&mut one, term).await;
}

async fn again(master: &mut Master, term: Term) {
    let limit = clock::now().mono.plus(Duration::from_secs(10));
    loop {
        let told = master.renew(term.number).await;
        if let Told::Mine { term: t, .. } = told {
            return assert_eq!(t, term);
        }
        assert!(clock::now().mono < limit, "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_may_not_write_is_unreachable() {
    let server = Server::start().await;
    let mut one = server.master("m-1");
    let term = one.acquired(0).await;
    let mut connection = server.connection().await;
    let replica = |host: &str, port: &str| {
        let mut command = redis::cmd("REPLICAOF");
        command.arg(host).arg(port);
        command
    };
    let _: () = replica("127.0.0.1", "1")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert!(matches!(
        one.renew(term.number).await,
        Told::Unreachable { .. }
    ));
    let _: () = replica("NO", "ONE")
        .query_async(&mut connection)
        .await
        .unwrap();
    again(&mut one, term).await;
}
