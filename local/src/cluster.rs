//! A NATS cluster of ours: nodes that can be killed and come back on their old ports.
//!
//! Decides how nodes find each other. All else about a node is in `nats`.

use std::path::Path;

use crate::error::Error;
use crate::nats::{Nats, Role, Routes};
use crate::{ports, ready};

/// Nodes of one cluster. Dropping it ends them.
#[derive(Debug)]
pub struct NatsCluster {
    nodes: Vec<Nats>,
}

impl NatsCluster {
    /// Starts the nodes and waits until each knows all others; one node is a plain server.
    ///
    /// # Errors
    /// When a node does not start, or the nodes don't find each other within 20 s.
    pub async fn start(
        program: &Path,
        data: &Path,
        run: &str,
        nodes: usize,
    ) -> Result<Self, Error> {
        if nodes <= 1 {
            return Ok(Self {
                nodes: vec![Nats::start(program, data, run).await?],
            });
        }
        let mut tries = 1;
        loop {
            match Self::start_once(program, data, run, nodes).await {
                Err(error) if ready::port_was_taken(&error) && tries < ports::TRIES => tries += 1,
                done => return done,
            }
        }
    }

    async fn start_once(
        program: &Path,
        data: &Path,
        run: &str,
        nodes: usize,
    ) -> Result<Self, Error> {
        let ports = ports::free(2 * nodes)?;
        let (clients, all) = ports.split_at(nodes);
        let mut started = Vec::with_capacity(nodes);
        for (index, (port, own)) in clients.iter().zip(all).enumerate() {
            let routes = Routes {
                node: index + 1,
                own: *own,
                all: all.to_vec(),
            };
            started.push(Nats::start_on(program, data, run, *port, Some(routes)).await?);
        }
        let cluster = Self { nodes: started };
        cluster.whole().await?;
        Ok(cluster)
    }

    /// Waits until every node knows all others.
    ///
    /// # Errors
    /// When that takes over 20 s, as it does while a node is down.
    pub async fn whole(&self) -> Result<(), Error> {
        for node in &self.nodes {
            node.joined().await?;
        }
        Ok(())
    }

    /// All nodes' addresses, separated by commas.
    #[must_use]
    pub fn url(&self) -> String {
        self.nodes
            .iter()
            .map(Nats::url)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// The password of a user, the same on every node.
    #[must_use]
    pub fn password(&self, role: Role) -> Option<String> {
        self.nodes.first().map(|node| node.password(role))
    }

    /// The nodes, first to last.
    #[must_use]
    pub fn nodes(&self) -> &[Nats] {
        &self.nodes
    }

    /// One node, to kill, pause or restart it.
    pub fn node(&mut self, index: usize) -> Option<&mut Nats> {
        self.nodes.get_mut(index)
    }

    /// Ends all nodes orderly.
    ///
    /// # Errors
    /// When one can't be signalled.
    pub async fn stop(&mut self) -> Result<(), Error> {
        for node in &mut self.nodes {
            node.stop().await?;
        }
        Ok(())
    }
}
