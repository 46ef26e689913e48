//! File and environment become typed values, once, and every mistake is reported at once.
//!
//! Decides how a key is spelled (`nats.url` in the file, `RINGSAGA__NATS__URL` in the
//! environment), which source wins (defaults < file < environment < flags) and what an unknown key
//! is: a mistake. Which keys there are, the caller decides by asking for them; [`Common`] asks for
//! those that all roles share. The only reader of the environment.

mod common;
mod setting;
mod source;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use thiserror::Error;

use self::source::Given;
pub use self::{
    common::{Common, Log, Nats},
    setting::Setting,
};

/// The exit value for a configuration that can't be used (BSD's `EX_USAGE`).
pub const EXIT_CONFIG: u8 = 64;

/// What a secret looks like in print.
const HIDDEN: &str = "(hidden)";

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment; see [`environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// Key and value from the command line: `("nats.url", "nats://...")`.
    pub flags: Vec<(String, String)>,
}

/// The process's environment, for [`Sources`].
#[must_use]
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// A configuration being read. Ask for every key, then [`Settings::finish`].
#[derive(Debug)]
pub struct Settings {
    given: BTreeMap<String, Given>,
    effective: Vec<Effective>,
    mistakes: Vec<Mistake>,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The key.
    pub key: String,
    /// Where it was set; `None` when it was not.
    pub source: Option<String>,
    /// What is wrong and what to write instead.
    pub says: String,
}

/// One value as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The key.
    pub key: String,
    /// The value, or a placeholder for a secret.
    pub value: String,
    /// Where it was set: `default`, a file's name, a variable's name.
    pub source: String,
}

/// All mistakes of a configuration. Exit with [`EXIT_CONFIG`].
#[derive(Debug, Error)]
pub struct ConfigError {
    /// All of them.
    pub mistakes: Vec<Mistake>,
}

impl Settings {
    /// Reads the sources. A file that can't be read is a mistake like any other.
    #[must_use]
    pub fn read(sources: Sources) -> Self {
        let (given, mistakes) = source::collect(sources);
        Self {
            given,
            effective: Vec::new(),
            mistakes,
        }
    }

    /// The value of a key, or its default.
    pub fn or<T: Setting>(&mut self, key: &str, default: T) -> T {
        match self.set(key) {
            Some(value) => value,
            None => {
                self.used(key, &default, "default");
                default
            }
        }
    }

    /// The value of a key that may be absent.
    pub fn maybe<T: Setting>(&mut self, key: &str) -> Option<T> {
        self.set(key)
    }

    /// The value of a key that must be there. Without it the result is of use only until
    /// [`Settings::finish`] reports it.
    pub fn needed<T: Setting>(&mut self, key: &str, example: &str) -> Option<T> {
        let value = self.set(key);
        if value.is_none() && !self.mistakes.iter().any(|m| m.key == key) {
            self.mistake(
                key,
                &format!("is missing: set it, for example to {example:?}"),
            );
        }
        value
    }

    /// Adds a mistake that only a comparison of values shows.
    pub fn mistake(&mut self, key: &str, says: &str) {
        let source = self
            .effective
            .iter()
            .find(|e| e.key == key && e.source != "default")
            .map(|e| e.source.clone());
        self.mistakes.push(Mistake {
            key: key.to_owned(),
            source,
            says: says.to_owned(),
        });
    }

    /// Ends reading: `value` with all values as used, secrets hidden.
    ///
    /// # Errors
    /// [`ConfigError`] with every mistake, unknown keys included.
    pub fn finish<T>(mut self, value: T) -> Result<(T, Vec<Effective>), ConfigError> {
        for (key, given) in std::mem::take(&mut self.given) {
            self.mistakes.push(Mistake {
                key,
                source: Some(given.source),
                says: "is not known: remove it or correct its name".to_owned(),
            });
        }
        if self.mistakes.is_empty() {
            Ok((value, self.effective))
        } else {
            Err(ConfigError {
                mistakes: self.mistakes,
            })
        }
    }

    fn set<T: Setting>(&mut self, key: &str) -> Option<T> {
        let Given { text, source } = self.given.remove(key)?;
        match T::read(&text) {
            Ok(value) => {
                self.used(key, &value, &source);
                Some(value)
            }
            Err(says) => {
                self.mistakes.push(Mistake {
                    key: key.to_owned(),
                    source: Some(source),
                    says,
                });
                None
            }
        }
    }

    fn used<T: Setting>(&mut self, key: &str, value: &T, source: &str) {
        self.effective.push(Effective {
            key: key.to_owned(),
            value: value.show().unwrap_or_else(|| HIDDEN.to_owned()),
            source: source.to_owned(),
        });
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} ({source}) {}", self.key, self.says),
            None => write!(f, "{} {}", self.key, self.says),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.len() {
            1 => f.write_str("one mistake in the configuration:")?,
            n => write!(f, "{n} mistakes in the configuration:")?,
        }
        for mistake in &self.mistakes {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl Sources {
    /// A file (if any) and the process's environment.
    #[must_use]
    pub fn usual(file: Option<&Path>) -> Self {
        Self {
            file: file.map(Path::to_owned),
            environment: environment(),
            flags: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
