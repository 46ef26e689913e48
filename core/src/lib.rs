//! `ring-core` decides everything and does nothing.
//!
//! The words of the domain stand on the ground floor ([`time`], [`chance`], [`id`], [`token`],
//! [`timing`], [`window`]), above them what crosses a wire or a port ([`wire`], [`subject`], [`bus`],
//! [`registry`], [`store`]), on top the machines ([`master`], [`slave`], [`orchestrator`],
//! [`saga`], [`owner`], [`lookout`], [`breaker`]).
//!
//! A machine keeps one contract, see [`machine::Machine`]. The crate is `no_std`: the compiler
//! refuses clocks, sockets, threads, randomness and the environment. Time, chance and identity
//! arrive as arguments.
#![no_std]
extern crate alloc;

pub mod breaker;
pub mod bus;
pub mod chance;
pub mod id;
pub mod joining;
pub mod lookout;
pub mod machine;
pub mod master;
pub mod orchestrator;
pub mod owner;
pub mod region;
pub mod registry;
pub mod roster;
pub mod saga;
pub mod slave;
pub mod store;
pub mod subject;
pub mod time;
pub mod timing;
pub mod token;
pub mod window;
pub mod wire;
