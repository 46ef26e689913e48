//! What a round cost: processor time of this process and of Postgres, commits, bytes of WAL.
//!
//! On two cores that both programs share with Postgres, these say where the time goes. Reads the
//! counters that Linux and Postgres keep anyway; elsewhere the processor's read as zero.

use std::{fs, path::Path, time::Duration};

use tokio_postgres::NoTls;

use crate::Outcome;

/// A tick of `/proc/<pid>/stat`: 10 ms on every Linux that people use (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// A backend writes its counters down at most this long after its last statement.
const COUNTED_AFTER: Duration = Duration::from_millis(1_200);

/// Counters, or the difference of two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    client: Duration,
    postgres: Duration,
    commits: i64,
    wal_bytes: i64,
    wal_syncs: i64,
}

impl Cost {
    /// The counters of this process, the server and the database at this address.
    pub(crate) async fn so_far(postmaster: u32, url: &str) -> Outcome<Self> {
        // Backends that end meanwhile are then in the server's own counter. The client's and the
        // server's times before the question itself costs something.
        tokio::time::sleep(COUNTED_AFTER).await;
        let client = own(Path::new("/proc/self/stat")).map_or(Duration::ZERO, |it| it.mine);
        let postgres = family(postmaster);
        let (session, connection) = tokio_postgres::connect(url, NoTls).await?;
        let connection = tokio::spawn(connection);
        let asked = "select d.xact_commit, w.wal_bytes::bigint, w.wal_sync
            from pg_stat_database d, pg_stat_wal w where d.datname = current_database()";
        let row = session.query_one(asked, &[]).await?;
        drop(session);
        connection.await??;
        Ok(Self {
            client,
            postgres,
            commits: row.try_get(0)?,
            wal_bytes: row.try_get(1)?,
            wal_syncs: row.try_get(2)?,
        })
    }

    /// What was added after an earlier reading.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            client: self.client.saturating_sub(before.client),
            postgres: self.postgres.saturating_sub(before.postgres),
            commits: self.commits - before.commits,
            wal_bytes: self.wal_bytes - before.wal_bytes,
            wal_syncs: self.wal_syncs - before.wal_syncs,
        }
    }

    /// Microseconds of processor time, both sides, of one of so many sagas.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn micros(&self, sagas: usize) -> f64 {
        (self.client + self.postgres).as_secs_f64() * 1e6 / sagas.max(1) as f64
    }

    /// For people: the cost divided by so many sagas.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn of_one(&self, sagas: usize) -> String {
        let sagas = sagas.max(1) as f64;
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / sagas;
        format!(
            "cpu {:.0} us client + {:.0} us postgres, {:.3} commits, {:.3} syncs, {:.0} B WAL",
            micros(self.client),
            micros(self.postgres),
            self.commits as f64 / sagas,
            self.wal_syncs as f64 / sagas,
            self.wal_bytes as f64 / sagas,
        )
    }
}

/// What `/proc/<pid>/stat` tells.
struct Stat {
    parent: u32,
    mine: Duration,
    /// Of children that ended and were waited for.
    children: Duration,
}

fn own(stat: &Path) -> Option<Stat> {
    let text = fs::read_to_string(stat).ok()?;
    // After the name, which may hold spaces: state, parent, …; utime is field 14 of the whole.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|t| t.parse().ok()).unwrap_or(0_u32);
    Some(Stat {
        parent: ticks(1),
        mine: TICK * (ticks(11) + ticks(12)),
        children: TICK * (ticks(13) + ticks(14)),
    })
}

/// A server's time with that of all its processes.
fn family(postmaster: u32) -> Duration {
    let server = own(&Path::new("/proc").join(postmaster.to_string()).join("stat"));
    let mut sum = server.map_or(Duration::ZERO, |it| it.mine + it.children);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = own(&entry.path().join("stat"));
        sum += stat
            .filter(|it| it.parent == postmaster)
            .map_or(Duration::ZERO, |it| it.mine);
    }
    sum
}
