//! A notifier's settings, from file and environment like every role's.
//!
//! ```toml
//! region = "eu-1"
//! cluster = "c1"
//! database.url = "postgres://…"
//!
//! [notify]
//! hooks = ["oncall", "team"]
//! link = "https://console.example/tx/{tx}"
//!
//! [hook.oncall]
//! type = "generic"
//! url = "https://oncall.example/hook"
//! secret = "…"                  # or RINGSAGA__HOOK__ONCALL__SECRET
//! kinds = ["terminated", "irreversible-failed", "quarantined"]   # default: all
//!
//! [hook.team]
//! type = "wecom"
//! url = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…"
//! ```

use std::net::SocketAddr;

use orchestrator_lib::store::AlertKind;
use ring_core::{id::Scope, wire::Role};
use ring_shell::config::{Common, Setting, Settings};
use secrecy::SecretString;

use crate::{
    hook::{ATTEMPTS, GENERIC_PER_MINUTE, Hook, HookName, Target, WECOM_PER_MINUTE},
    http,
};

/// Most hooks of one notifier: each is a task that asks the store once a second.
const MAX_HOOKS: usize = 32;

/// All that a notifier needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose alerts.
    pub scope: Scope,
    /// Where the store is.
    pub database: SecretString,
    /// Who hears them.
    pub hooks: Vec<Hook>,
    /// Where health and metrics are served; absent: nowhere.
    pub listen: Option<SocketAddr>,
}

impl Config {
    /// Asks for the keys of a notifier. `None` when one that must be there is not. Settings of NATS
    /// and of the ring may stand beside them and are not used.
    pub fn read(settings: &mut Settings) -> Option<Self> {
        let common = Common::read(settings, Role::Orchestrator);
        let database = settings.needed("database.url", "postgres://host/name");
        let names: Option<Names> = settings.needed("notify.hooks", "oncall,team");
        let link: Option<String> = settings.maybe("notify.link");
        let mut hooks = Vec::new();
        for name in names.iter().flat_map(|names| &names.0) {
            hooks.push(hook(settings, name, link.as_deref()));
        }
        let common = common?;
        Some(Self {
            scope: common.scope,
            database: database?,
            hooks: hooks.into_iter().collect::<Option<_>>()?,
            listen: common.listen,
        })
    }
}

/// Asks for every key of a hook, so that one that is wrong makes no other look unknown.
fn hook(settings: &mut Settings, name: &HookName, link: Option<&str>) -> Option<Hook> {
    let key = |part: &str| format!("hook.{}.{part}", name.as_str());
    let kind: Option<Kind> = settings.needed(&key("type"), "generic");
    let url: Option<SecretString> = settings.needed(&key("url"), "https://host/path");
    if url.as_ref().is_some_and(|url| !http::is_address(url)) {
        let says = "is no address: write http:// or https://, a host and a path";
        settings.mistake(&key("url"), says);
    }
    let secret: Option<SecretString> = match kind {
        Some(Kind::Generic) => settings.needed(&key("secret"), "32 random characters"),
        Some(Kind::WeCom) => None,
        None => settings.maybe(&key("secret")),
    };
    let kinds = settings.or(&key("kinds"), Kinds(AlertKind::ALL.to_vec()));
    let usual = kind.as_ref().map_or(GENERIC_PER_MINUTE, Kind::per_minute);
    let per_minute: u32 = settings.or(&key("per_minute"), usual);
    let attempts: u32 = settings.or(&key("attempts"), ATTEMPTS);
    for (part, value) in [("per_minute", per_minute), ("attempts", attempts)] {
        if value == 0 {
            settings.mistake(&key(part), "is 0: write 1 or more");
        }
    }
    let target = match kind? {
        Kind::Generic => Target::Generic {
            url: url?,
            secret: secret?,
        },
        Kind::WeCom => Target::WeCom { url: url? },
    };
    let hook = Hook::new(name.as_str(), target)
        .only(kinds.0)
        .per_minute(per_minute)
        .attempts(attempts);
    Some(match link {
        Some(link) => hook.link(link),
        None => hook,
    })
}

struct Names(Vec<HookName>);

impl Setting for Names {
    fn read(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(|name| HookName::new(name.trim()));
        let names: Vec<HookName> = names.collect::<Result<_, _>>()?;
        let twice = |name: &&HookName| names.iter().filter(|n| n == name).count() > 1;
        if let Some(name) = names.iter().find(twice) {
            return Err(format!("names {:?} twice", name.as_str()));
        }
        if names.len() > MAX_HOOKS {
            return Err(format!("names {} hooks: at most {MAX_HOOKS}", names.len()));
        }
        Ok(Self(names))
    }
    fn show(&self) -> Option<String> {
        let names: Vec<&str> = self.0.iter().map(HookName::as_str).collect();
        Some(names.join(","))
    }
}

