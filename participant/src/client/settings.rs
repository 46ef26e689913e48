//! Limits of calls, whom to trust, and how to sign.

use std::{path::PathBuf, time::Duration};

use crate::{token::Signer, wire::MAX_BODY_BYTES};

/// How calls are made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest time for a connection, its TLS included. Default 2 s: a host that does not answer
    /// at all is away; one that does, answers at once.
    pub connect_within: Duration,
    /// Longest time for a call. Default 30 s; a step's own time limit, when it is shorter, wins.
    pub answer_within: Duration,
    /// Longest body that is read of an answer, in bytes. Default: two values of a saga's store.
    pub answer_bytes: usize,
    /// Idle connections that are kept for each node. Default 10.
    pub idle_connections: usize,
    /// A file with certificates (PEM) to trust beside the system's own.
    pub ca: Option<PathBuf>,
    /// Signs each call; see [`token`](crate::token). Default: calls are not signed.
    pub signer: Option<Signer>,
}

/// Why a client can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The CA's file.
    #[error("the CA's file {path} can't be used: {says}")]
    Ca {
        /// Which file.
        path: PathBuf,
        /// Why.
        says: String,
    },
    /// A limit is zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// TLS or HTTP can't be set up.
    #[error("HTTP can't be set up: {0}")]
    Http(String),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_within: Duration::from_secs(2),
            answer_within: Duration::from_secs(30),
            answer_bytes: MAX_BODY_BYTES,
            idle_connections: 10,
            ca: None,
            signer: None,
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), ClientError> {
        for (name, zero) in [
            ("connect_within", self.connect_within.is_zero()),
            ("answer_within", self.answer_within.is_zero()),
            ("answer_bytes", self.answer_bytes == 0),
        ] {
            if zero {
                return Err(ClientError::Zero(name));
            }
        }
        Ok(())
    }
}
