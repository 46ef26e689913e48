//! How one value is read and shown.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ring_core::id::{Cluster, NodeId, Region, Service};
use secrecy::SecretString;

/// A value of the configuration.
pub trait Setting: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong and what to write instead, as the rest of a sentence that begins with the key.
    fn read(text: &str) -> Result<Self, String>;

    /// As it would be written; `None` for a secret.
    fn show(&self) -> Option<String>;
}

impl Setting for String {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("is empty: write a value or remove the key".to_owned()),
            text => Ok(text.to_owned()),
        }
    }
    fn show(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Setting for SecretString {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("is empty: write a value or remove the key".to_owned()),
            text => Ok(text.into()),
        }
    }
    fn show(&self) -> Option<String> {
        None
    }
}

impl Setting for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        String::read(text).map(Self::from)
    }
    fn show(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Setting for Duration {
    fn read(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text.trim()).map_err(|error| {
            format!("is {text:?}, which is no duration ({error}): write \"60s\" or \"500ms\"")
        })
    }
    fn show(&self) -> Option<String> {
        Some(humantime::format_duration(*self).to_string())
    }
}

impl Setting for bool {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("is {other:?}: write true or false")),
        }
    }
    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn read(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| {
                    format!("is {text:?}: write a whole number from {} to {}", Self::MIN, Self::MAX)
                })
            }
            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}
number!(u16, u32, u64);

impl Setting for usize {
    fn read(text: &str) -> Result<Self, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("is {text:?}: write a whole number, 0 or more"))
    }
    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("is {text:?}: write address and port like \"0.0.0.0:8080\""))
    }
    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! name {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn read(text: &str) -> Result<Self, String> {
                Self::new(text.trim()).map_err(|error| {
                    format!("is {:?}: {}", error.given, error.rule)
                })
            }
            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}
name!(Region, Cluster, Service, NodeId);
