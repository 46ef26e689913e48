//! Zombies, killers of processes, lifetimes and databases that go away.

mod support;

use std::{sync::Arc, time::Duration};

use orchestrator_lib::{Ended, Node, Saga, Step};
use ring_local::{Binaries, Durability, Postgres, Settings};
use support::{Checked, LONG, Lab, Ledger, Reply, act, end, quick, saga, undo};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_zombies_result_is_lost_and_it_works_on_under_a_new_lease() -> Checked {
    let lab = Lab::new().await?;
    // Answers after it was declared dead, and after the other one is done.
    lab.ledger
        .next("b", [Reply::Slow(Duration::from_millis(2_500))]);
    let first = lab.node("n1").await?;
    let started = first.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("b", 1).await;
    lab.sql("update ringsaga.owner set dead_at = now()").await?;
    let second = lab.node("n2").await?;
    assert!(end(&second, started.id).await?.is_completed());
    let next = loop {
        // Its own death is news to it only with the next renewal.
        match first.start(&saga(quick()).build()?, "k2", 7).await {
            Ok(next) => break next,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(end(&first, next.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "c", "a", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn a_transaction_that_kills_its_processes_is_quarantined_and_its_neighbour_is_not() -> Checked
{
    let lab = Lab::new().await?;
    lab.ledger.next("x", vec![Reply::Slow(HOUR); 5]);
    let deadly = Saga::<u32>::new("deadly", 1)
        .step(Step::new("x", act))
        .build()?;
    let node = async |n: usize| {
        let node = Node::builder(lab.config(&format!("n{n}"))?)
            .saga(saga(quick()).build()?)
            .saga(deadly.clone())
            .retry_node(true)
            .provide(lab.ledger.clone());
        Ok::<_, Box<dyn std::error::Error>>(node.start().await?)
    };
    let mut living = node(0).await?;
    let killer = living.start(&deadly, "killer", 7).await?;
    // An innocent that runs when the first process dies.
    lab.ledger.next("a", [Reply::Slow(HOUR)]);
    let innocent = living.start(&saga(quick()).build()?, "innocent", 8).await?;
    lab.ledger.wait_for("a", 1).await;
    for death in 1..=5 {
        lab.ledger.wait_for("x", death).await;
        drop(living);
        living = node(death).await?;
    }
    let ended = end(&living, killer.id).await?;
    assert!(matches!(ended, Ended::Quarantined { .. }), "{ended:?}");
    assert!(end(&living, innocent.id).await?.is_completed());
    Ok(())
}

#[tokio::test]
async fn what_outlives_its_lifetime_is_disabled() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("a", vec![Reply::Transient; 1000]);
    let short = || {
        saga(quick().until_the_lifetime_ends())
            .lifetime(Duration::from_secs(2))
            .build()
    };
    let node = lab.node_with("n1", short()?).await?;
    let started = node.start(&short()?, "k", 7).await?;
    let ended = end(&node, started.id).await?;
    assert!(matches!(ended, Ended::Disabled { .. }), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn retries_that_run_out_are_compensated() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("b", vec![Reply::Transient; 4]);
    let node = lab
        .node_with("n1", saga(quick().attempts(4)).build()?)
        .await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    let Ended::Compensated { reason } = end(&node, started.id).await? else {
        panic!("not compensated");
    };
    assert_eq!(reason, "b: away");
    // Not applied for certain, four times: nothing of it to undo.
    assert_eq!(lab.ledger.calls(), ["a", "b", "b", "b", "b", "undo a"]);
    Ok(())
}

#[tokio::test]
async fn a_database_that_goes_away_and_comes_back_loses_and_doubles_nothing() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let data = tempfile::Builder::new()
        .prefix("ringsaga-test-")
        .tempdir()?;
    let mut server =
        Postgres::start(&binaries.postgres, data.path(), "r", Durability::Fast).await?;
    let lab = Lab::new().await?;
    let mut config = lab.config("n1")?;
    config.database.url = server.url().into();
    let ledger = Ledger::default();
    let answer = ledger.hold("b");
    let node = Node::builder(config)
        .saga(saga(quick()).build()?)
        .retry_node(true)
        .provide(ledger.clone())
        .start()
        .await?;
    let started = node.start(&saga(quick()).build()?, "k", 7).await?;
    ledger.wait_for("b", 1).await;
    server.kill9().await?;
    // The step answers while the database is away.
    answer.add_permits(1);
    ledger.wait_for_answer("b").await;
    let noticed = || !node.ready().is_empty();
    support::eventually("it misses the database", noticed).await;
    server.restart().await?;
    assert!(end(&node, started.id).await?.is_completed());
    let calls = ledger.calls();
    // A call that was open at the lease's end is in doubt and repeated, under the same key.
    assert!(calls.len() <= 4, "{calls:?}");
    assert_eq!(ledger.keys().len(), 3);
    support::eventually("ready again", || node.ready().is_empty()).await;
    node.drain().await;
    Ok(server.stop().await?)
}

#[tokio::test]
async fn a_start_does_not_wait_for_a_database_that_hangs() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let data = tempfile::Builder::new()
        .prefix("ringsaga-test-")
        .tempdir()?;
    let mut server =
        Postgres::start(&binaries.postgres, data.path(), "r", Durability::Fast).await?;
    let lab = Lab::new().await?;
    let mut config = lab.config("n1")?;
    config.database.url = server.url().into();
    let place = saga(quick()).build()?;
    let node = Node::builder(config)
        .saga(place.clone())
        .retry_node(true)
        .provide(Ledger::default())
        .start()
        .await?;
    server.pause().await?;
    let refused = tokio::time::timeout(LONG, node.start(&place, "k", 7)).await?;
    let refused = refused.map(|started| started.id).unwrap_err();
    assert!(refused.to_string().contains("ask again"), "{refused}");
    server.resume().await?;
    let again = loop {
        match node.start(&place, "k", 7).await {
            Ok(again) => break again,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    assert!(end(&node, again.id).await?.is_completed());
    node.drain().await;
    Ok(server.stop().await?)
}

#[tokio::test]
async fn a_node_waits_for_a_database_that_is_down_at_start() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let data = tempfile::Builder::new()
        .prefix("ringsaga-test-")
        .tempdir()?;
    let mut server =
        Postgres::start(&binaries.postgres, data.path(), "r", Durability::Fast).await?;
    let lab = Lab::new().await?;
    let mut config = lab.config("n1")?;
    config.database.url = server.url().into();
    server.stop().await?;
    // What it asks in vain, it asks here.
    let at: tokio_postgres::Config = server.url().parse()?;
    let tries = tokio::net::TcpListener::bind(("127.0.0.1", at.get_ports()[0])).await?;
    let waiting = Node::builder(config).saga(saga(quick()).build()?).start();
    let starting = tokio::spawn(waiting);
    for _ in 0..2 {
        let (connection, _) = tokio::time::timeout(LONG, tries.accept()).await??;
        drop(connection);
    }
    assert!(!starting.is_finished());
    drop(tries);
    server.restart().await?;
    let node = tokio::time::timeout(LONG, starting).await???;
    assert!(node.ready().is_empty());
    node.drain().await;
    Ok(server.stop().await?)
}

#[tokio::test]
async fn an_old_version_goes_on_beside_the_new_one() -> Checked {
    let lab = Lab::new().await?;
    let version = |version| {
        let name = if version == 1 { "old" } else { "new" };
        let step = |name| Step::new(name, act).compensate(undo).retry(quick());
        Saga::<u32>::new("versioned", version)
            .step(step("a"))
            .step(step(name))
            .build()
    };
    lab.ledger.next("old", [Reply::Slow(HOUR)]);
    let before = lab.node_with("n1", version(1)?).await?;
    let started = before.start(&version(1)?, "k", 7).await?;
    lab.ledger.wait_for("old", 1).await;
    drop(before);
    let after = Node::builder(lab.config("n2")?)
        .saga(version(1)?)
        .saga(version(2)?)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let newer = after.start(&version(2)?, "k2", 7).await?;
    assert!(end(&after, newer.id).await?.is_completed());
    assert!(end(&after, started.id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["a", "old", "a", "new", "old"]);
    Ok(())
}

#[tokio::test]
async fn a_full_node_stays_ready_and_says_that_it_is_full() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("a", [Reply::Slow(HOUR)]);
    let mut config = lab.config("n1")?;
    config.capacity = 1;
    let node = Node::builder(config)
        .saga(saga(quick()).build()?)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    node.start(&saga(quick()).build()?, "k", 7).await?;
    lab.ledger.wait_for("a", 1).await;
    assert!(node.ready().is_empty(), "{:?}", node.ready());
    assert!(node.degraded()[0].contains("capacity"));
    Ok(())
}

#[tokio::test]
async fn more_starts_than_capacity_all_end() -> Checked {
    let lab = Lab::new().await?;
    let mut config = lab.config("n1")?;
    config.capacity = 4;
    let node = Node::builder(config)
        .saga(saga(quick()).build()?)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    let saga = Arc::new(saga(quick()).build()?);
    let mut all = Vec::new();
    for n in 0..50 {
        let (node, saga) = (node.clone(), Arc::clone(&saga));
        all.push(tokio::spawn(async move {
            node.start(&saga, format!("k{n}"), n).await
        }));
    }
    for started in all {
        let started = started.await??;
        assert!(end(&node, started.id).await?.is_completed());
    }
    assert_eq!(lab.ledger.calls().len(), 150);
    Ok(())
}
