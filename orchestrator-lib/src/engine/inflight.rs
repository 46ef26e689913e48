//! What runs here: bounded, known by transaction and nonce.
//!
//! Decides only whether there is room, and that no saga takes all of it: behind ten thousand
//! transactions of one saga that hang, others still come to their turn. The nonces are what the lease's renewal is compared with:
//! a row stored as run here that is not in this map is a stray.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ring_core::{
    id::{Nonce, SagaName, TransactionId},
    store::Incarnation,
};
use ring_shell::clock;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, futures::Notified, watch};

/// Where several sagas run, this part of the room is kept from any one of them: enough that others
/// go on, too little to be missed.
const KEPT: usize = 8;

/// The transactions that run here.
#[derive(Debug)]
pub(super) struct InFlight {
    map: Arc<Mutex<Map>>,
    /// Calls under way.
    calling: Arc<AtomicUsize>,
    room: Arc<Semaphore>,
    capacity: usize,
    /// Most transactions of one saga that are claimed.
    share: usize,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Map {
    /// Nonces of the rows that run here, and whose they are.
    running: BTreeMap<Nonce, TransactionId>,
    /// Which transactions run here, under which nonce last, and who is told of wake-ups.
    ids: BTreeMap<TransactionId, (Nonce, watch::Sender<u64>)>,
    /// How many of each saga run here.
    sagas: BTreeMap<SagaName, usize>,
    /// Nonces of claims and starts that the store has not answered yet.
    pending: BTreeSet<Nonce>,
    /// How many of the running ones are under suspicion of killing processes.
    suspects: usize,
}

/// Who takes a place.
#[derive(Debug)]
pub(super) struct Entering {
    pub(super) id: TransactionId,
    pub(super) saga: SagaName,
    pub(super) nonce: Nonce,
    pub(super) incarnation: Incarnation,
    pub(super) suspect: bool,
}

/// How much may be claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    /// Sagas that have their share.
    pub(super) full: BTreeSet<SagaName>,
    /// What every other saga may have more, whichever it is.
    pub(super) left: usize,
}

/// Room for one transaction.
#[derive(Debug)]
pub(super) struct Room(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

/// A nonce that a claim or a start under way holds; forgotten when this is dropped.
#[derive(Debug)]
pub(super) struct Pending {
    map: Arc<Mutex<Map>>,
    left: Arc<Notify>,
    nonce: Nonce,
}

/// A running transaction's place; left when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    map: Arc<Mutex<Map>>,
    left: Arc<Notify>,
    entered: Entering,
    woken: watch::Receiver<u64>,
    calling: Calling,
    room: Option<Room>,
}

/// Counts a call while it is under way.
#[derive(Debug)]
struct Calling {
    all: Arc<AtomicUsize>,
    now: bool,
}

impl InFlight {
    /// For so many sagas: a part of the room is kept for those that have less.
    pub(super) fn new(capacity: usize, sagas: usize) -> Self {
        let kept = if sagas > 1 {
            (capacity / KEPT).max(1)
        } else {
            0
        };
        Self {
            share: capacity.saturating_sub(kept).max(1),
            map: Arc::default(),
            calling: Arc::default(),
            room: Arc::new(Semaphore::new(capacity)),
            capacity,
            left: Arc::default(),
        }
    }

    /// Room for at most so many transactions, taken now.
    pub(super) fn room(&self, most: usize) -> Vec<Room> {
        let one = || Arc::clone(&self.room).try_acquire_owned().ok().map(Room);
        std::iter::repeat_with(one)
            .map_while(|r| r)
            .take(most)
            .collect()
    }

    /// Room for one, as soon as there is.
    pub(super) async fn wait_for_room(&self) -> Option<Room> {
        Arc::clone(&self.room).acquire_owned().await.ok().map(Room)
    }

    /// How many more fit.
    pub(super) fn free(&self) -> usize {
        self.room.available_permits()
    }

    pub(super) fn running(&self) -> usize {
        lock(&self.map).running.len()
    }

    /// How many calls are under way.
    pub(super) fn calling(&self) -> usize {
        self.calling.load(Ordering::Relaxed)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Transactions under suspicion of killing processes that run here.
    pub(super) fn suspects(&self) -> usize {
        lock(&self.map).suspects
    }

    /// Whether a saga has as much of the room as it may claim.
    pub(super) fn has_its_share(&self, saga: &SagaName) -> bool {
        let map = lock(&self.map);
        map.sagas.get(saga).is_some_and(|n| *n >= self.share)
    }

    pub(super) fn shares(&self) -> Shares {
        let map = lock(&self.map);
        let full = map.sagas.iter().filter(|(_, n)| **n >= self.share);
        let others = map.sagas.values().filter(|n| **n < self.share);
        Shares {
            full: full.map(|(saga, _)| saga.clone()).collect(),
            left: self.share - others.max().copied().unwrap_or(0),
        }
    }

    /// Makes a nonce and announces it before the store is asked, so that its row is no stray
    /// meanwhile.
    pub(super) fn pending(&self) -> Pending {
        let (map, left) = (Arc::clone(&self.map), Arc::clone(&self.left));
        let nonce = clock::nonce();
        lock(&map).pending.insert(nonce);
        Pending { map, left, nonce }
    }

    /// Takes a place.
    pub(super) fn enter(&self, entered: Entering, room: Room) -> Slot {
        let (told, woken) = watch::channel(0);
        {
            let mut map = lock(&self.map);
            map.running.insert(entered.nonce, entered.id);
            map.ids.insert(entered.id, (entered.nonce, told));
            map.suspects += usize::from(entered.suspect);
            *map.sagas.entry(entered.saga.clone()).or_default() += 1;
        }
        Slot {
            map: Arc::clone(&self.map),
            left: Arc::clone(&self.left),
            entered,
            woken,
            calling: Calling {
                all: Arc::clone(&self.calling),
                now: false,
            },
            room: Some(room),
        }
    }

    /// Whether this transaction runs here.
    pub(super) fn runs(&self, id: TransactionId) -> bool {
        lock(&self.map).ids.contains_key(&id)
    }

    /// Tells a transaction's run that its row has so many wake-ups.
    pub(super) fn woken(&self, id: TransactionId, wake_seq: u64) {
        if let Some((_, told)) = lock(&self.map).ids.get(&id) {
            told.send_if_modified(|seen| {
                let more = *seen < wake_seq;
                *seen = wake_seq.max(*seen);
                more
            });
        }
    }

    /// Nonces of all that runs or is being claimed here.
    pub(super) fn known(&self) -> Vec<Nonce> {
        let map = lock(&self.map);
        let all = map.running.keys().chain(&map.pending);
        all.copied().collect()
    }

    /// Completes when something leaves after this was called.
    pub(super) fn left(&self) -> Notified<'_> {
        self.left.notified()
    }

