//! Batches of writes of which a random part is lost, fenced, malformed, refused by the server or
//! held by another session: each neighbour is answered as if it were alone.

use futures_util::future::try_join_all;
use orchestrator_lib::store::Error;
use ring_core::{
    id::TransactionId,
    saga::{Attempt, Payload},
    store::{Claimed, Write, Written},
};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    Rules,
    lane::{Fallible, Lane},
};
use crate::store_support::{self as support, Checked};

const BATCHES: u64 = 24;

/// What is the matter with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ill {
    /// Nothing.
    Well,
    /// Its row was claimed by somebody else.
    Fenced,
    /// It is the write of another claim.
    Stranger,
    /// It stands elsewhere.
    Elsewhere,
    /// There is no such row.
    Gone,
    /// It parks over a wake-up.
    Woken,
    /// It was done before.
    Done,
    /// Its value is no JSON text.
    Malformed,
    /// Only the server refuses it.
    Refused,
    /// Its row is held for a while and let go.
    Held,
    /// Its row is held by a claim that commits.
    Taken,
}

impl Ill {
    /// Most are well: a batch is halved for each that only the server refuses.
    const LOTS: [Self; 16] = [
        Self::Well,
        Self::Well,
        Self::Well,
        Self::Well,
        Self::Well,
        Self::Well,
        Self::Fenced,
        Self::Stranger,
        Self::Elsewhere,
        Self::Gone,
        Self::Woken,
        Self::Done,
        Self::Malformed,
        Self::Refused,
        Self::Held,
        Self::Taken,
    ];

    /// How it is answered alone.
    fn is_answered(self, written: &Written) -> bool {
        match self {
            Self::Well | Self::Held => *written == Written::Done { wake_seq: 0 },
            Self::Fenced | Self::Stranger | Self::Elsewhere | Self::Gone | Self::Taken => {
                *written == Written::Lost
            }
            Self::Woken => *written == Written::Woken { wake_seq: 1 },
            Self::Done => *written == Written::Already { wake_seq: 0 },
            Self::Malformed | Self::Refused => matches!(written, Written::Invalid(_)),
        }
    }

