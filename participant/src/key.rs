//! A call's idempotency key, `transaction/direction/step`: what an effect happens once for.
//!
//! Knows no epoch and no attempt: with one of them in the key, every takeover would be a new call.

use std::{fmt, str::FromStr};

use uuid::Uuid;

/// Longest name of a step, in bytes; the same as in sagas.
const MAX_STEP_BYTES: usize = 128;

/// Which way a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// An action.
    Forward,
    /// What undoes it.
    Compensating,
}

/// What a call's idempotency key says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The caller's transaction: with the step it pairs an action with what undoes it.
    pub transaction: Uuid,
    /// Action or compensation.
    pub direction: Direction,
    /// The caller's step.
    pub step: String,
}

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no idempotency key: write transaction/direction/step, a UUID first")]
pub struct KeyError(String);

impl Direction {
    /// As in keys and in the barrier's table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Compensating => "compensating",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let read = || {
            let mut parts = text.splitn(3, '/');
            let transaction = Uuid::try_parse(parts.next()?).ok()?;
            let direction = match parts.next()? {
                "forward" => Direction::Forward,
                "compensating" => Direction::Compensating,
                _ => return None,
            };
            let step = parts.next()?.to_owned();
            let sound = !step.is_empty()
                && step.len() <= MAX_STEP_BYTES
                && !step.contains(char::is_control);
            sound.then_some(Self {
                transaction,
                direction,
                step,
            })
        };
        read().ok_or_else(|| KeyError(crate::wire::excerpt(text.as_bytes())))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.transaction, self.direction, self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let text = "0190b3a0-7c3e-7000-8000-000000000001/compensating/charge";
        let key: Key = text.parse().unwrap();
        assert_eq!(key.direction, Direction::Compensating);
        assert_eq!(key.to_string(), text);
    }

    #[test]
    fn a_text_that_is_no_key_says_how_one_looks() {
        let id = "0190b3a0-7c3e-7000-8000-000000000001";
        let long = format!("{id}/forward/{}", "x".repeat(129));
        let back = format!("{id}/back/x");
        let nameless = format!("{id}/forward/");
        let broken = format!("{id}/forward/a\nb");
        for wrong in ["", "a/forward/b", &long, &back, &nameless, &broken] {
            let error = wrong.parse::<Key>().unwrap_err().to_string();
            assert!(error.contains("transaction/direction/step"), "{error}");
        }
    }
}