    /// Completes when nothing runs and no claim or start under way may still bring something.
    pub(super) async fn empty(&self) {
        loop {
            let left = self.left.notified();
            if lock(&self.map).is_empty() {
                return;
            }
            left.await;
        }
    }
}

impl Map {
    fn is_empty(&self) -> bool {
        self.running.is_empty() && self.pending.is_empty()
    }
}

impl Pending {
    pub(super) fn nonce(&self) -> Nonce {
        self.nonce
    }
}

impl Slot {
    pub(super) fn incarnation(&self) -> Incarnation {
        self.entered.incarnation
    }

    /// Completes with the row's count of wake-ups when there are new ones.
    pub(super) async fn woken(&mut self) -> u64 {
        match self.woken.changed().await {
            Ok(()) => *self.woken.borrow_and_update(),
            // Somebody else runs it here under a newer nonce.
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn calling(&mut self, now: bool) {
        self.calling.set(now);
    }
}

impl Calling {
    fn set(&mut self, now: bool) {
        match (self.now, now) {
            (false, true) => self.all.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.all.fetch_sub(1, Ordering::Relaxed),
            (true, true) | (false, false) => return,
        };
        self.now = now;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut map = lock(&self.map);
            let nonce = self.entered.nonce;
            if let Some(id) = map.running.remove(&nonce)
                && map.ids.get(&id).is_some_and(|(last, _)| *last == nonce)
            {
                map.ids.remove(&id);
            }
            map.suspects -= usize::from(self.entered.suspect);
            if let Some(n) = map.sagas.get_mut(&self.entered.saga) {
                *n -= 1;
            }
        }
        self.calling.set(false);
        drop(self.room.take());
        self.left.notify_waiters();
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        lock(&self.map).pending.remove(&self.nonce);
        self.left.notify_waiters();
    }
}

/// The map is sound after every statement, so a panic elsewhere does not spoil it.
fn lock(map: &Mutex<Map>) -> MutexGuard<'_, Map> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Poll};

    use futures_util::poll;
    use uuid::Uuid;

    use super::*;

    fn one(saga: &str, nonce: Nonce) -> Entering {
        Entering {
            id: TransactionId(Uuid::nil()),
            saga: SagaName::new(saga).unwrap(),
            nonce,
            incarnation: Incarnation(1),
            suspect: false,
        }
    }

    #[test]
    fn a_part_of_the_room_is_kept_from_each_saga() {
        let all = InFlight::new(16, 2);
        let enter = |saga| all.enter(one(saga, clock::nonce()), all.room(1).remove(0));
        let mut slots: Vec<Slot> = (0..13).map(|_| enter("a")).collect();
        assert_eq!((all.shares().full.len(), all.shares().left), (0, 1));
        slots.push(enter("a"));
        assert!(all.has_its_share(&SagaName::new("a").unwrap()));
        assert_eq!((all.shares().full.len(), all.shares().left), (1, 14));
        let other = enter("b");
        assert_eq!(all.shares().left, 13);
        drop((other, slots.pop()));
        assert_eq!((all.shares().full.len(), all.shares().left), (0, 1));
    }

    #[test]
    fn one_saga_alone_has_all_of_it() {
        let all = InFlight::new(16, 1);
        assert_eq!(all.shares().left, 16);
    }

    #[tokio::test]
    async fn what_is_being_claimed_keeps_it_from_being_empty() {
        let all = InFlight::new(1, 1);
        let pending = all.pending();
        let mut empty = pin!(all.empty());
        assert_eq!(poll!(empty.as_mut()), Poll::Pending);
        let room = all.room(1).remove(0);
        let slot = all.enter(one("a", pending.nonce()), room);
        drop(pending);
        assert_eq!(poll!(empty.as_mut()), Poll::Pending);
        drop(slot);
        assert_eq!(poll!(empty), Poll::Ready(()));
    }

    #[tokio::test]
    async fn a_claim_that_brought_nothing_lets_it_be_empty() {
        let all = InFlight::new(1, 1);
        let pending = all.pending();
        let mut empty = pin!(all.empty());
        assert_eq!(poll!(empty.as_mut()), Poll::Pending);
        drop(pending);
        assert_eq!(poll!(empty), Poll::Ready(()));
    }
}