    fn waits(self) -> bool {
        matches!(self, Self::Held | Self::Taken)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_of_a_batch_ever_fails_its_neighbours() -> Checked {
    let refuses = "alter table ringsaga.step add constraint bad check (result <> '\"bad\"')";
    let mut lane = Lane::new(Rules::default(), refuses).await?;
    for seed in 0..BATCHES {
        batch(&mut lane, seed).await?;
    }
    lane.close().await;
    Ok(())
}

/// Splitmix: the same lots for the same seed.
fn lot(seed: u64, of: u64) -> usize {
    let mut n = (seed << 8 | of).wrapping_add(0x9e37_79b9_7f4a_7c15);
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((n ^ (n >> 31)) >> 40).unwrap()
}

async fn batch(lane: &mut Lane, seed: u64) -> Fallible<()> {
    let most = u64::try_from(1 + lot(seed, 255) % 32)?;
    let lots = (0..most).map(|i| Ill::LOTS[lot(seed, i) % Ill::LOTS.len()]);
    let ills: Vec<Ill> = lots.collect();
    let story = format!("seed {seed}: {ills:?}");
    let (ahead, writes) = begin(lane, &ills).await?;
    let mut other = lane.bench.session().await?;
    let holder = other.transaction().await?;
    for (write, ill) in writes.iter().zip(&ills).filter(|(_, ill)| ill.waits()) {
        let raise = i64::from(*ill == Ill::Taken);
        let hold = "update ringsaga.transaction set epoch = epoch + $2 where id = $1";
        holder.execute(hold, &[&write.id.0, &raise]).await?;
    }
    let asked = ask_together(lane, ahead, writes).await?;
    let asked = ills.iter().copied().zip(asked);
    let (now, later): (Vec<_>, Vec<_>) = asked.partition(|(ill, _)| !ill.waits());
    // Nobody waits for the rows that are held.
    for (ill, task) in now {
        let answer = task.await??;
        assert!(ill.is_answered(&answer), "{ill:?}: {answer:?}; {story}");
    }
    let early = later.iter().filter(|(_, task)| task.is_finished()).count();
    assert_eq!(early, 0, "answered while its row was held; {story}");
    holder.commit().await?;
    for (ill, task) in later {
        let answer = task.await??;
        assert!(ill.is_answered(&answer), "{ill:?}: {answer:?}; {story}");
    }
    let records = "select count(*) from ringsaga.step where result = '7'";
    let records: i64 = lane.desk.query_one(records, &[]).await?.get(0);
    let done = |ill: &&Ill| matches!(ill, Ill::Well | Ill::Held | Ill::Done);
    let done = ills.iter().filter(done).count();
    assert_eq!(usize::try_from(records)?, done + 1, "records; {story}");
    lane.clear(&[]).await
}

/// Starts a transaction for each write and one for the write ahead of them.
async fn begin(lane: &Lane, ills: &[Ill]) -> Fallible<(Write, Vec<Write>)> {
    let node = support::Node {
        store: lane.keeper.store.clone(),
        me: lane.actors[0].me,
    };
    let keys: Vec<String> = (0..=ills.len()).map(|i| format!("k{i}")).collect();
    let begun = keys.iter().map(|key| node.started("buy", key));
    let claimed = try_join_all(begun).await?;
    let mut writes = Vec::new();
    for (claimed, ill) in claimed.iter().zip(ills) {
        writes.push(ail(lane, claimed, *ill).await?);
    }
    let ahead = claimed.last().ok_or("nothing was started")?;
    Ok((support::next(ahead, 1), writes))
}

type Asked = JoinHandle<Result<Written, Error>>;

/// One write stands at its gate, so the others meet in the batch behind it.
async fn ask_together(lane: &Lane, ahead: Write, writes: Vec<Write>) -> Fallible<Vec<Asked>> {
    let gate = "select pg_advisory_lock(ascii('x'), 0)";
    lane.desk.query(gate, &[]).await?;
    let ask = |write| {
        let store = lane.actors[0].store.clone();
        tokio::spawn(async move { store.write(write).await })
    };
    let ahead = ask(ahead);
    at_the_gate(lane).await?;
    let asked = writes.into_iter().map(ask).collect();
    tokio::task::yield_now().await;
    let open = "select pg_advisory_unlock_all()";
    lane.desk.query(open, &[]).await?;
    assert_eq!(ahead.await??, Written::Done { wake_seq: 0 });
    Ok(asked)
}

/// The write of a success, with what is the matter.
async fn ail(lane: &Lane, claimed: &Claimed, ill: Ill) -> Fallible<Write> {
    let mut write = support::next(claimed, 1);
    match ill {
        Ill::Well | Ill::Held | Ill::Taken => {}
        Ill::Fenced => write.fence.epoch += 1,
        Ill::Stranger => write.fence.nonce = support::nonce(),
        Ill::Elsewhere => write.from = support::at(5),
        Ill::Gone => write.id = TransactionId(Uuid::new_v4()),
        Ill::Woken => {
            let (wake, store) = (Uuid::new_v4(), &lane.keeper.store);
            store.cancel(wake, claimed.id, ("eva", "a typo")).await?;
            write = support::park(claimed, std::time::Duration::ZERO);
        }
        Ill::Done => {
            lane.keeper.store.write(write.clone()).await?;
        }
        Ill::Malformed => set(&mut write, "\"\0\""),
        Ill::Refused => set(&mut write, "\"bad\""),
    }
    Ok(write)
}

fn set(write: &mut Write, result: &str) {
    if let Some(entry) = &mut write.entry {
        entry.attempt = Attempt::Done(Payload::new(result).unwrap());
    }
}

async fn at_the_gate(lane: &Lane) -> Fallible<()> {
    let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted \
        and database = (select oid from pg_database where datname = current_database())";
    for _ in 0..5_000 {
        if lane.desk.query_one(waiting, &[]).await?.get::<_, i64>(0) > 0 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    Err("the write never came to its gate".into())
}
