//! What runs here: bounded, known by transaction and nonce.
//!
//! Decides only whether there is room. The nonces are what the lease's renewal is compared with:
//! a row stored as run here that is not in this map is a stray.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ring_core::{id::Nonce, store::Incarnation};
use ring_shell::clock;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The transactions that run here.
#[derive(Debug)]
pub(super) struct InFlight {
    map: Arc<Mutex<Map>>,
    room: Arc<Semaphore>,
    capacity: usize,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Map {
    running: BTreeMap<Nonce, Running>,
    /// Nonces of claims and starts that the store has not answered yet.
    pending: BTreeSet<Nonce>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    suspect: bool,
    calling: bool,
}

/// Room for one transaction.
#[derive(Debug)]
pub(super) struct Room(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

/// A nonce that a claim or a start under way holds; forgotten when this is dropped.
#[derive(Debug)]
pub(super) struct Pending {
    map: Arc<Mutex<Map>>,
    nonce: Nonce,
}

/// A running transaction's place; left when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    map: Arc<Mutex<Map>>,
    left: Arc<Notify>,
    nonce: Nonce,
    incarnation: Incarnation,
    room: Option<Room>,
}

impl InFlight {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            map: Arc::default(),
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
        lock(&self.map)
            .running
            .values()
            .filter(|r| r.calling)
            .count()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Transactions under suspicion of killing processes that run here.
    pub(super) fn suspects(&self) -> usize {
        lock(&self.map)
            .running
            .values()
            .filter(|r| r.suspect)
            .count()
    }

    /// Makes a nonce and announces it before the store is asked, so that its row is no stray
    /// meanwhile.
    pub(super) fn pending(&self) -> Pending {
        let map = Arc::clone(&self.map);
        let nonce = clock::nonce();
        lock(&map).pending.insert(nonce);
        Pending { map, nonce }
    }

    /// Takes a place.
    pub(super) fn enter(
        &self,
        nonce: Nonce,
        incarnation: Incarnation,
        suspect: bool,
        room: Room,
    ) -> Slot {
        let running = Running {
            suspect,
            calling: false,
        };
        lock(&self.map).running.insert(nonce, running);
        Slot {
            map: Arc::clone(&self.map),
            left: Arc::clone(&self.left),
            nonce,
            incarnation,
            room: Some(room),
        }
    }

    /// Nonces of all that runs or is being claimed here.
    pub(super) fn known(&self) -> Vec<Nonce> {
        let map = lock(&self.map);
        let all = map.running.keys().chain(&map.pending);
        all.copied().collect()
    }

    /// Completes when something has left.
    pub(super) async fn changed(&self) {
        self.left.notified().await;
    }

    /// Completes when nothing runs.
    pub(super) async fn empty(&self) {
        loop {
            let left = self.left.notified();
            if self.running() == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Pending {
    pub(super) fn nonce(&self) -> Nonce {
        self.nonce
    }
}

impl Slot {
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub(super) fn calling(&self, calling: bool) {
        if let Some(running) = lock(&self.map).running.get_mut(&self.nonce) {
            running.calling = calling;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.map).running.remove(&self.nonce);
        drop(self.room.take());
        self.left.notify_waiters();
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        lock(&self.map).pending.remove(&self.nonce);
    }
}

/// The map is sound after every statement, so a panic elsewhere does not spoil it.
fn lock(map: &Mutex<Map>) -> MutexGuard<'_, Map> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
