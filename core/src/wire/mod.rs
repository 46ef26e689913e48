//! The only types that cross NATS: JSON with `"v":1` and a `"kind"`.
//!
//! Readers ignore fields that they do not know and refuse kinds that they do not know. Tokens are
//! decimal strings (JSON numbers lose them beyond 2^53), times RFC 3339 in UTC, durations
//! milliseconds with `_ms`. A window is under 1 KB; whatever comes larger than [`MAX_BYTES`] or
//! does not parse is counted and dropped by the shell.

mod event;
mod member;
mod request;
mod scalar;
mod status;
mod window;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

pub use self::{
    event::{Author, Event, Fact, Role, Tx},
    member::{Health, Load, Who},
    request::{
        Answer, Assign, Confirm, Hint, Leave, OrchestratorBeat, Question, Refusal, Register,
        SlaveBeat,
    },
    scalar::Time,
    status::{MasterStatus, MemberStatus, ServiceCut, SlaveStatus},
    window::{CutWire, GrantWire, ParentWire, Probe, Publication, SeatWire},
};

/// The version every message carries.
pub const VERSION: u8 = 1;

/// Larger messages are dropped unread: 64 KiB, far above a window (1 KB) and a status of a
/// thousand members, and below NATS' default `max_payload` (1 MiB).
pub const MAX_BYTES: usize = 64 * 1024;

/// Why bytes are not a message.
#[derive(Debug, Error)]
pub enum WireError {
    /// Longer than [`MAX_BYTES`].
    #[error("{0} bytes are too many (at most {MAX_BYTES})")]
    TooLarge(usize),
    /// Another version of the contract.
    #[error("version {0} is not spoken here (only {VERSION})")]
    Version(u8),
    /// Not JSON of the expected shape.
    #[error("not a message of the contract")]
    Shape(#[source] serde_json::Error),
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u8,
    #[serde(flatten)]
    body: T,
}

#[derive(Deserialize)]
struct VersionOnly {
    v: u8,
}

/// Writes a message.
///
/// # Errors
/// [`WireError::TooLarge`] when it would exceed [`MAX_BYTES`].
pub fn encode<T: Serialize>(body: &T) -> Result<Vec<u8>, WireError> {
    let bytes = serde_json::to_vec(&Envelope { v: VERSION, body }).map_err(WireError::Shape)?;
    if bytes.len() > MAX_BYTES {
        Err(WireError::TooLarge(bytes.len()))
    } else {
        Ok(bytes)
    }
}

/// Reads a message.
///
/// # Errors
/// [`WireError`] when the bytes are too many, of another version, or of another shape.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    if bytes.len() > MAX_BYTES {
        return Err(WireError::TooLarge(bytes.len()));
    }
    let version: VersionOnly = serde_json::from_slice(bytes).map_err(WireError::Shape)?;
    if version.v != VERSION {
        return Err(WireError::Version(version.v));
    }
    let envelope: Envelope<T> = serde_json::from_slice(bytes).map_err(WireError::Shape)?;
    Ok(envelope.body)
}

#[cfg(test)]
mod tests;
