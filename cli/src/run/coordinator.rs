//! A process that is master, slave or both, from one manifest (R14, R15).
//!
//! `coordinator.role` is `index` (the default), `both`, `master` or `slave`. By index: 0 is a
//! master, every other a slave, and 1 … `coordinator.standbys` (default 1) stand by as masters
//! beside it, so that losing pod 0 stops nothing. The index is `coordinator.index`, else the
//! number after the last dash of the id (a StatefulSet pod's name).
//!
//! Each role has its own NATS user: `master.nats.user`, `slave.nats.user` and so on go before
//! `nats.user`; `slave.http.listen` goes before `http.listen`, as two roles need two addresses.

use anyhow::Context;
use ring_core::machine::End;
use ring_shell::config::{Common, Effective, Settings, Sources};
use secrecy::SecretString;

use super::process::{log, read, sources, start};
use crate::{args::Sourced, exit::Exit};

/// Settings that each role may have for itself.
const OWN: [&str; 6] = [
    "nats.user",
    "nats.password",
    "nats.token",
    "nats.creds",
    "nats.nkey",
    "http.listen",
];

/// What a slave's configuration does not know and a coordinator's may hold.
const OF_MASTERS: [&str; 3] = ["redis.url", "master.balance", "master.alone"];

/// The roles of one process.
struct Roles {
    master: Option<ring_master::Config>,
    slave: Option<ring_slave::Config>,
    effective: Vec<Effective>,
}

/// Runs the roles of this index.
pub(super) fn run(sourced: &Sourced) -> anyhow::Result<()> {
    let sources = sources(sourced);
    let log = log(&sources, ring_core::wire::Role::Slave);
    let Roles { master, slave, .. } = choose(&sources)?;
    start(&log, async |numbers, shutdown| {
        let master = master.map(|config| {
            let config = ring_master::Config {
                numbers: Some(numbers.clone()),
                ..config
            };
            ring_master::run(config, shutdown.clone())
        });
        let slave = slave.map(|config| {
            let config = ring_slave::Config {
                numbers: Some(numbers),
                ..config
            };
            ring_slave::run(config, shutdown.clone())
        });
        match (master, slave) {
            (Some(master), Some(slave)) => {
                // The one that ends first takes the other along, in order.
                let ended = shutdown.clone();
                let master = async { first(master.await.context("master"), &ended) };
                let slave = async { first(slave.await.context("slave"), &ended) };
                let (master, slave) = tokio::join!(master, slave);
                Ok(worse(master?, slave?))
            }
            (Some(master), None) => master.await.context("master"),
            (None, Some(slave)) => slave.await.context("slave"),
            (None, None) => Ok(End::Drained),
        }
    })
}

/// All settings of the roles of this index.
pub(super) fn effective(sourced: &Sourced) -> anyhow::Result<Vec<Effective>> {
    Ok(choose(&sources(sourced))?.effective)
}

fn first<T>(end: T, shutdown: &tokio_util::sync::CancellationToken) -> T {
    shutdown.cancel();
    end
}

fn worse(one: End, other: End) -> End {
    match (one, other) {
        (End::Superseded, _) | (_, End::Superseded) => End::Superseded,
        (End::Drained, End::Drained) => End::Drained,
    }
}

fn choose(sources: &Sources) -> anyhow::Result<Roles> {
    let (is_master, is_slave) = wanted(sources)?;
    let mut effective = Vec::new();
    let master = if is_master {
        let own = own(sources, "master");
        let (config, used) = read(own, |s| {
            set_aside(s, &[]);
            ring_master::Config::read(s)
        })?;
        effective.extend(used);
        Some(config)
    } else {
        None
    };
    let slave = if is_slave {
        let own = own(sources, "slave");
        let (mut config, used) = read(own, |s| {
            set_aside(s, &OF_MASTERS);
            ring_slave::Config::read(s)
        })?;
        let taken = master.as_ref().and_then(|m| m.listen);
        config.listen = config.listen.filter(|address| Some(*address) != taken);
        effective.extend(used);
        Some(config)
    } else {
        None
    };
    Ok(Roles {
        master,
        slave,
        effective,
    })
}

/// Whether this process is a master, and whether it is a slave.
fn wanted(sources: &Sources) -> anyhow::Result<(bool, bool)> {
    let mut settings = Settings::read(sources.clone());
    let role = settings.or("coordinator.role", "index".to_owned());
    let standbys: u64 = settings.or("coordinator.standbys", 1);
    let index: Option<u64> = settings.maybe("coordinator.index");
    match role.as_str() {
        "both" => return Ok((true, true)),
        "master" => return Ok((true, false)),
        "slave" => return Ok((false, true)),
        "index" => {}
        other => {
            return Err(Exit::Config.because(format!(
                "coordinator.role is {other:?}: write index, both, master or slave"
            )));
        }
    }
    let id = Common::read(&mut settings, ring_core::wire::Role::Slave).map(|c| c.id.to_string());
    let number = |id: String| id.rsplit('-').next().and_then(|n| n.parse().ok());
    match index.or_else(|| id.and_then(number)) {
        Some(0) => Ok((true, false)),
        Some(n) => Ok((n <= standbys, true)),
        None => Err(Exit::Config.because(
            "coordinator.index is missing, and the id does not end in -<number>: \
             set one of them, for example to \"0\" or \"coordinator-0\"",
        )),
    }
}

/// The sources of one role: its own settings go before the common ones.
fn own(sources: &Sources, role: &str) -> Sources {
    let mut settings = Settings::read(sources.clone());
    let mut own = sources.clone();
    for key in OWN {
        if let Some(value) = settings.maybe::<String>(&format!("{role}.{key}")) {
            own.flags.push((key.to_owned(), value));
        }
    }
    own
}

/// Takes note of keys that are not this role's, so that they are not reported as unknown.
fn set_aside(settings: &mut Settings, more: &[&str]) {
    for role in ["master", "slave"] {
        for key in OWN {
            settings.maybe::<SecretString>(&format!("{role}.{key}"));
        }
    }
    // Typed, so that a mistake in one of them is reported with the role's.
    settings.maybe::<String>("coordinator.role");
    settings.maybe::<u64>("coordinator.standbys");
    settings.maybe::<u64>("coordinator.index");
    for key in more {
        settings.maybe::<SecretString>(key);
    }
}
