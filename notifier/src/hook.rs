//! Where alerts go: a name, what it wants to hear, and how it is reached. Addresses and keys are
//! secrets: they are never printed.

use std::{fmt, time::Duration};

use orchestrator_lib::store::AlertKind;
use secrecy::SecretString;

/// Longest name: it is a key in the store and a word in variables' names.
const MAX_NAME: usize = 32;

/// Default for [`Hook::attempts`]: with the pauses of [`FIRST_PAUSE`] to [`LAST_PAUSE`] this is
/// about a day.
pub(crate) const ATTEMPTS: u32 = 100;

/// First pause after a failed attempt, before jitter; it doubles …
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// … up to this: a receiver that comes back waits no longer for what it missed.
pub(crate) const LAST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// Calls a minute that a receiver of our own signed requests takes, unless it is told otherwise.
pub(crate) const GENERIC_PER_MINUTE: u32 = 600;

/// `WeCom`'s limit for one robot.
pub(crate) const WECOM_PER_MINUTE: u32 = 20;

/// Name of a hook: `[a-z][a-z0-9_]{0,31}`, so that it is a part of keys and of variables' names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HookName(String);

/// One receiver.
#[derive(Clone, Debug)]
pub struct Hook {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) kinds: Vec<AlertKind>,
    pub(crate) per_minute: u32,
    pub(crate) attempts: u32,
    pub(crate) first_pause: Duration,
    pub(crate) link: Option<String>,
}

/// How it is reached.
#[derive(Clone)]
pub enum Target {
    /// A request with a JSON body for each alert, signed.
    Generic {
        /// The address.
        url: SecretString,
        /// The key of the signature.
        secret: SecretString,
    },
    /// A robot in a `WeCom` group; the address holds its key. Bursts become one message.
    WeCom {
        /// The address.
        url: SecretString,
    },
}

impl HookName {
    /// Checks a name.
    ///
    /// # Errors
    /// The rule it breaks, as the rest of a sentence.
    pub fn new(name: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let first = name.starts_with(|c: char| c.is_ascii_lowercase());
        if first && name.len() <= MAX_NAME && name.chars().all(plain) {
            Ok(Self(name.to_owned()))
        } else {
            Err(format!(
                "names a hook {name:?}: write a lower-case letter, then letters, digits and \
                 underscores, at most {MAX_NAME} in all"
            ))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Target {
    /// A receiver of signed JSON.
    pub fn generic(url: impl Into<String>, secret: impl Into<String>) -> Self {
        Self::Generic {
            url: url.into().into(),
            secret: secret.into().into(),
        }
    }

    /// A robot of `WeCom`.
    pub fn wecom(url: impl Into<String>) -> Self {
        Self::WeCom {
            url: url.into().into(),
        }
    }

    pub(crate) fn url(&self) -> &SecretString {
        match self {
            Self::Generic { url, .. } | Self::WeCom { url } => url,
        }
    }

    /// Alerts in one call: people read one message, programs one alert.
    pub(crate) fn at_once(&self) -> u32 {
        match self {
            Self::Generic { .. } => 1,
            Self::WeCom { .. } => 500,
        }
    }
}

impl Hook {
    /// A hook that hears every kind, with the receiver's usual limits.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        let per_minute = match target {
            Target::Generic { .. } => GENERIC_PER_MINUTE,
            Target::WeCom { .. } => WECOM_PER_MINUTE,
        };
        Self {
            name: name.into(),
            target,
            kinds: AlertKind::ALL.to_vec(),
            per_minute,
            attempts: ATTEMPTS,
            first_pause: FIRST_PAUSE,
            link: None,
        }
    }

    /// It hears these kinds alone.
    #[must_use]
    pub fn only(mut self, kinds: impl IntoIterator<Item = AlertKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// At most so many calls a minute, evenly, over all notifiers; at least 1.
    #[must_use]
    pub fn per_minute(mut self, calls: u32) -> Self {
        self.per_minute = calls.max(1);
        self
    }

    /// Given up after so many failed attempts; at least 1. Default 100, which is about a day.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The pause after the first failed attempt; it doubles up to 15 minutes. Default 2 s.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// Where a person looks at a transaction: an address in which `{tx}` stands for its id.
    #[must_use]
    pub fn link(mut self, template: impl Into<String>) -> Self {
        self.link = Some(template.into());
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Least time between two calls.
    pub(crate) fn pace(&self) -> Duration {
        Duration::from_secs(60) / self.per_minute
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Generic { .. } => "Generic(…)",
            Self::WeCom { .. } => "WeCom(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_in_print_shows_no_address_and_no_key() {
        let hook = Hook::new(
            "team",
            Target::wecom("https://example.org/send?key=693a91f6"),
        );
        assert!(!format!("{hook:?}").contains("693a91f6"));
        let hook = Hook::new("oncall", Target::generic("https://u:pw@host/", "s3cret"));
        let shown = format!("{hook:?}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("pw"),
            "{shown}"
        );
    }

    #[test]
    fn names_that_variables_can_hold_are_names() {
        for good in ["oncall", "team_2", "a"] {
            assert!(HookName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "On", "2a", "a-b", "a.b", "ä", &"a".repeat(33)] {
            assert!(HookName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn twenty_a_minute_is_one_every_three_seconds() {
        let hook = Hook::new("team", Target::wecom("https://example.org"));
        assert_eq!(hook.pace(), Duration::from_secs(3));
    }
}
