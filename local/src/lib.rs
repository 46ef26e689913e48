//! Real NATS, Redis and Postgres servers as child processes, for dev, demo and tests.
//!
//! Decides which server binaries run, on which ports, under which user and for how long: never
//! longer than the process that started them. Refuses to know what the servers are used for: no
//! subject, no key and no table of ours appears here, schemas come in as a hook.
//!
//! Read [`Set`] first (all three servers), then [`Process`] (how long a child lives).

mod background;
mod binaries;
mod cluster;
mod database;
mod dev;
mod error;
mod folder;
mod nats;
mod ports;
mod postgres;
mod process;
mod ready;
mod redis;
mod server;
mod set;
mod settings;
mod spec;
mod token;
mod wheels;

pub use binaries::{Binaries, PostgresBinaries};
pub use cluster::NatsCluster;
pub use database::TestDatabase;
pub use dev::{Companions, Outcome, dev};
pub use error::{Error, HookError, Missing};
pub use nats::{Nats, Role};
pub use ports::free as free_ports;
pub use postgres::{Durability, Postgres};
pub use process::{Process, Program};
pub use redis::Redis;
pub use server::Server;
pub use set::{Addresses, Scope, Set, SetOptions};
pub use settings::Settings;
pub use spec::Spec;
