//! What the order service is told, and how that becomes the node's configuration.

use std::net::SocketAddr;

use orchestrator_lib as lib;
use reqwest::Url;
use ring_core::{id::Service, region::RegionCodes, wire::Role};
use ring_shell::{
    bus::Credentials,
    config::{Common, ConfigError, Nats, Settings},
};
use secrecy::SecretString;

use super::{embedded, saga::Patience};
use crate::{Log, Logged};

/// The order service's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// `http.listen`
    pub listen: SocketAddr,
    /// `region`, `cluster`, `id`, `service`, `database.url`, `nats.…`, `ring.…`, `retry_node`,
    /// `capacity`, `migrate`: the node.
    pub node: lib::Config,
    /// `shop.inventory`: the service's address.
    pub inventory: Url,
    /// `shop.payment`: the service's address.
    pub payment: Url,
    /// `shop.patience.time_limit`, `.first`, `.cap` and `.attempts`.
    pub patience: Patience,
    /// `embedded`: master and slave run inside this process.
    pub(super) embedded: Option<embedded::Config>,
    log: Log,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// Every mistake at once.
    pub fn read(mut settings: Settings) -> Result<Self, ConfigError> {
        let asked = Self::ask(&mut settings);
        let (read, _) = settings.finish(asked)?;
        // `finish` has reported what is missing.
        read.ok_or(ConfigError { mistakes: vec![] })
    }

    fn ask(s: &mut Settings) -> Option<Self> {
        let common = Common::read(s, Role::Orchestrator);
        if let Some(None) = common.as_ref().map(|common| common.listen) {
            s.mistake(
                "http.listen",
                "is missing: set it, for example to \"127.0.0.1:8080\"",
            );
        }
        let service = s.or("service", "orders".to_owned());
        let service = Service::new(&service)
            .map_err(|error| s.mistake("service", &error.to_string()))
            .ok();
        let database: Option<SecretString> =
            s.needed("database.url", "postgres://shop:secret@localhost/orders");
        let retry_node = s.or("retry_node", true);
        let capacity = s.or("capacity", lib::Config::CAPACITY);
        let migrate = s.or("migrate", true);
        let inventory = participant(s, "shop.inventory");
        let payment = participant(s, "shop.payment");
        let patience = patience(s);
        let embedded = embedded::Config::ask(s, common.as_ref());
        let common = common?;
        let mut node = node(&common, service?, database?);
        node.retry_node = retry_node;
        node.capacity = capacity;
        node.migrate_on_start = migrate;
        if let Err(lib::ConfigErrors(mistakes)) = node.check() {
            for mistake in mistakes {
                s.mistake("node", &mistake.to_string());
            }
        }
        Some(Self {
            listen: common.listen?,
            node,
            inventory: inventory?,
            payment: payment?,
            patience,
            embedded,
            log: Log::of(&common.log),
        })
    }
}

impl Logged for Config {
    fn log(&self) -> Log {
        self.log.clone()
    }
}

fn node(common: &Common, service: Service, database: SecretString) -> lib::Config {
    let times = common.timing;
    lib::Config {
        region: common.scope.region.clone(),
        cluster: common.scope.cluster.clone(),
        service,
        instance: common.id.clone(),
        region_code: 0,
        regions: RegionCodes::default(),
        database: lib::Database {
            url: database,
            connections: 8,
        },
        nats: Some(bus(&common.nats)),
        retry_node: true,
        timing: lib::Times {
            window: Some(times.len),
            lead: Some(times.lead),
            guard: Some(times.guard),
            tolerance: Some(times.tolerance),
            heartbeat: Some(times.heartbeat),
            session: Some(times.session),
            owner_lease: Some(times.owner_lease),
            poll: Some(times.poll),
            overdue_after: Some(times.overdue_after),
            sweep: Some(times.sweep),
        },
        capacity: lib::Config::CAPACITY,
        targets: lib::Targets::default(),
        migrate_on_start: true,
        compensation_alert: lib::Config::COMPENSATION_ALERT,
        grace: common.grace,
    }
}

fn bus(nats: &Nats) -> lib::Nats {
    let servers = nats.servers.iter().cloned();
    let servers: Vec<String> = servers
        .map(|server| server.into_inner().to_string())
        .collect();
    let mut bus = lib::Nats::at(servers.join(","));
    bus.ca.clone_from(&nats.ca);
    match nats.credentials.clone() {
        Credentials::None => bus,
        Credentials::User { user, password } => bus.user(user, password),
        Credentials::Token(token) => lib::Nats {
            token: Some(token),
            ..bus
        },
        Credentials::File(file) => lib::Nats {
            creds: Some(file),
            ..bus
        },
        Credentials::Nkey(seed) => lib::Nats {
            nkey: Some(seed),
            ..bus
        },
    }
}

fn patience(s: &mut Settings) -> Patience {
    let usual = Patience::default();
    Patience {
        time_limit: s.or("shop.patience.time_limit", usual.time_limit),
        first: s.or("shop.patience.first", usual.first),
        cap: s.or("shop.patience.cap", usual.cap),
        attempts: s.or("shop.patience.attempts", usual.attempts),
    }
}

/// A base address. Relative addresses keep its path only when it ends with a slash.
fn participant(s: &mut Settings, key: &str) -> Option<Url> {
    let text: String = s.needed(key, "http://inventory:8080")?;
    let base = format!("{}/", text.trim_end_matches('/'));
    match Url::parse(&base) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Some(url),
        Ok(_) | Err(_) => {
            s.mistake(
                key,
                &format!("is {text:?}: write an address like \"http://inventory:8080\""),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use ring_shell::config::Sources;

    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::read(Settings::read(Sources {
            flags: given
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..Sources::default()
        }))
    }

    const SOUND: [(&str, &str); 6] = [
        ("region", "eu-1"),
        ("cluster", "c1"),
        ("http.listen", "127.0.0.1:0"),
        ("database.url", "postgres://localhost/orders"),
        ("shop.inventory", "http://inventory:8080"),
        ("shop.payment", "http://gateway/payment"),
    ];

    #[test]
    fn addresses_of_participants_keep_their_path() {
        let config = read(&SOUND).unwrap();
        assert_eq!(
            config.payment.join("charge").unwrap().path(),
            "/payment/charge"
        );
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let error = read(&[
            ("shop.payment", "ftp://x"),
            ("capacity", "0"),
            ("colour", "red"),
        ]);
        let says = error.unwrap_err().to_string();
        for key in [
            "region",
            "database.url",
            "shop.inventory",
            "shop.payment",
            "colour",
        ] {
            assert!(says.contains(key), "{key}: {says}");
        }
    }

    #[test]
    fn an_embedded_master_has_redis_or_is_alone() {
        let embedded = ("embedded", "true");
        let alone: Vec<_> = SOUND.into_iter().chain([embedded]).collect();
        assert!(read(&alone).unwrap().embedded.is_some());
        let odd: Vec<_> = SOUND
            .into_iter()
            .chain([("redis.url", "redis://x/")])
            .collect();
        assert!(read(&odd).unwrap_err().to_string().contains("embedded"));
    }
}
