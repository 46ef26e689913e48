//! The master's keys: those of all roles, `redis.url`, `master.balance` and `master.alone`.

use std::{net::SocketAddr, time::Duration};

use ring_core::{master::Balance, timing::Timing, wire::Role};
use ring_shell::{
    bus, clock,
    config::{Common, Setting, Settings},
    telemetry::Numbers,
};
use secrecy::SecretString;

use crate::registry::Address;

/// All that a master needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its connection, scope, id and boot.
    pub bus: bus::Options,
    /// All times.
    pub timing: Timing,
    /// How rings are divided.
    pub balance: Balance,
    /// Its registry; absent: it is the only master of its cluster and keeps everything in memory.
    pub redis: Option<Address>,
    /// Where health and metrics are served; absent: nowhere.
    pub listen: Option<SocketAddr>,
    /// The process's numbers, for `/metrics`.
    pub numbers: Option<Numbers>,
    /// How long leaving may take.
    pub grace: Duration,
}

impl Config {
    /// Asks for the keys of a master. `None` when one that must be there is not.
    pub fn read(settings: &mut Settings) -> Option<Self> {
        let common = Common::read(settings, Role::Master);
        let balance = settings.or("master.balance", Divided(Balance::Weighted)).0;
        let alone = settings.or("master.alone", false);
        let url: Option<SecretString> = settings.maybe("redis.url");
        let redis = match (alone, &url) {
            (false, Some(url)) => Some(
                Address::new(url)
                    .map_err(|error| settings.mistake("redis.url", &error.to_string()))
                    .ok()?,
            ),
            (true, None) => None,
            (true, Some(_)) => {
                settings.mistake(
                    "redis.url",
                    "is not used by a master that is alone: keep one",
                );
                None
            }
            (false, None) => {
                settings.mistake(
                    "redis.url",
                    "is missing: set it, for example to \"redis://127.0.0.1:6379/\", or set \
                     master.alone for the only master of a cluster",
                );
                None
            }
        };
        let common = common?;
        Some(Self {
            bus: common.bus(clock::boot()),
            timing: common.timing,
            balance,
            redis,
            listen: common.listen,
            numbers: None,
            grace: common.grace,
        })
    }
}

struct Divided(Balance);

impl Setting for Divided {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "weighted" => Ok(Self(Balance::Weighted)),
            "equal" => Ok(Self(Balance::Equal)),
            other => Err(format!("is {other:?}: write weighted or equal")),
        }
    }
    fn show(&self) -> Option<String> {
        let word = match self.0 {
            Balance::Weighted => "weighted",
            Balance::Equal => "equal",
        };
        Some(word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use ring_shell::config::Sources;

    use super::*;

    fn read(of: &[(&str, &str)]) -> Result<Option<Config>, String> {
        let scope = [("RINGSAGA__REGION", "eu-1"), ("RINGSAGA__CLUSTER", "c1")];
        let all = scope.iter().chain(of);
        let mut settings = Settings::read(Sources {
            environment: all.map(|(k, v)| (k.into(), v.into())).collect(),
            ..Sources::default()
        });
        let config = Config::read(&mut settings);
        let read = settings.finish(config);
        read.map(|(config, _)| config)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_master_has_a_registry_or_is_alone() {
        assert!(read(&[]).unwrap_err().contains("redis.url is missing"));
        let alone = ("RINGSAGA__MASTER__ALONE", "true");
        let redis = ("RINGSAGA__REDIS__URL", "redis://:hush@127.0.0.1:6379/");
        assert!(read(&[alone]).unwrap().unwrap().redis.is_none());
        assert!(read(&[alone, redis]).unwrap_err().contains("keep one"));
        let both = read(&[redis]).unwrap().unwrap();
        let shown = format!("{both:?}");
        assert!(
            shown.contains("127.0.0.1:6379") && !shown.contains("hush"),
            "{shown}"
        );
    }

    #[test]
    fn a_strange_registry_or_balance_is_told_with_advice() {
        let said = read(&[
            ("RINGSAGA__REDIS__URL", "127.0.0.1"),
            ("RINGSAGA__MASTER__BALANCE", "fair"),
        ])
        .unwrap_err();
        assert!(said.contains("write redis://"), "{said}");
        assert!(said.contains("write weighted or equal"), "{said}");
    }
}
