//! The least that any durable engine must write: a row for the saga, one for each step, its end.
//!
//! One writer turns whatever has arrived into one statement and one commit. No keys, no fencing,
//! no due times, no replay, no user code: a bound, not a competitor.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench measures real time, finer than the house's clock"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
};
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;

use ring_core::id::{RegionCode, TransactionId};

use crate::{
    Outcome,
    measure::{self, Round, Runs},
};

const SCHEMA: &str = "
    create table saga (id uuid primary key, input text not null, state smallint not null)
        with (fillfactor = 70);
    create table step (saga uuid, seq smallint, result text not null, primary key (saga, seq));
";

/// Plans that hold on a fresh table, made once.
const SESSION: &str = "
    set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off;
    set plan_cache_mode = force_generic_plan;
";

const WRITE: &str = "
    with created as (
        insert into saga select id, input, 0 from unnest($1::uuid[], $2::text[]) i(id, input)
    ), recorded as (
        insert into step select * from unnest($3::uuid[], $4::smallint[], $5::text[])
    )
    update saga s set state = 1 from unnest($6::uuid[]) f(id) where s.id = f.id
";

/// Most sagas that share a commit, as in the engine.
const MOST: usize = 512;

struct Ceiling {
    writer: mpsc::Sender<Job>,
    intents: bool,
}

/// One durable wait of one saga.
struct Job {
    id: Uuid,
    create: bool,
    step: Option<i16>,
    done: oneshot::Sender<()>,
}

impl Runs for Ceiling {
    async fn one(&self, _: u64) -> Outcome<()> {
        let now = ring_shell::clock::now().wall;
        let chance = ring_shell::clock::chance();
        let id = TransactionId::compose(now, RegionCode::default(), chance).0;
        if self.intents {
            self.durable(id, true, None).await?;
            self.durable(id, false, Some(0)).await?;
        } else {
            self.durable(id, true, Some(0)).await?;
        }
        self.durable(id, false, Some(1)).await?;
        self.durable(id, false, Some(LAST_STEP)).await
    }
}

/// Its record ends the saga.
const LAST_STEP: i16 = 2;

impl Ceiling {
    async fn durable(&self, id: Uuid, create: bool, step: Option<i16>) -> Outcome<()> {
        let (done, durable) = oneshot::channel();
        let job = Job {
            id,
            create,
            step,
            done,
        };
        self.writer.send(job).await?;
        Ok(durable.await?)
    }
}

/// One round on an empty database.
pub(crate) async fn run(url: &str, in_flight: usize, intents: bool) -> Outcome<Round> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(SCHEMA).await?;
    client.batch_execute(SESSION).await?;
    let write = client.prepare(WRITE).await?;
    let (writer, jobs) = mpsc::channel(8 * MOST);
    let writing = tokio::spawn(write_all(client, write, jobs));
    let ceiling = Arc::new(Ceiling { writer, intents });
    let round = measure::closed_loop(ceiling, in_flight).await?;
    writing.await??;
    connection.await??;
    Ok(round)
}

/// Sagas that the outage stopped behind their first step.
const PAUSED: &str = "
    with made as (
        insert into saga select gen_random_uuid(), $2, 0 from generate_series(1, $1) returning id
    )
    insert into step select id, 0, 'null' from made
";

/// Two processes must not take the same one, so that taking is durable, too; a page at a time.
const CLAIM: &str = "
    with page as materialized (select id from saga where id > $1 order by id limit $2)
    update saga s set state = 2 from page where s.id = page.id returning s.id
";

/// As in the engine.
const PAGE: usize = 64;

/// The time for so many paused sagas: a claim, then two durable waits each.
pub(crate) async fn drain(url: &str, paused: usize, in_flight: usize) -> Outcome<Duration> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(SCHEMA).await?;
    client
        .execute(PAUSED, &[&i32::try_from(paused)?, &crate::engine::INPUT])
        .await?;
    client.batch_execute("vacuum analyze").await?;
    client.batch_execute(SESSION).await?;
    let write = client.prepare(WRITE).await?;
    let (claims, claiming) = tokio_postgres::connect(url, NoTls).await?;
    let claiming = tokio::spawn(claiming);
    claims.batch_execute(SESSION).await?;
    let (writer, jobs) = mpsc::channel(8 * MOST);
    let writing = tokio::spawn(write_all(client, write, jobs));
    let intents = true;
    let ceiling = Arc::new(Ceiling { writer, intents });
    let began = Instant::now();
    claim_all(&claims, &ceiling, in_flight).await?;
    let took = began.elapsed();
    drop((claims, ceiling));
    writing.await??;
    connection.await??;
    claiming.await??;
    Ok(took)
}

async fn claim_all(claims: &Client, ceiling: &Arc<Ceiling>, in_flight: usize) -> Outcome<()> {
    let claim = claims.prepare(CLAIM).await?;
    let room = Arc::new(Semaphore::new(in_flight));
    let mut running = JoinSet::new();
    let mut last = Uuid::nil();
    loop {
        let mut rooms = vec![Arc::clone(&room).acquire_owned().await?];
        while rooms.len() < PAGE
            && let Ok(another) = Arc::clone(&room).try_acquire_owned()
        {
            rooms.push(another);
        }
        let page = claims
            .query(&claim, &[&last, &i64::try_from(rooms.len())?])
            .await?;
        for row in &page {
            let id: Uuid = row.try_get(0)?;
            last = last.max(id);
            let (ceiling, room) = (Arc::clone(ceiling), rooms.pop());
            running.spawn(async move {
                ceiling.durable(id, false, Some(1)).await?;
                ceiling.durable(id, false, Some(LAST_STEP)).await?;
                drop(room);
                Outcome::Ok(())
            });
        }
        if page.is_empty() {
            break;
        }
    }
    while let Some(saga) = running.join_next().await {
        saga??;
    }
    Ok(())
}

async fn write_all(client: Client, write: Statement, mut jobs: mpsc::Receiver<Job>) -> Outcome<()> {
    let mut batch = Vec::with_capacity(MOST);
    while jobs.recv_many(&mut batch, MOST).await > 0 {
        commit(&client, &write, &batch).await?;
        for job in batch.drain(..) {
            // A caller that is gone hears nothing.
            let _ = job.done.send(());
        }
    }
    Ok(())
}

async fn commit(client: &Client, write: &Statement, batch: &[Job]) -> Outcome<()> {
    let (mut ids, mut inputs) = (Vec::new(), Vec::new());
    let (mut sagas, mut seqs, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut ended = Vec::new();
    for job in batch {
        if job.create {
            ids.push(job.id);
            inputs.push(crate::engine::INPUT);
        }
        if let Some(seq) = job.step {
            sagas.push(job.id);
            seqs.push(seq);
            results.push("null");
        }
        if job.step == Some(LAST_STEP) {
            ended.push(job.id);
        }
    }
    client
        .execute(write, &[&ids, &inputs, &sagas, &seqs, &results, &ended])
        .await?;
    Ok(())
}
