//! Who asks. Decides whether a bearer token is known and what its holder may do; keeps hashes
//! only, and compares them in a time that tells nothing.

use std::{fmt, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{Method, header},
    middleware::Next,
    response::Response,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::said::Said;

/// Longest token that is hashed, in bytes.
const MAX_TOKEN_BYTES: usize = 4_096;

/// What a token's holder may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look.
    Viewer,
    /// Look and order.
    Operator,
}

/// The tokens that are accepted: a name, a role and the token's SHA-256 each. With none of them
/// nobody is let in.
#[derive(Clone, Default)]
pub struct BearerTokens(Vec<Named>);

#[derive(Clone)]
struct Named {
    name: String,
    role: Role,
    hash: [u8; 32],
}

/// A token that can't be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No hash.
    #[error(
        "the token {0:?} needs its SHA-256 as 64 hexadecimal digits: printf %s \"$TOKEN\" | sha256sum"
    )]
    Hash(String),
    /// The name is what the audit log says.
    #[error("a token's name must have 1 to 64 characters, and each its own: {0:?}")]
    Name(String),
}

/// Who asks, for the audit log.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) String);

impl BearerTokens {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts one more. `sha256` is the token's hash in hexadecimal digits; the name stands in
    /// the audit log as who did it.
    ///
    /// # Errors
    /// [`TokenError`] when the hash is none, or the name is taken or blank.
    pub fn with(mut self, name: &str, role: Role, sha256: &str) -> Result<Self, TokenError> {
        let taken = self.0.iter().any(|t| t.name == name);
        if taken || name.trim().is_empty() || name.chars().count() > 64 {
            return Err(TokenError::Name(name.to_owned()));
        }
        let hash = bytes(sha256.trim()).ok_or_else(|| TokenError::Hash(name.to_owned()))?;
        let name = name.to_owned();
        self.0.push(Named { name, role, hash });
        Ok(self)
    }

    /// Whose token that is. Every token is compared to its end.
    fn holder(&self, token: &[u8]) -> Option<&Named> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for one in &self.0 {
            let same: Choice = one.hash.ct_eq(&hash);
            if bool::from(same) {
                found = Some(one);
            }
        }
        found
    }
}

impl fmt::Debug for BearerTokens {
    /// Names and roles: not even hashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|t| (&t.name, t.role));
        f.debug_map().entries(names).finish()
    }
}

/// Lets in who has a token, and who may order when something is ordered.
pub(crate) async fn check(
    State(tokens): State<Arc<BearerTokens>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Said> {
    let said = request.headers().get(header::AUTHORIZATION);
    let token = said.and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        let fits = scheme.eq_ignore_ascii_case("bearer") && token.len() <= MAX_TOKEN_BYTES;
        fits.then_some(token.trim())
    });
    let holder = token.and_then(|token| tokens.holder(token.as_bytes()));
    let Some(holder) = holder else {
        return Err(Said::unauthorized());
    };
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    if !reads && holder.role < Role::Operator {
        return Err(Said::forbidden(&holder.name));
    }
    let caller = Caller(holder.name.clone());
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn bytes(hex: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|d| d.len() == 64)?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::try_from(pair[0] * 16 + pair[1]).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH_OF_TEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    #[test]
    fn a_token_is_known_by_its_hash_alone() {
        let tokens = BearerTokens::new();
        let tokens = tokens.with("eva", Role::Operator, HASH_OF_TEST).unwrap();
        assert_eq!(tokens.holder(b"test").map(|t| t.name.as_str()), Some("eva"));
        assert!(tokens.holder(b"test ").is_none());
        assert!(tokens.holder(HASH_OF_TEST.as_bytes()).is_none());
        assert!(!format!("{tokens:?}").contains("9f86"));
    }

    #[test]
    fn a_token_without_hash_or_with_a_taken_name_is_refused() {
        let tokens = BearerTokens::new();
        let hash = tokens.clone().with("eva", Role::Viewer, "secret");
        assert_eq!(hash.unwrap_err(), TokenError::Hash("eva".to_owned()));
        let once = tokens.with("eva", Role::Viewer, HASH_OF_TEST).unwrap();
        let twice = once.with("eva", Role::Viewer, HASH_OF_TEST);
        assert_eq!(twice.unwrap_err(), TokenError::Name("eva".to_owned()));
    }
}
