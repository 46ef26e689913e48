//! How single values look on the wire.

use alloc::string::{String, ToString};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{
    time::Wall,
    token::{Range, Token},
};

/// A moment as RFC 3339 text in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Wall);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Wall::from_rfc3339(&text)
            .map(Self)
            .ok_or_else(|| D::Error::custom("not RFC 3339"))
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse()
            .map(Self)
            .map_err(|_| D::Error::custom("a token is a decimal i64 string"))
    }
}

#[derive(Serialize, Deserialize)]
struct Ends {
    start: Token,
    end: Token,
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Ends {
            start: self.start(),
            end: self.end(),
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let ends = Ends::deserialize(d)?;
        Self::new(ends.start.0, ends.end.0).map_err(D::Error::custom)
    }
}
