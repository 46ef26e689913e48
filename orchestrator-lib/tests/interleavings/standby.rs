//! A commit that waits for a synchronous standby that is not there. Cancelled, Postgres answers
//! with success and a warning, and no time limit on statements ends the wait: the answer is unknown
//! until the same write, sent again, is found.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use orchestrator_lib::store::{Config, Store, migrate};
use ring_core::store::Written;
use ring_local::{Binaries, Durability, Postgres, Settings};
use tokio_postgres::{Client, NoTls};

use super::lane::Fallible;
use crate::store_support::{self as support, Checked, LEASE, Node};

#[tokio::test]
async fn a_commit_that_no_standby_confirms_is_unknown_even_when_cancelled() -> Checked {
    let data = tempfile::tempdir()?;
    // The server runs as another user when the tests run as root.
    std::fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755))?;
    let programs = Binaries::find(&Settings::from_env()).await?.postgres;
    let run = "standby-test";
    let mut server = Postgres::start(&programs, data.path(), run, Durability::Fast).await?;
    let config = Config::new(server.url());
    migrate(&config).await?;
    let (admin, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
    tokio::spawn(connection);
    let store = Store::new(config, support::scope(), support::service())?;
    let me = store.open(&support::process("a", &["buy"]), LEASE).await?;
    let node = Node { store, me };
    let claimed = node.started("buy", "k").await?;
    standby(&admin, "nobody").await?;

    let write = support::next(&claimed, 1);
    let asked = tokio::spawn({
        let (store, write) = (node.store.clone(), write.clone());
        async move { store.write(write).await }
    });
    cancel_the_commit(&admin).await?;
    let error = asked.await?.unwrap_err();
    assert!(error.is_unreachable(), "neither done nor lost: {error}");
    assert_eq!(node.store.unconfirmed_commits(), 1);

    standby(&admin, "").await?;
    let again = node.store.write(write).await?;
    assert_eq!(again, Written::Already { wake_seq: 0 });
    let next = node.store.write(support::next(&claimed, 2)).await?;
    assert_eq!(next, Written::Done { wake_seq: 0 });
    node.store.close().await;
    server.stop().await?;
    Ok(())
}

/// Which standby a commit waits for, and every session knows.
async fn standby(admin: &Client, name: &str) -> Fallible<()> {
    let set = format!("alter system set synchronous_standby_names = '{name}'");
    admin.batch_execute(&set).await?;
    admin.execute("select pg_reload_conf()", &[]).await?;
    let shown = "select current_setting('synchronous_standby_names')";
    for _ in 0..5_000 {
        if admin.query_one(shown, &[]).await?.get::<_, String>(0) == name {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err("the setting never came".into())
}

async fn cancel_the_commit(admin: &Client) -> Fallible<()> {
    let waiting = "select pg_cancel_backend(pid) from pg_stat_activity \
        where wait_event = 'SyncRep' and application_name = 'ringsaga write'";
    for _ in 0..5_000 {
        if !admin.query(waiting, &[]).await?.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err("no commit waits for a standby".into())
}
