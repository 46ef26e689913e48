//! What a node leaves behind when it is drained amid a claim.

mod support;

use support::{Checked, Lab, Reply, eventually, quick, saga};
use tokio_postgres::{Client, NoTls};

/// Every claim waits for this lock, which the test holds.
const HOLD_CLAIMS: &str = "
    create function public.hold() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
    create trigger hold before update on ringsaga.transaction for each row
        when (old.state = 'paused' and new.state = 'running') execute function public.hold();
    select pg_advisory_lock(1)";

async fn answers(client: &Client, question: &str) -> Result<bool, tokio_postgres::Error> {
    client.query_one(question, &[]).await?.try_get(0)
}

#[tokio::test]
async fn what_was_being_claimed_goes_back_as_it_was() -> Checked {
    let lab = Lab::new().await?;
    // Two retries inline, then it is parked.
    lab.ledger.next("a", vec![Reply::Transient; 3]);
    let node = lab.node("n1").await?;
    let (client, connection) = tokio_postgres::connect(lab.database.url(), NoTls).await?;
    let driver = tokio::spawn(connection);
    client.batch_execute(HOLD_CLAIMS).await?;
    node.start(&saga(quick()).build()?, "k", 7).await?;
    let waits = "select exists (select from pg_locks where locktype = 'advisory' and not granted \
        and database = (select oid from pg_database where datname = current_database()))";
    while !answers(&client, waits).await? {
        tokio::task::yield_now().await;
    }
    let leaving = tokio::spawn({
        let node = node.clone();
        async move { node.drain().await }
    });
    let leaves = || node.ready().iter().any(|why| why == "the node leaves");
    eventually("it leaves", leaves).await;
    client.batch_execute("select pg_advisory_unlock(1)").await?;
    leaving.await?;
    let calls = lab.ledger.calls();
    let row = "select format('%s owner=%s doubt=%s attempts=%s', state, owner, doubt, attempts)
        from ringsaga.transaction";
    let row: String = client.query_one(row, &[]).await?.try_get(0)?;
    assert_eq!(row, "paused owner= doubt=f attempts=3", "{calls:?}");
    assert_eq!(calls, ["a", "a", "a"]);
    driver.abort();
    Ok(())
}
