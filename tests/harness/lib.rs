//! The simulated world: the same machines as in production, driven over a network, a Redis and
//! clocks that misbehave. One seed is one universe.
//!
//! `params` draws a universe; `world` runs it (`process` drives machines, `faults` break them, `bus` and `redis_port` perform
//! the machines' orders, `sampling` compares claims); `watch` feeds `invariants` and `counters`.
//! Nothing here reads a clock or chance of the real world.

pub mod actor;
pub mod batch;
mod bus;
pub mod clock;
pub mod counters;
pub mod event;
mod faults;
pub mod invariants;
pub mod mutants;
pub mod network;
pub mod node;
pub mod params;
mod process;
pub mod redis;
mod redis_port;
pub mod requests;
pub mod rng;
mod sampling;
pub mod trace;
pub mod watch;
pub mod world;
