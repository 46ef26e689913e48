//! What happens between the store and its database: answers that never arrive, servers that go
//! away and come back, commits that no standby confirmed.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test names the one answer it expects, and fails at any other"
)]

mod store_support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use orchestrator_lib::store::{Config, Store, migrate};
use ring_core::{
    store::{Look, Renewed, Started, Written},
    token::Range,
};
use ring_local::{Binaries, Durability, Postgres, Settings};
use store_support::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Stands between the store and the server. Armed, it lets the next question through and drops its
/// answer with the connection; mute, it keeps connections and passes no answer on.
struct Cutter {
    port: u16,
    fault: Fault,
    /// Connections to a server that was not there.
    refused: Arc<AtomicU32>,
}

#[derive(Clone, Default)]
struct Fault {
    armed: Arc<AtomicBool>,
    mute: Arc<AtomicBool>,
}

impl Cutter {
    async fn before(server: u16) -> Result<Self, Box<dyn std::error::Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (fault, refused) = (Fault::default(), Arc::new(AtomicU32::new(0)));
        let (cut, away) = (fault.clone(), Arc::clone(&refused));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                    tokio::spawn(relay(client, server, cut.clone()));
                } else {
                    away.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        Ok(Self {
            port,
            fault,
            refused,
        })
    }

    /// The address of what stands behind, through this.
    fn through(&self, url: &str, server: u16) -> String {
        url.replace(&format!(":{server}/"), &format!(":{}/", self.port))
    }
}

