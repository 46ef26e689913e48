//! A migrated database a test, processes that claim and write on it, and a second session to
//! interleave with.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "names and values that are right by sight"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test names the one answer it expects"
)]

pub(crate) mod alert_cases;
pub(crate) mod cases;
pub(crate) mod desk;
pub(crate) mod operator_cases;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orchestrator_lib::store::{Claims, Config, Process, Store, migrate};
use ring_core::{
    id::{
        BootId, Cluster, NodeId, Nonce, Region, SagaName, Scope, Service, StepName, TransactionId,
    },
    saga::{Attempt, Class, Direction, Ending, Entry, Payload, Position, Text},
    store::{Capability, Claim, Claimed, Fence, Incarnation, Look, Start, Started, To, Write},
    time::Wall,
    token::{Range, Token},
};
use ring_local::{Set, Settings, TestDatabase};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

pub(crate) type Checked = Result<(), Box<dyn std::error::Error>>;

/// Longer than any test: nobody dies by accident.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// One test's database.
pub(crate) struct Bench {
    database: TestDatabase,
    /// After the database, which is dropped on its server.
    _set: Arc<Set>,
    pub(crate) config: Config,
}

/// A process with a lease.
pub(crate) struct Node {
    pub(crate) store: Store,
    pub(crate) me: Incarnation,
}

impl Bench {
    pub(crate) async fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let prepare = |url: String| async move {
            migrate(&Config::new(url)).await?;
            Ok(())
        };
        let database = TestDatabase::from_template(set.addresses(), "store", prepare).await?;
        let config = Config::new(database.url());
        Ok(Self {
            database,
            _set: set,
            config,
        })
    }

    pub(crate) fn store(&self) -> Result<Store, Box<dyn std::error::Error>> {
        Ok(Store::new(self.config.clone(), scope(), service())?)
    }

    /// A retry node that can run these sagas, version 1.
    pub(crate) async fn node(
        &self,
        name: &str,
        sagas: &[&str],
    ) -> Result<Node, Box<dyn std::error::Error>> {
        let store = self.store()?;
        let me = store.open(&process(name, sagas), LEASE).await?;
        Ok(Node { store, me })
    }

    /// Another session, for what a zombie or a neighbour does.
    pub(crate) async fn session(&self) -> Result<Client, Box<dyn std::error::Error>> {
        let (client, connection) = tokio_postgres::connect(self.database.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// One value that a query finds.
    pub(crate) async fn ask<T>(&self, sql: &str) -> Result<T, Box<dyn std::error::Error>>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        Ok(self
            .session()
            .await?
            .query_one(sql, &[])
            .await?
            .try_get(0)?)
    }

    pub(crate) async fn run(&self, sql: &str) -> Checked {
        Ok(self.session().await?.batch_execute(sql).await?)
    }

    /// The lease of a process is over, and its death is written by `by`.
    pub(crate) async fn kill(&self, dead: Incarnation, by: &Node) -> Checked {
        let late = format!(
            "update ringsaga.owner set lease_until = now() - interval '1 s' where incarnation = {}",
            dead.0
        );
        self.run(&late).await?;
        let buried = by.store.declare_dead(by.me).await?;
        assert!(buried.iter().any(|b| b.incarnation == dead), "{buried:?}");
        Ok(())
    }
}

impl Node {
    /// Starts and claims a transaction.
    pub(crate) async fn started(
        &self,
        saga: &str,
        key: &str,
    ) -> Result<Claimed, Box<dyn std::error::Error>> {
        let start = start(saga, key, Some(nonce()));
        match self.store.start(Some(self.me), start.clone()).await? {
            Started::New(Some(fence)) => Ok(running(&start, fence)),
            other => Err(format!("not started: {other:?}").into()),
        }
    }

    /// Stores a transaction that nobody runs yet.
    pub(crate) async fn parked(
        &self,
        saga: &str,
        key: &str,
    ) -> Result<TransactionId, Box<dyn std::error::Error>> {
        let start = start(saga, key, None);
        match self.store.start(None, start.clone()).await? {
            Started::New(None) => Ok(start.id),
            other => Err(format!("not started: {other:?}").into()),
        }
    }

    pub(crate) async fn claim(
        &self,
        look: Look,
        most: usize,
    ) -> Result<Claims, Box<dyn std::error::Error>> {
        self.claim_with(look, most, true).await
    }

    pub(crate) async fn claim_with(
        &self,
        look: Look,
        most: usize,
        suspects: bool,
    ) -> Result<Claims, Box<dyn std::error::Error>> {
        let claim = Claim {
            look,
            nonces: (0..most).map(|_| nonce()).collect(),
            suspects,
            without: BTreeSet::new(),
        };
        Ok(self.store.claim(self.me, &claim).await?)
    }

