//! Participants of sagas: services that carry out steps for a saga that runs elsewhere.
//!
//! | you write | use | features |
//! |---|---|---|
//! | a service whose steps sagas call | [`worker`]: register functions by step name, mount a router or a NATS service | `http`, `nats` |
//! | its effects in Postgres, exactly once | [`barrier`]: middleware of the worker, an API, and plain SQL for any language | `barrier` |
//! | a saga that calls such services | [`client`]: a step from a service's name, retries classified | `client` |
//! | both in one process | all of it: a coordinator may be a worker, too | all |
//!
//! # The contract
//!
//! Two endpoints, `POST {base}/local/execute` and `POST {base}/local/compensate`, the same as NATS
//! requests on `{prefix}.local.execute` and `{prefix}.local.compensate`:
//!
//! ```text
//! idempotency-key: 0190b3a0-7c3e-8000-8000-000000000001/forward/charge
//! ringsaga-attempt: 1
//! authorization: Bearer <service token>
//!
//! {"StepName": "charge", "payload": {"cents": 700}}
//! {"StepName": "charge", "payload": {"cents": 700}, "ActionResult": {"receipt": 1}}
//! ```
//!
//! The key is `transaction/direction/step`, the same for every attempt: what a participant does
//! depends on nothing else. Our [`worker`] answers as [`wire::Answer`] says, and the [`client`]
//! reads every contract that [`wire`] lists, so a participant in another language needs no SDK.
//!
//! This crate knows nothing of how sagas are stored or retried; it says what an answer *means*, and
//! the saga's machine decides what follows.

#[cfg(feature = "barrier")]
pub mod barrier;
#[cfg(feature = "client")]
pub mod client;
mod key;
#[cfg(feature = "token")]
pub mod token;
pub mod wire;
pub mod worker;

pub use key::{Direction, Key, KeyError};
