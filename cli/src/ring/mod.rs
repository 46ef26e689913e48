//! The ring, seen from outside: what the bus says and what anyone can compute.

mod audit;
pub(crate) mod ear;
pub(crate) mod ledger;
mod owner;
pub(crate) mod split;
mod status;
pub(crate) mod token;
mod view;
pub(crate) mod watch;

use crate::args::Ring;

/// Runs a `ring` command.
pub(crate) fn run(command: Ring, json: bool) -> anyhow::Result<()> {
    let listen = async {
        match command {
            Ring::Watch(watch) => watch::run(&watch, json).await,
            Ring::Status(seen) => status::run(&seen, json).await,
            Ring::Audit(audit) => audit::run(&audit, json).await,
            Ring::Owner(owner) => owner::run(&owner, json).await,
            Ring::Token(ids) => token::run(&ids, json),
            Ring::Split(split) => split::run(&split, json),
        }
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(listen)
}
