//! Does what the core says and decides nothing: tokio and NATS.
//!
//! [`drive`] is the only loop: it waits for one thing, hands it to a machine, performs the orders.
//! [`bus`] performs `bus::Op` over NATS. [`clock`] is the only reader of the OS clocks, `config`
//! the only reader of the environment, [`token`] the only caller of the hash. It knows neither
//! Redis nor Postgres.
//!
//! Features, off by default so that a library that links this stays light: `config` (file and
//! environment), `telemetry` (log output), `http` (health and metrics pages).

pub mod bus;
pub mod clock;
#[cfg(feature = "config")]
pub mod config;
pub mod drive;
#[cfg(feature = "http")]
pub mod health;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod token;
pub mod view;

/// Version of this program, as it tells other nodes and people.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");
