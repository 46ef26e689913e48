//! Port as data: what may be asked of Postgres, and the answers.
//!
//! Postgres decides who wins. A claim raises a row's epoch and writes a fresh nonce; every later
//! write of that run is conditional on both and on where it assumed the transaction to stand.
//! Losing that race is a value ([`Written::Lost`]), not an error. Time in these orders is relative
//! (durations): absolute times are the database's.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use core::time::Duration;

use crate::{
    id::{Nonce, SagaName, TransactionId},
    saga::{Direction, Ending, Entry, Payload, Position, Retry, Text, Wake},
    time::Wall,
    token::{Range, Token},
};

/// Who may write to a row: equality of both decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Raised by every claim.
    pub epoch: u64,
    /// Made by the client for each row it claims.
    pub nonce: Nonce,
}

/// One row of the owner table: one lease a process. A process that was declared dead opens a new
/// incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incarnation(pub i64);

/// A saga version that a process can run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// The saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// Digest of its definition, as hex text.
    pub digest: String,
}

/// A transaction to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its id.
    pub id: TransactionId,
    /// Its token, computed once.
    pub token: Token,
    /// The saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// Digest of the definition.
    pub digest: String,
    /// Unique within (service, saga); the caller's idempotency key.
    pub key: String,
    /// The input.
    pub input: Payload,
    /// How long it may live.
    pub lifetime: Duration,
    /// The nonce of the claim that the start is, when this process runs it at once; without it
    /// the row is stored unowned and due now.
    pub claim: Option<Nonce>,
}

/// Answer to a [`Start`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// Stored; when it was to be claimed, under this fence.
    New(Option<Fence>),
    /// The key was used before with the same input: this is the transaction.
    Same(TransactionId),
    /// The key was used before with another input: refused.
    Different(TransactionId),
    /// Another session is storing this key right now and did not finish within the lock limit.
    InProgress,
    /// The own process is dead to the store: it holds no lease.
    NoLease,
    /// The data can't be stored, and why.
    Invalid(Text),
}

/// Why a row was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Just started by this process.
    Started,
    /// Parked and due.
    Due,
    /// Its owner is dead: the open intent may have been called, so it is in doubt.
    Orphaned,
}

/// From so many deaths on a transaction is a suspect: it runs alone (`design.md` section 4). The
/// claims say the same in SQL.
pub const SUSPECT_FROM: u32 = 2;

/// A transaction as its new owner gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Its id.
    pub id: TransactionId,
    /// The saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// Digest of the definition it was started with.
    pub digest: String,
    /// The right to write.
    pub fence: Fence,
    /// The open intent.
    pub position: Position,
    /// Whether some attempt of the open intent may have been applied.
    pub doubt: bool,
    /// Failed attempts of the open intent so far.
    pub attempts: u32,
    /// Deaths of owners blamed on it since its last recorded outcome.
    pub deaths: u32,
    /// Wake-ups seen with this claim.
    pub wake_seq: u64,
    /// What they were, oldest first.
    pub wakes: Vec<Wake>,
    /// When it was started, by the database's clock.
    pub created_at: Wall,
    /// When its lifetime ends, by the database's clock.
    pub expires_at: Wall,
    /// When the open intent was stored, by the database's clock: timers and deadlines count from
    /// here.
    pub opened_at: Wall,
    /// When an outcome was last recorded, by the database's clock.
    pub progressed_at: Wall,
    /// An operator's policy for all further calls, instead of the definition's.
    pub retry: Option<Retry>,
    /// The database's clock at the claim.
    pub claimed_at: Wall,
    /// Why it was taken.
    pub taken: Taken,
    /// The input.
    pub input: Payload,
    /// The step log, oldest first: the last record of each (direction, seq).
    pub log: Vec<Entry>,
}

