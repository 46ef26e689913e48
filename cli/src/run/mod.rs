//! Runs roles: master, slave, a coordinator that is either or both, and the notifier.
//!
//! Hands over to the role's library. What a role decides is not here.

mod coordinator;
pub(crate) mod dev;
mod notify;
mod process;
mod roles;
mod shown;

pub(crate) use self::{
    notify::config as notifier_config,
    shown::{check, print},
};
use crate::args::{Role, Sourced};

/// Runs a role until a signal, or until a newer boot has its id (exit 78).
pub(crate) fn run(role: Role, sourced: &Sourced) -> anyhow::Result<()> {
    match role {
        Role::Master => roles::master(sourced),
        Role::Slave => roles::slave(sourced),
        Role::Coordinator => coordinator::run(sourced),
        Role::Notifier => notify::run(sourced),
    }
}