async fn relay(client: TcpStream, server: TcpStream, fault: Fault) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move {
        tokio::io::copy(&mut from_client, &mut to_server).await.ok();
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read) = from_server.read(&mut buffer).await {
        if read == 0 || fault.armed.swap(false, Ordering::SeqCst) {
            return;
        }
        if fault.mute.load(Ordering::SeqCst) {
            continue;
        }
        if to_client.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// The shortest lease that is allowed: the limits of a cut node follow from it.
const SHORT: Duration = Duration::from_secs(3);

/// A node whose connections go through a cutter, warmed up so that statements are prepared.
async fn cut_node(bench: &Bench) -> Result<(Node, Cutter), Box<dyn std::error::Error>> {
    let mut address: tokio_postgres::Config = bench.config.url.parse()?;
    let server = *address.get_ports().first().ok_or("no port")?;
    let cutter = Cutter::before(server).await?;
    address.password("");
    let mut config = bench.config.clone().for_lease(SHORT);
    config.url = cutter.through(&config.url, server);
    config.claim_connections = 1;
    let store = Store::new(config, scope(), service())?;
    let me = store.open(&process("cut", &["buy"]), LEASE).await?;
    let node = Node { store, me };
    let warm = node.started("buy", "warm").await?;
    node.store.write(settle(&warm)).await?;
    node.due(1).await?;
    Ok((node, cutter))
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_committed() -> Checked {
    let bench = Bench::new().await?;
    let (node, cutter) = cut_node(&bench).await?;
    let claimed = node.started("buy", "k").await?;
    cutter.fault.armed.store(true, Ordering::SeqCst);
    let written = node.store.write(next(&claimed, 1)).await?;
    assert_eq!(written, Written::Already { wake_seq: 0 });
    Ok(())
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_new_all_the_same() -> Checked {
    let bench = Bench::new().await?;
    let (node, cutter) = cut_node(&bench).await?;
    cutter.fault.armed.store(true, Ordering::SeqCst);
    let claimed = node.started("buy", "k").await?;
    let written = node.store.write(next(&claimed, 1)).await?;
    assert_eq!(written, Written::Done { wake_seq: 0 });
    Ok(())
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_adopted_by_its_nonces() -> Checked {
    let bench = Bench::new().await?;
    let (node, cutter) = cut_node(&bench).await?;
    for i in 0..5 {
        node.parked("buy", &format!("k{i}")).await?;
    }
    cutter.fault.armed.store(true, Ordering::SeqCst);
    let rows = node.due(10).await?;
    assert_eq!(rows.len(), 5);
    assert!(
        !cutter.fault.armed.load(Ordering::SeqCst),
        "the answer was cut"
    );
    let written = node.store.write(next(&rows[0], 1)).await?;
    assert_eq!(written, Written::Done { wake_seq: 0 });
    Ok(())
}

/// A host that vanished answers nothing, not even that a connection is gone.
#[tokio::test]
async fn a_renewal_that_nobody_answers_gives_up_within_a_third_of_the_lease() -> Checked {
    let bench = Bench::new().await?;
    let (node, cutter) = cut_node(&bench).await?;
    assert!(matches!(
        node.store.renew(node.me, SHORT).await?,
        Renewed::Held { .. }
    ));
    cutter.fault.mute.store(true, Ordering::SeqCst);
    let asked = node.store.renew(node.me, SHORT);
    let margin = Duration::from_millis(200);
    let answer = tokio::time::timeout(SHORT / 3 + margin, asked).await?;
    assert!(answer.is_err_and(|error| error.is_unreachable()));
    let claim = node.due(1);
    let answer = tokio::time::timeout(SHORT * 2, claim).await?;
    assert!(answer.is_err());
    cutter.fault.mute.store(false, Ordering::SeqCst);
    assert!(matches!(
        node.store.renew(node.me, SHORT).await?,
        Renewed::Held { .. }
    ));
    Ok(())
}

/// The claim commits after its caller gave up: the row is a stray, and goes back.
#[tokio::test]
async fn a_claim_that_commits_too_late_is_a_stray_and_goes_back() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    node.parked("buy", "k").await?;
    bench
        .run(
            "create function slow() returns trigger language plpgsql as \
             $$begin perform pg_sleep(0.8); return new; end$$; \
             create trigger slow before update on ringsaga.transaction for each row \
             when (new.state = 'running') execute function slow()",
        )
        .await?;
    let hasty = bench.config.clone();
    let store = Store::new(
        Config {
            call_timeout: Duration::from_millis(2_000),
            ..hasty
        },
        scope(),
        service(),
    )?;
    let me = store.open(&process("b", &["buy"]), LEASE).await?;
    let impatient = Node { store, me };
    let asked = tokio::time::timeout(
        Duration::from_millis(300),
        impatient.claim(
            Look::Due {
                ranges: vec![Range::RING],
            },
            1,
        ),
    );
    assert!(asked.await.is_err(), "nobody waits for it any more");
    let mut strays = Vec::new();
    for _ in 0..100 {
        let renewed = impatient.store.renew(me, LEASE).await?;
        let Renewed::Held { running, .. } = renewed else {
            return Err("dead".into());
        };
        strays = running;
        if !strays.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(strays.len(), 1);
    assert_eq!(impatient.store.hand_back(me, &strays).await?.len(), 1);
    bench
        .run("drop trigger slow on ringsaga.transaction")
        .await?;
    assert_eq!(node.due(10).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_commit_with_a_warning_counts_as_unknown() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let claimed = node.started("buy", "k").await?;
    bench
        .run(
            "create function warn() returns trigger language plpgsql as \
             $$begin raise warning 'not replicated'; return new; end$$; \
             create trigger warn before update on ringsaga.transaction for each row \
             execute function warn()",
        )
        .await?;
    let error = node.store.write(next(&claimed, 1)).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert_eq!(node.store.unconfirmed_commits(), 1);
    Ok(())
}

#[tokio::test]
async fn a_database_that_is_down_at_start_is_waited_for_and_one_that_returns_is_used() -> Checked {
    let data = tempfile::tempdir()?;
    open_to_all(data.path())?;
    let programs = Binaries::find(&Settings::from_env()).await?.postgres;
    let mut server =
        Postgres::start(&programs, data.path(), "store-test", Durability::Fast).await?;
    let port: tokio_postgres::Config = server.url().parse()?;
    let port = *port.get_ports().first().ok_or("no port")?;
    let cutter = Cutter::before(port).await?;
    let config = Config::new(cutter.through(&server.url(), port));
    let store = Store::new(config.clone(), scope(), service())?;
    let unmigrated = store.ready().await.unwrap_err();
    let cause = std::error::Error::source(&unmigrated).map(ToString::to_string);
    assert_eq!(
        cause.as_deref(),
        Some("the database has no store yet: run `ringsaga migrate`")
    );
    migrate(&config).await?;
    server.kill9().await?;
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.ready().await }
    });
    let tried = async {
        while cutter.refused.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), tried).await?;
    server.restart().await?;
    waiting.await??;

    let me = store.open(&process("a", &["buy"]), LEASE).await?;
    let node = Node { store, me };
    let claimed = node.started("buy", "k").await?;
    server.restart().await?;
    let written = node.store.write(next(&claimed, 1)).await?;
    assert!(matches!(
        written,
        Written::Done { .. } | Written::Already { .. }
    ));
    assert!(matches!(
        node.store.renew(me, LEASE).await?,
        Renewed::Held { .. }
    ));
    node.store.close().await;
    server.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_address_is_read_with_every_sslmode_and_a_bad_one_is_refused() -> Checked {
    for mode in ["disable", "prefer", "require", "verify-ca", "verify-full"] {
        let url = format!("postgres://u:p@127.0.0.1:1/db?sslmode={mode}");
        Store::new(Config::new(url), scope(), service())?;
    }
    let bad = Store::new(Config::new("postgres://["), scope(), service());
    assert!(!bad.unwrap_err().is_unreachable());
    let away = Store::new(
        Config::new("postgres://u@127.0.0.1:1/db"),
        scope(),
        service(),
    )?;
    let error = away.standing().await.unwrap_err();
    assert!(error.is_unreachable());
    let started = away.start(None, start("buy", "k", None)).await;
    assert!(started.is_err_and(|e| e.is_unreachable()));
    assert_eq!(
        error.to_string(),
        "could not ask what the database promises: the database can't be reached or did not \
         answer in time"
    );
    Ok(())
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_not_used() -> Checked {
    let bench = Bench::new().await?;
    let name: String = bench.ask("select current_database()::text").await?;
    bench
        .run(&format!(
            "alter database \"{name}\" set default_transaction_read_only = on"
        ))
        .await?;
    let error = bench.store()?.standing().await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    Ok(())
}

/// The server runs as another user when the tests run as root.
fn open_to_all(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}

#[tokio::test]
async fn a_start_for_a_dead_database_leaves_nothing_half_done() -> Checked {
    let bench = Bench::new().await?;
    let node = bench.node("a", &["buy"]).await?;
    let start = start("buy", "k", Some(nonce()));
    let task = tokio::spawn({
        let (store, me, start) = (node.store.clone(), node.me, start.clone());
        async move { store.start(Some(me), start).await }
    });
    bench
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where application_name = 'ringsaga write' and datname = current_database()",
        )
        .await?;
    assert!(matches!(task.await??, Started::New(Some(_))));
    let rows: i64 = bench
        .ask("select count(*) from ringsaga.transaction")
        .await?;
    assert_eq!(rows, 1);
    Ok(())
}