/// One write of a running transaction: the record of what happened and the intent of what comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which transaction.
    pub id: TransactionId,
    /// The right to write.
    pub fence: Fence,
    /// Counts the writes of this claim from 1: a re-send is recognised by it.
    pub number: u32,
    /// Where the writer assumes it to stand.
    pub from: Position,
    /// The wake-ups the writer has seen: parking and settling are refused when there are more.
    pub wake_seq: u64,
    /// What the row becomes.
    pub to: To,
    /// The record, if there is one.
    pub entry: Option<Entry>,
}

/// What a row becomes by a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// The next intent; the row stays with its owner; attempts and deaths begin at 0 again.
    Next(Position),
    /// The record of one step of the open group; the others stay open, and the row stays where it
    /// is, with its owner. An outcome resets the deaths.
    Stay,
    /// Parked: `attempts` and `doubt` of the open intent are kept.
    Park {
        /// Due after this, but never beyond the lifetime's end.
        after: Duration,
        /// Failed attempts of the open intent; 0 while it waits for something from outside.
        attempts: u32,
        /// Whether one of them may have been applied.
        doubt: bool,
        /// For people.
        why: Text,
        /// The target it waits for, when a breaker holds it back.
        waiting_on: Option<String>,
    },
    /// The end.
    Settle {
        /// Which.
        ending: Ending,
        /// For people; none for a good end.
        why: Option<Text>,
    },
    /// Back to anyone, due at once, no attempt used by that; the epoch is raised.
    HandBack {
        /// Failed attempts of the open intent.
        attempts: u32,
        /// Whether the open intent may have been applied.
        doubt: bool,
    },
}

/// Answer to a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Committed by this write.
    Done {
        /// The row's wake-ups now.
        wake_seq: u64,
    },
    /// Committed by an earlier send of the same write.
    Already {
        /// The row's wake-ups now.
        wake_seq: u64,
    },
    /// The row belongs to somebody else, or stands elsewhere.
    Lost,
    /// Parking or settling was refused because something woke the transaction meanwhile.
    Woken {
        /// The row's wake-ups now.
        wake_seq: u64,
    },
    /// The data can't be stored, and why; nothing was written.
    Invalid(Text),
}

/// Which rows to look for. Each is a statement of its own with an index of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Parked and due within these ranges of the ring.
    Due {
        /// The node's own ranges.
        ranges: Vec<Range>,
    },
    /// Owned by the dead, anywhere on the ring.
    Orphans,
    /// Due for longer than this, anywhere on the ring, whatever the ring says.
    Overdue {
        /// For how long.
        by: Duration,
    },
    /// Waiting for a target that this process sees working again, within these ranges.
    Waiting {
        /// The target.
        target: String,
        /// The node's own ranges.
        ranges: Vec<Range>,
    },
}

/// A claim: at most `nonces.len()` rows, each under the nonce made for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which rows.
    pub look: Look,
    /// One for each row that may be claimed; an ambiguous claim is re-read by them.
    pub nonces: Vec<Nonce>,
    /// Whether rows may be claimed whose owners died twice or more (suspects): only when nothing
    /// else of that kind runs here.
    pub suspects: bool,
    /// Sagas that have as much here as they may have: none of theirs, so that others come to
    /// their turn.
    pub without: BTreeSet<SagaName>,
}

/// What a poll saw besides the rows it claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Due rows in the ranges, counted up to a limit.
    pub due: u64,
    /// Age of the oldest due one.
    pub oldest: Duration,
}

/// Answer to a renewal of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// It holds for the lease's length from when the renewal was *sent*.
    Held {
        /// The database's clock.
        clock: Wall,
        /// Rows stored as run by this incarnation, with their nonces: what isn't in flight here
        /// is a stray.
        running: Vec<(TransactionId, Fence)>,
        /// Their counts of wake-ups, where there were any: who runs them is told.
        woken: Vec<(TransactionId, u64)>,
    },
    /// This incarnation was declared dead.
    Dead,
}

/// A transaction that no live process can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// How many wait.
    pub transactions: u64,
    /// When the first one's lifetime ends.
    pub first_expires_at: Wall,
}

/// Counts of transactions by state and direction, for people and metrics.
pub type Counts = BTreeMap<(crate::saga::State, Direction), u64>;
