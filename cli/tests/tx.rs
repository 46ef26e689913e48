//! `ringsaga tx` from outside, on real Postgres: what is printed, and the exit codes.

use std::{error::Error, process::Command, sync::Arc, time::Duration};

use assert_cmd::assert::OutputAssertExt as _;
use orchestrator_lib::store::{Config, Store, migrate};
use predicates::str::contains;
use ring_core::{
    id::{Cluster, Region, SagaName, Scope, Service, TransactionId},
    saga::Payload,
    store::{Start, Started},
    token::Token,
};
use ring_local::{Set, Settings, TestDatabase};
use uuid::Uuid;

type Checked = Result<(), Box<dyn Error>>;

struct Desk {
    database: TestDatabase,
    _set: Arc<Set>,
    store: Store,
}

impl Desk {
    async fn new() -> Result<Self, Box<dyn Error>> {
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let prepare = |url: String| async move {
            migrate(&Config::new(url)).await?;
            Ok(())
        };
        let database = TestDatabase::from_template(set.addresses(), "store", prepare).await?;
        let scope = Scope {
            region: Region::new("eu")?,
            cluster: Cluster::new("main")?,
        };
        let store = Store::new(Config::new(database.url()), scope, Service::new("orders")?)?;
        Ok(Self {
            database,
            _set: set,
            store,
        })
    }

    async fn parked(&self, key: &str) -> Result<TransactionId, Box<dyn Error>> {
        let start = Start {
            id: TransactionId(Uuid::now_v7()),
            token: Token(7),
            saga: SagaName::new("buy")?,
            version: 1,
            digest: "d".to_owned(),
            key: key.to_owned(),
            input: Payload::new(r#"{"item":"book"}"#)?,
            lifetime: Duration::from_secs(3_600),
            claim: None,
        };
        let started = self.store.start(None, start.clone()).await?;
        let Started::New(None) = started else {
            return Err(format!("{started:?}").into());
        };
        Ok(start.id)
    }

    async fn run(&self, sql: &str) -> Checked {
        let url = self.database.url();
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let driver = tokio::spawn(connection);
        client.batch_execute(sql).await?;
        drop(client);
        driver.await??;
        Ok(())
    }

    fn tx(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringsaga"));
        command
            .arg("tx")
            .args(args)
            .env("DATABASE_URL", self.database.url())
            .env("RINGSAGA__REGION", "eu")
            .env("RINGSAGA__CLUSTER", "main")
            .env("USER", "eva");
        command
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_done_once_and_every_refusal_has_its_exit_code() -> Checked {
    let desk = Desk::new().await?;
    let id = desk.parked("k").await?.to_string();
    desk.run(
        "update ringsaga.transaction set state = 'disabled', due_at = null, settled_at = now()",
    )
    .await?;
    let listed = desk
        .tx(&["list", "--state", "disabled,terminated", "-o", "json"])
        .output()?;
    let rows: serde_json::Value = serde_json::from_slice(&listed.stdout)?;
    assert_eq!(rows[0]["id"].as_str(), Some(id.as_str()), "{rows}");
    desk.tx(&["why", &id])
        .assert()
        .code(0)
        .stdout(contains("disabled"));
    desk.tx(&["restore", &id, "--reason", " "]).assert().code(2);
    desk.tx(&["restore", "--reason", "x"])
        .assert()
        .code(2)
        .stderr(contains("--all"));
    desk.tx(&["restore", "--all", "--reason", "x"])
        .assert()
        .code(2)
        .stderr(contains("--yes"));
    let dry = ["restore", "--all", "--dry-run", "--reason", "x"];
    desk.tx(&dry)
        .assert()
        .code(0)
        .stderr(contains("restore: 1"));
    desk.tx(&["restore", &id, "--reason", "fixed"])
        .assert()
        .code(0);
    let again = desk.tx(&["restore", &id, "--reason", "fixed"]).assert();
    again.code(5).stderr(contains("last order: restore by eva"));
    let gone = Uuid::nil().to_string();
    desk.tx(&["show", &gone]).assert().code(3);
    let shown = desk.tx(&["show", "--key", "k"]).assert().code(0);
    shown.stdout(contains("fixed"));
    let nobody = desk
        .tx(&["list", "--database", "postgres://u@127.0.0.1:1/d"])
        .assert();
    nobody.code(4);
    Ok(())
}

#[test]
fn an_ids_region_is_told_from_the_registry_alone() {
    let region = |regions: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringsaga"));
        command
            .args(["tx", "region", "0195c2a8-7f00-8007-8000-000000000001"])
            .env("RINGSAGA__REGIONS", regions);
        command.assert()
    };
    region("eu=7,us=2").code(0).stdout(contains("eu"));
    region("us=2").code(3);
    region("eu=7,us=7")
        .code(2)
        .stderr(contains("share the code 7"));
}