enum Kind {
    Generic,
    WeCom,
}

impl Kind {
    fn per_minute(&self) -> u32 {
        match self {
            Self::Generic => GENERIC_PER_MINUTE,
            Self::WeCom => WECOM_PER_MINUTE,
        }
    }
}

impl Setting for Kind {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "generic" => Ok(Self::Generic),
            "wecom" => Ok(Self::WeCom),
            other => Err(format!("is {other:?}: write generic or wecom")),
        }
    }
    fn show(&self) -> Option<String> {
        let text = match self {
            Self::Generic => "generic",
            Self::WeCom => "wecom",
        };
        Some(text.to_owned())
    }
}

struct Kinds(Vec<AlertKind>);

impl Setting for Kinds {
    fn read(text: &str) -> Result<Self, String> {
        let kind = |word: &str| {
            AlertKind::parse(word.trim()).ok_or_else(|| {
                let known: Vec<&str> = AlertKind::ALL.iter().map(|kind| kind.as_str()).collect();
                format!("has {word:?}: write some of {}", known.join(", "))
            })
        };
        text.split(',')
            .map(kind)
            .collect::<Result<_, _>>()
            .map(Self)
    }
    fn show(&self) -> Option<String> {
        let words: Vec<&str> = self.0.iter().map(|kind| kind.as_str()).collect();
        Some(words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use ring_shell::config::{ConfigError, Effective, Sources};

    use super::*;

    fn read(of: &[(&str, &str)]) -> Result<(Option<Config>, Vec<Effective>), ConfigError> {
        let base = [
            ("RINGSAGA__REGION", "eu"),
            ("RINGSAGA__CLUSTER", "main"),
            ("RINGSAGA__DATABASE__URL", "postgres://u:pw@localhost/x"),
        ];
        let all = base.iter().chain(of);
        let mut settings = Settings::read(Sources {
            environment: all.map(|(k, v)| (k.into(), v.into())).collect(),
            ..Sources::default()
        });
        let config = Config::read(&mut settings);
        settings.finish(config)
    }

    #[test]
    fn hooks_are_read_from_variables_and_secrets_are_not_shown() {
        let (config, effective) = read(&[
            ("RINGSAGA__NOTIFY__HOOKS", "oncall,team"),
            ("RINGSAGA__HOOK__ONCALL__TYPE", "generic"),
            ("RINGSAGA__HOOK__ONCALL__URL", "https://oncall.example/x"),
            ("RINGSAGA__HOOK__ONCALL__SECRET", "s3cret"),
            ("RINGSAGA__HOOK__ONCALL__KINDS", "terminated, quarantined"),
            ("RINGSAGA__HOOK__TEAM__TYPE", "wecom"),
            (
                "RINGSAGA__HOOK__TEAM__URL",
                "https://qyapi.example/send?key=693a",
            ),
        ])
        .unwrap();
        let hooks = config.unwrap().hooks;
        assert_eq!(hooks.len(), 2);
        assert_eq!(
            hooks[0].kinds,
            [AlertKind::Terminated, AlertKind::Quarantined]
        );
        assert_eq!(hooks[1].per_minute, 20);
        let shown = format!("{effective:?}");
        for secret in ["s3cret", "693a", "pw"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn every_mistake_of_a_hook_is_reported_with_its_key() {
        let error = read(&[
            ("RINGSAGA__NOTIFY__HOOKS", "oncall,team"),
            ("RINGSAGA__HOOK__ONCALL__TYPE", "generic"),
            ("RINGSAGA__HOOK__ONCALL__URL", "oncall.example/key=693a"),
            ("RINGSAGA__HOOK__ONCALL__KINDS", "terminated,bad"),
            ("RINGSAGA__HOOK__TEAM__TYPE", "slack"),
            ("RINGSAGA__HOOK__OTHER__TYPE", "wecom"),
        ])
        .unwrap_err();
        let keys: Vec<&str> = error.mistakes.iter().map(|m| m.key.as_str()).collect();
        for key in [
            "hook.oncall.url",
            "hook.oncall.kinds",
            "hook.oncall.secret",
            "hook.team.type",
            "hook.team.url",
            "hook.other.type",
        ] {
            assert!(keys.contains(&key), "{key} in {keys:?}");
        }
        assert!(!error.to_string().contains("693a"), "{error}");
    }
}
