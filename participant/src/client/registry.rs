//! Which nodes a service has: from configuration, or from wherever a [`Registry`] looks.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin};

use reqwest::Url;

use crate::wire::excerpt;

/// A boxed future, so that registries can be exchanged at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Most nodes that one service may have: a list is walked through at each call.
const MAX_NODES: usize = 256;

/// Where a participant is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// At a base address, below which the endpoints are; ends with a slash.
    Http(Url),
    /// Below a prefix of NATS subjects.
    Nats(String),
}

/// A text that is no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no node: write http://host:port/base, https://… or nats:prefix")]
pub struct NodeError(String);

/// Why nodes can't be told. The step is retried.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The service is not known, or has no node at the moment.
    #[error("the registry knows no node of service {0:?}")]
    None(String),
    /// The registry can't be asked.
    #[error("the registry can't be asked")]
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Knows the nodes of services. [`Fixed`] is configuration; a registry of one's own may ask Consul,
/// DNS or a table, and should keep its answers for a while: it is asked before each call.
pub trait Registry: fmt::Debug + Send + Sync {
    /// The nodes of a service, in any order; at most 256 are used.
    fn nodes<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Result<Vec<Node>, RegistryError>>;
}

/// Nodes that don't change while the process runs.
#[derive(Clone, Debug, Default)]
pub struct Fixed(BTreeMap<String, Vec<Node>>);

impl Node {
    /// Reads `http://…`, `https://…` or `nats:prefix`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, NodeError> {
        let wrong = || NodeError(excerpt(text.as_bytes()));
        if let Some(prefix) = text.strip_prefix("nats:") {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let sound = !prefix.is_empty() && prefix.chars().all(plain) && !prefix.contains("..");
            return sound
                .then(|| Self::Nats(prefix.trim_matches('.').to_owned()))
                .ok_or_else(wrong);
        }
        // A relative address keeps the base's path only when that ends with a slash.
        let url = Url::parse(&format!("{}/", text.trim_end_matches('/'))).map_err(|_| wrong())?;
        let sound = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none();
        sound.then_some(Self::Http(url)).ok_or_else(wrong)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Without user and password, should the address hold any.
            Self::Http(url) => write!(
                f,
                "{}://{}{}",
                url.scheme(),
                url.host_str().unwrap_or_default(),
                url.port()
                    .map_or_else(String::new, |port| format!(":{port}"))
            ),
            Self::Nats(prefix) => write!(f, "nats:{prefix}"),
        }
    }
}

impl Fixed {
    /// No service yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A service and its nodes; they take turns.
    ///
    /// # Errors
    /// The first text that is no node.
    pub fn service<'a>(
        mut self,
        name: impl Into<String>,
        nodes: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, NodeError> {
        let nodes = nodes.into_iter().map(Node::parse);
        let nodes = nodes.take(MAX_NODES).collect::<Result<_, _>>()?;
        self.0.insert(name.into(), nodes);
        Ok(self)
    }
}

impl Registry for Fixed {
    fn nodes<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Result<Vec<Node>, RegistryError>> {
        let found = self.0.get(service).filter(|nodes| !nodes.is_empty());
        let found = found.cloned();
        let found = found.ok_or_else(|| RegistryError::None(service.to_owned()));
        Box::pin(std::future::ready(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_an_address_or_a_prefix() {
        let http = Node::parse("http://pay:8080/base").unwrap();
        let Node::Http(url) = &http else {
            panic!("{http}");
        };
        assert_eq!(
            url.join("local/execute").unwrap().path(),
            "/base/local/execute"
        );
        assert_eq!(
            Node::parse("nats:eu.pay"),
            Ok(Node::Nats("eu.pay".to_owned()))
        );
        for wrong in [
            "",
            "pay:8080",
            "ftp://x",
            "http://x/?a=b",
            "nats:",
            "nats:a..b",
            "nats:*",
        ] {
            let error = Node::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("http://host"), "{error}");
        }
    }

    #[test]
    fn a_printed_node_holds_no_password() {
        let node = Node::parse("https://user:secret@pay:8443/x").unwrap();
        assert_eq!(node.to_string(), "https://pay:8443");
    }
}