    /// Claims what is due anywhere on the ring.
    pub(crate) async fn due(
        &self,
        most: usize,
    ) -> Result<Vec<Claimed>, Box<dyn std::error::Error>> {
        let ranges = vec![Range::RING];
        Ok(self.claim(Look::Due { ranges }, most).await?.rows)
    }
}

pub(crate) fn scope() -> Scope {
    Scope {
        region: Region::new("eu").unwrap(),
        cluster: Cluster::new("main").unwrap(),
    }
}

pub(crate) fn service() -> Service {
    Service::new("orders").unwrap()
}

pub(crate) fn nonce() -> Nonce {
    Nonce(Uuid::new_v4())
}

pub(crate) fn process(name: &str, sagas: &[&str]) -> Process {
    Process {
        boot: BootId(Uuid::now_v7()),
        instance: NodeId::new(name).unwrap(),
        retry_node: true,
        capabilities: sagas.iter().map(|saga| capability(saga)).collect(),
    }
}

pub(crate) fn capability(saga: &str) -> Capability {
    Capability {
        saga: SagaName::new(saga).unwrap(),
        version: 1,
        digest: "d1".to_owned(),
    }
}

pub(crate) fn start(saga: &str, key: &str, claim: Option<Nonce>) -> Start {
    let id = Uuid::new_v4();
    let (high, _) = id.as_u64_pair();
    Start {
        id: TransactionId(id),
        token: Token(i64::from_be_bytes(high.to_be_bytes())),
        saga: SagaName::new(saga).unwrap(),
        version: 1,
        digest: "d1".to_owned(),
        key: key.to_owned(),
        input: Payload::new(r#"{"item":"book"}"#).unwrap(),
        lifetime: Duration::from_secs(3_600),
        claim,
    }
}

/// What a start that was its own claim is to its owner.
pub(crate) fn running(start: &Start, fence: Fence) -> Claimed {
    Claimed {
        id: start.id,
        saga: start.saga.clone(),
        version: start.version,
        digest: start.digest.clone(),
        fence,
        position: at(0),
        doubt: false,
        attempts: 0,
        deaths: 0,
        wake_seq: 0,
        wakes: Vec::new(),
        created_at: Wall(0),
        expires_at: Wall(0),
        opened_at: Wall(0),
        progressed_at: Wall(0),
        retry: None,
        claimed_at: Wall(0),
        taken: ring_core::store::Taken::Started,
        input: start.input.clone(),
        log: Vec::new(),
    }
}

pub(crate) fn at(seq: u32) -> Position {
    Position {
        direction: Direction::Forward,
        seq,
    }
}

/// The record of a success at `seq`.
pub(crate) fn done(seq: u32) -> Entry {
    Entry {
        position: at(seq),
        step: StepName::new(format!("step-{seq}")).unwrap(),
        attempt: Attempt::Done(Payload::new("7").unwrap()),
        attempts: 1,
        started_at: Wall(1_000),
        ended_at: Wall(2_000),
    }
}

/// The write of a step's success, which is the intent of the next.
pub(crate) fn next(claimed: &Claimed, number: u32) -> Write {
    let seq = claimed.position.seq + number - 1;
    Write {
        id: claimed.id,
        fence: claimed.fence,
        number,
        from: at(seq),
        wake_seq: claimed.wake_seq,
        to: To::Next(at(seq + 1)),
        entry: Some(done(seq)),
    }
}

/// The write of a step's failure for now.
pub(crate) fn park(claimed: &Claimed, after: Duration) -> Write {
    Write {
        id: claimed.id,
        fence: claimed.fence,
        number: 1,
        from: claimed.position,
        wake_seq: claimed.wake_seq,
        to: To::Park {
            after,
            attempts: 1,
            doubt: true,
            why: Text::new("503"),
            waiting_on: None,
        },
        entry: Some(Entry {
            attempt: Attempt::Paused {
                class: Class::Unknown,
                error: Text::new("503"),
                doubt: true,
            },
            ..done(claimed.position.seq)
        }),
    }
}

/// The write of a good end.
pub(crate) fn settle(claimed: &Claimed) -> Write {
    Write {
        to: To::Settle {
            ending: Ending::Completed(Payload::new("\"ok\"").unwrap()),
            why: None,
        },
        entry: Some(done(claimed.position.seq)),
        ..next(claimed, 1)
    }
}

/// Everything back to anyone.
pub(crate) fn hand_back(claimed: &Claimed) -> Write {
    Write {
        to: To::HandBack {
            attempts: claimed.attempts,
            doubt: false,
        },
        entry: None,
        ..next(claimed, 1)
    }
}
