//! Free loopback ports that a restarted server finds free again.
//!
//! Ports come from below the kernel's ephemeral range: one from inside it (port 0, or a server's
//! own choice) may be somebody's outgoing connection by the time that a killed server comes back.
//! A port is only probably free; whoever starts a server on it tries others when it is not.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::Error;
use crate::token;

/// Below the ephemeral range of Linux (32768) and above well-known services.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;
/// A start on ports that were free a moment ago fails rarely; five in a row mean another reason.
pub(crate) const TRIES: usize = 5;

/// Distinct loopback ports on which nobody listens now, for servers of a caller's own.
///
/// # Errors
/// When the kernel gives no random bytes.
pub fn free(count: usize) -> Result<Vec<u16>, Error> {
    // All stay bound until the last is found, so that they differ.
    let mut held = Vec::with_capacity(count);
    while held.len() < count {
        let candidate = candidate()?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)) {
            held.push((candidate, listener));
        }
    }
    Ok(held.into_iter().map(|(port, _listener)| port).collect())
}

/// One free port.
pub(crate) fn one() -> Result<u16, Error> {
    Ok(free(1)?.first().copied().unwrap_or(FIRST))
}

fn candidate() -> Result<u16, Error> {
    let random = token::random::<2>()?;
    let random = u16::from_str_radix(&random, 16).unwrap_or_default();
    Ok(FIRST + random % COUNT)
}
