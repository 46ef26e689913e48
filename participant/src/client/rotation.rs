//! Which node is asked next: they take turns, and one that refused a connection is left out for a
//! while.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::Node;

/// How long a node that refused a connection is left out, in milliseconds: a restart takes as long,
/// and the others are not far.
const AWAY_MS: u64 = 5_000;

/// The turns of one service's nodes.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    turn: AtomicUsize,
    /// Until when which node is left out.
    away: Mutex<BTreeMap<Node, u64>>,
}

impl Rotation {
    /// The nodes in the order in which to try them; those that are away come last, for when all
    /// are.
    pub(super) fn order(&self, mut nodes: Vec<Node>, now: u64) -> Vec<Node> {
        if !nodes.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len();
            nodes.rotate_left(turn);
        }
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.retain(|_, until| *until > now);
        nodes.sort_by_key(|node| away.contains_key(node));
        nodes
    }

    /// A node refused the connection.
    pub(super) fn refused(&self, node: &Node, now: u64) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.insert(node.clone(), now.saturating_add(AWAY_MS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> Vec<Node> {
        let named = |name: &&str| Node::Nats((*name).to_owned());
        names.iter().map(named).collect()
    }

    #[test]
    fn nodes_take_turns() {
        let rotation = Rotation::default();
        let order = || rotation.order(nodes(&["a", "b", "c"]), 0);
        assert_eq!(order(), nodes(&["a", "b", "c"]));
        assert_eq!(order(), nodes(&["b", "c", "a"]));
        assert_eq!(order(), nodes(&["c", "a", "b"]));
        assert_eq!(order(), nodes(&["a", "b", "c"]));
    }

    #[test]
    fn one_that_refused_comes_last_for_a_while() {
        let rotation = Rotation::default();
        rotation.refused(&nodes(&["a"])[0], 100);
        let order = |now| rotation.order(nodes(&["a", "b"]), now);
        assert_eq!(order(100), nodes(&["b", "a"]));
        assert_eq!(order(5_099), nodes(&["b", "a"]));
        assert_eq!(order(5_100), nodes(&["a", "b"]));
        assert!(rotation.order(Vec::new(), 0).is_empty());
    }
}
