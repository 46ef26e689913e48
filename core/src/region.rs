//! The registry of regions' codes: which 12 bits in a transaction's id mean which region (R19).
//!
//! Every process and tool of an installation is configured with the same list. It decides that a
//! code has one meaning, in both directions; it refuses to know who may be where.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
};
use core::str::FromStr;

use serde::Deserialize;

use crate::id::{NameError, Region, RegionCode, TransactionId};

/// Codes of regions: each region has one, and no two share one. Written as a table
/// (`eu-west = 1`) or as text (`eu-west=1,us-central=2`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct RegionCodes(BTreeMap<Region, RegionCode>);

/// A registry that says two things, or none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionCodesError {
    /// No region's name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Out of range; 0 means "no region" in an id.
    #[error("the code of region {region} must be 1 to 4095, it is {code}")]
    Range {
        /// Whose.
        region: Region,
        /// The number.
        code: u32,
    },
    /// An id would name two regions.
    #[error(
        "regions {one} and {other} share the code {code}: give each its own, and never use a code again"
    )]
    Shared {
        /// The first.
        one: Region,
        /// The second.
        other: Region,
        /// Their code.
        code: u16,
    },
    /// A region that stands there twice.
    #[error("region {0} stands there twice")]
    Twice(Region),
    /// Text that is no list.
    #[error("{0:?} is not `region=code`")]
    Text(String),
}

/// As a configuration writes it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Table(BTreeMap<String, u32>),
}

impl RegionCodes {
    /// A registry of these.
    ///
    /// # Errors
    /// [`RegionCodesError`] at the first entry that contradicts another or says nothing.
    pub fn new<'a>(
        entries: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<Self, RegionCodesError> {
        let mut codes: BTreeMap<Region, RegionCode> = BTreeMap::new();
        for (name, number) in entries {
            let region = Region::new(name)?;
            let code = u16::try_from(number).ok().filter(|n| *n > 0);
            let Some(code) = code.and_then(RegionCode::new) else {
                return Err(RegionCodesError::Range {
                    region,
                    code: number,
                });
            };
            if let Some((one, _)) = codes.iter().find(|(r, c)| **c == code && **r != region) {
                return Err(RegionCodesError::Shared {
                    one: one.clone(),
                    other: region,
                    code: code.value(),
                });
            }
            if codes.insert(region.clone(), code).is_some() {
                return Err(RegionCodesError::Twice(region));
            }
        }
        Ok(Self(codes))
    }

    /// Whether nothing is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A region's code.
    #[must_use]
    pub fn code(&self, region: &Region) -> Option<RegionCode> {
        self.0.get(region).copied()
    }

    /// The region of a code.
    #[must_use]
    pub fn region(&self, code: RegionCode) -> Option<&Region> {
        let found = self.0.iter().find(|(_, known)| **known == code);
        found.map(|(region, _)| region)
    }

    /// The region where a transaction was started; none when its id has no code or an unknown one.
    #[must_use]
    pub fn resolve(&self, id: TransactionId) -> Option<&Region> {
        self.region(id.region_code()?)
    }
}

impl FromStr for RegionCodes {
    type Err = RegionCodesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = text.split(',').map(str::trim).filter(|e| !e.is_empty());
        let entry = |entry: &str| {
            let (name, code) = entry.split_once('=')?;
            Some((name.trim().to_string(), code.trim().parse().ok()?))
        };
        let read = entries.map(|e| entry(e).ok_or_else(|| RegionCodesError::Text(e.to_string())));
        let read: Result<alloc::vec::Vec<(String, u32)>, _> = read.collect();
        Self::new(read?.iter().map(|(name, code)| (name.as_str(), *code)))
    }
}

impl TryFrom<Written> for RegionCodes {
    type Error = RegionCodesError;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Table(table) => {
                Self::new(table.iter().map(|(name, code)| (name.as_str(), *code)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Wall;

    #[test]
    fn a_code_is_resolved_back_to_its_region() {
        let codes: RegionCodes = "eu-west=1, us-central=4095".parse().unwrap();
        let us = Region::new("us-central").unwrap();
        let id = TransactionId::compose(Wall(1), codes.code(&us).unwrap(), 7);
        assert_eq!(codes.resolve(id), Some(&us));
        let none = TransactionId::compose(Wall(1), RegionCode::default(), 7);
        assert_eq!(codes.resolve(none), None);
        let table: RegionCodes =
            serde_json::from_str(r#"{"us-central": 4095, "eu-west": 1}"#).unwrap();
        assert_eq!(table, codes);
    }

    #[test]
    fn a_registry_that_contradicts_itself_is_refused() {
        for (text, said) in [
            ("eu=1,us=1", "regions eu and us share the code 1"),
            ("eu=0", "must be 1 to 4095, it is 0"),
            ("eu=4096", "must be 1 to 4095, it is 4096"),
            ("eu=1,eu=2", "region eu stands there twice"),
            ("eu", "\"eu\" is not `region=code`"),
            ("EU=1", "not valid"),
        ] {
            let error = text.parse::<RegionCodes>().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
