//! Names and identities, parsed once and trusted afterwards.
//!
//! Rules: `design.md` section 3. A name becomes a token of a NATS subject, so a dot or a wildcard
//! in it would reach other people's subjects: it is refused here, when configuration or a message
//! is read.

use alloc::{string::String, sync::Arc};
use core::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} {given:?} is not valid: {rule}")]
pub struct NameError {
    /// Which kind of name.
    pub what: &'static str,
    /// What was given, cut to 80 characters.
    pub given: String,
    /// The rule, as a sentence that says what to write instead.
    pub rule: &'static str,
}

const SCOPE_RULE: &str = "use 1 to 63 of a-z, 0-9, '-' and '_', beginning with a letter or digit";
const ID_RULE: &str = "use 1 to 64 of A-Z, a-z, 0-9, '-' and '_'";
const SAGA_RULE: &str = "use 1 to 128 of A-Z, a-z, 0-9, '-', '_', '.' and '/'";

fn scope_name(s: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = s.bytes();
    s.len() <= 63
        && bytes.next().is_some_and(lower)
        && bytes.all(|b| lower(b) || b == b'-' || b == b'_')
}

fn id_name(s: &str) -> bool {
    (1..=64).contains(&s.len())
        && s.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn saga_name(s: &str) -> bool {
    (1..=128).contains(&s.len())
        && s.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident, $rule:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses the name.
            ///
            /// # Errors
            /// [`NameError`] with the rule when the text breaks it.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let text = text.as_ref();
                if $check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(NameError {
                        what: $what,
                        given: text.chars().take(80).collect(),
                        rule: $rule,
                    })
                }
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl core::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                Self::from(name.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

name!(
    /// A region: the outer border of everything that is shared.
    Region, "region", scope_name, SCOPE_RULE
);
name!(
    /// A virtual cluster inside a region.
    Cluster, "cluster", scope_name, SCOPE_RULE
);
name!(
    /// The users' service whose transactions share one ring (the documents' domain).
    Service, "service", id_name, ID_RULE
);
name!(
    /// The id of a master, a slave or an orchestrator instance, unique within region and cluster
    /// among its own kind.
    NodeId, "id", id_name, ID_RULE
);
name!(
    /// The name of a saga (the definition) as registered in code.
    SagaName, "saga name", saga_name, SAGA_RULE
);
name!(
    /// The name of a step, unique within its saga.
    StepName, "step name", saga_name, SAGA_RULE
);
name!(
    /// The name of a target: what steps call, and what is up or down as a whole.
    TargetName, "target", saga_name, SAGA_RULE
);

/// Region and cluster together: nothing crosses this border (R13).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The region.
    pub region: Region,
    /// The cluster.
    pub cluster: Cluster,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.region, self.cluster)
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl core::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_id!(
    /// One start of a process, UUIDv7: later boots compare greater.
    BootId
);
uuid_id!(
    /// Chance made for one purpose: a claim of a row, a probe of a subscription.
    Nonce
);
uuid_id!(
    /// One run of a saga. UUIDv8 in UUIDv7's layout; its 12 `rand_a` bits carry the region's code
    /// (0 = none), see [`TransactionId::compose`].
    TransactionId
);

/// The code of a region inside a transaction id: 0 … 4095, 0 means none (R19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionCode(u16);

impl RegionCode {
    /// A code from configuration.
    #[must_use]
    pub fn new(code: u16) -> Option<Self> {
        (code < 4096).then_some(Self(code))
    }

    /// The number.
    #[must_use]
    pub fn value(self) -> u16 {
        self.0
    }
}

impl TransactionId {
    /// Lays out an id from the creation time (milliseconds since the epoch, 48 bits), the region's
    /// code and 62 bits of chance: RFC 9562 UUIDv8 with UUIDv7's field order, so ids sort by time.
    #[must_use]
    pub fn compose(created: crate::time::Wall, region: RegionCode, chance: u64) -> Self {
        let millis = u64::try_from(created.0).unwrap_or(0) & 0xffff_ffff_ffff;
        let high = (millis << 16) | 0x8000 | u64::from(region.0);
        let low = (chance & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        Self(Uuid::from_u64_pair(high, low))
    }

    /// The region's code, when the id has this layout (version 8).
    #[must_use]
    pub fn region_code(self) -> Option<RegionCode> {
        let (high, _) = self.0.as_u64_pair();
        let code = (high & 0x0fff) as u16;
        (self.0.get_version_num() == 8).then_some(RegionCode(code))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn names_that_would_reach_other_subjects_are_refused() {
        for bad in ["", "*", ">", "a.b", "a b", "é", &"x".repeat(65)] {
            assert!(NodeId::new(bad).is_err(), "{bad:?}");
            assert!(Region::new(bad).is_err(), "{bad:?}");
        }
        assert!(Region::new("Upper").is_err());
        assert!(Region::new("-dash-first").is_err());
        assert!(NodeId::new("Order-Service_1").is_ok());
        let said = NodeId::new("a.b").unwrap_err().to_string();
        assert_eq!(
            said,
            "id \"a.b\" is not valid: use 1 to 64 of A-Z, a-z, 0-9, '-' and '_'"
        );
    }

    #[test]
    fn a_transaction_id_carries_its_region_and_sorts_by_time() {
        let code = RegionCode::new(0x2a7).unwrap();
        let a = TransactionId::compose(crate::time::Wall(1_000), code, u64::MAX);
        let b = TransactionId::compose(crate::time::Wall(1_001), code, 0);
        assert!(a < b);
        assert_eq!(a.region_code(), Some(code));
        assert_eq!(a.0.get_version_num(), 8);
        assert_eq!(a.0.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(RegionCode::new(4096), None);
    }
}
