//! Requests under way: whose answer goes where.

use std::collections::BTreeMap;

use ring_core::bus::{AskId, ReplyTo};

use crate::network::Index;

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The process.
    pub node: Index,
    /// Its start.
    pub start: u32,
    /// Its name for the request.
    pub ask: AskId,
}

/// All requests that were delivered and not answered.
#[derive(Debug, Default)]
pub struct Requests {
    open: BTreeMap<u64, Asker>,
    last: u64,
}

impl Requests {
    /// Names a delivered request.
    pub fn open(&mut self, asker: Asker) -> ReplyTo {
        self.last += 1;
        self.open.insert(self.last, asker);
        ReplyTo(self.last)
    }

    /// Takes the one that is being answered; nobody is answered twice.
    pub fn close(&mut self, to: ReplyTo) -> Option<Asker> {
        self.open.remove(&to.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once() {
        let mut requests = Requests::default();
        let asker = Asker {
            node: 1,
            start: 1,
            ask: AskId(7),
        };
        let to = requests.open(asker);
        assert_eq!(requests.close(to), Some(asker));
        assert_eq!(requests.close(to), None);
    }
}
