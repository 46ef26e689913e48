//! What waits for the writer, and what shares a commit.

use ring_core::store::{Started, Write, Written};
use tokio::sync::oneshot;

use super::finish;
use crate::store::{error::Error, start::Request};

/// A question with the one who waits for its answer.
#[derive(Debug)]
pub(super) struct Asked<Q, A> {
    pub(super) question: Q,
    pub(super) answer: oneshot::Sender<Result<A, Error>>,
    pub(super) tries: u32,
    /// Pauses made because somebody else held its row or key.
    pub(super) pauses: u32,
}

/// Boxed: they are moved from queue to batch, sorted and handed on.
pub(super) type AskedWrite = Box<Asked<Write, Written>>;
pub(super) type AskedStart = Box<Asked<Request, Started>>;

/// What shares a commit: writes in the order of ids, starts in that of keys, so that two batches
/// of two processes never wait for each other in a circle.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) writes: Vec<AskedWrite>,
    pub(super) starts: Vec<AskedStart>,
    /// Rows that somebody else holds are left out at once.
    pub(super) around: bool,
}

impl<Q, A> Asked<Q, A> {
    pub(super) fn new(question: Q, answer: oneshot::Sender<Result<A, Error>>) -> Box<Self> {
        Box::new(Self {
            question,
            answer,
            tries: 0,
            pauses: 0,
        })
    }

    /// Somebody who stopped waiting hears nothing.
    pub(super) fn reply(self, answer: Result<A, Error>) {
        drop(self.answer.send(answer));
    }
}

impl Batch {
    pub(super) fn of_writes(writes: Vec<AskedWrite>, around: bool) -> Self {
        Self {
            writes,
            around,
            ..Self::default()
        }
    }

    pub(super) fn of_starts(starts: Vec<AskedStart>) -> Self {
        Self {
            starts,
            ..Self::default()
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.writes.len() + self.starts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Tells everybody the same bad news.
    pub(super) fn fail(self, error: &Error) {
        finish::fail(self.writes, error);
        finish::fail(self.starts, error);
    }

    /// Claiming starts of one batch have one owner.
    pub(super) fn suits(&self, request: &Request) -> bool {
        let owner = self.starts.iter().find_map(|asked| asked.question.owner);
        owner.is_none() || request.owner.is_none() || owner == request.owner
    }
}
