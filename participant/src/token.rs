//! Signed short-lived service tokens: who calls, whom, until when.
//!
//! A token is a JSON Web Token with HMAC-SHA256 (`HS256`), so that stock libraries of other
//! languages check it: header `{"alg":"HS256","kid":…,"typ":"JWT"}`, claims `iss`, `aud`, `iat`,
//! `exp`. Decides who is believed; reads no clock.
//!
//! ```
//! use ring_participant::token::{Key, Signer, Verifier};
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let old = || Key::new("2026-11", "0123456789abcdef0123456789abcdef");
//! let new = || Key::new("2026-12", "fedcba9876543210fedcba9876543210");
//! let now = 1_790_000_000; // Unix seconds
//!
//! // Rotation: first every verifier knows both keys, then the signers change.
//! let verifier = Verifier::new("payment").key(old()?).key(new()?);
//! for key in [old()?, new()?] {
//!     let token = Signer::new("orders", key).token("payment", now);
//!     assert_eq!(verifier.verify(&token, now)?.issuer, "orders");
//! }
//! # Ok(()) }
//! # example().unwrap();
//! ```

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::Sha256;

/// How long a token is good for: long enough for every queue on the way, short enough that one
/// that leaks is worth little.
pub const LIFETIME: Duration = Duration::from_secs(2 * 60 * 60);

/// How far clocks of caller and worker may be apart.
pub const TOLERANCE: Duration = Duration::from_secs(60);

/// Shortest secret, in bytes: as long as what it makes.
pub const MIN_SECRET_BYTES: usize = 32;

/// Longest token that is looked at.
const MAX_TOKEN_BYTES: usize = 4 * 1024;

/// A shared secret with a name.
#[derive(Clone)]
pub struct Key {
    id: String,
    secret: SecretString,
}

/// Makes tokens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Signer {
    issuer: String,
    key: Key,
}

/// Checks tokens.
#[derive(Clone, Debug)]
pub struct Verifier {
    audience: String,
    issuers: Vec<String>,
    keys: Vec<Key>,
}

/// Who called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The service that signed.
    pub issuer: String,
    /// When the token ends, in Unix seconds.
    pub expires_at: i64,
}

/// Why a token is not accepted. Says nothing that helps to make a better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is none.
    #[error("no service token: send authorization: Bearer <token>")]
    Missing,
    /// It can't be read, or its signature is wrong.
    #[error("the service token is not signed by a key that is known here")]
    Unsigned,
    /// It was good once.
    #[error("the service token has expired")]
    Expired,
    /// The caller's clock is ahead.
    #[error("the service token is not valid yet: compare the clocks")]
    Early,
    /// It is for someone else, or of someone who may not call here.
    #[error("the service token is for another service, or of one that may not call here")]
    Stranger,
    /// A secret is too short.
    #[error("the secret is too short: at least 32 bytes")]
    ShortSecret,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    kid: String,
    typ: String,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    iat: i64,
    exp: i64,
}

impl Key {
    /// A key. Its id is public and tells keys apart while they are rotated.
    ///
    /// # Errors
    /// [`TokenError::ShortSecret`].
    pub fn new(id: impl Into<String>, secret: impl Into<SecretString>) -> Result<Self, TokenError> {
        let (id, secret) = (id.into(), secret.into());
        if secret.expose_secret().len() < MIN_SECRET_BYTES {
            return Err(TokenError::ShortSecret);
        }
        Ok(Self { id, secret })
    }

    fn mac(&self, signed: &str) -> Result<Hmac<Sha256>, TokenError> {
        // A key of any length does for HMAC.
        let mac = Hmac::new_from_slice(self.secret.expose_secret().as_bytes());
        let mut mac: Hmac<Sha256> = mac.map_err(|_| TokenError::Unsigned)?;
        mac.update(signed.as_bytes());
        Ok(mac)
    }
}

impl Signer {
    /// Signs for a service.
    #[must_use]
    pub fn new(issuer: impl Into<String>, key: Key) -> Self {
        Self {
            issuer: issuer.into(),
            key,
        }
    }

    /// A token for calls of `audience`, good for [`LIFETIME`] from `now` (Unix seconds).
    #[must_use]
    pub fn token(&self, audience: &str, now: i64) -> String {
        let header = Header {
            alg: "HS256".to_owned(),
            kid: self.key.id.clone(),
            typ: "JWT".to_owned(),
        };
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: audience.to_owned(),
            iat: now,
            exp: now.saturating_add(seconds(LIFETIME)),
        };
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        // Not to be had for a key that was made: any length does.
        let mac = self.key.mac(&signed);
        let signature = mac.map(|mac| URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
        format!("{signed}.{}", signature.unwrap_or_default())
    }
}

impl Verifier {
    /// Accepts tokens for this audience, the worker's own name, once it has a key.
    #[must_use]
    pub fn new(audience: impl Into<String>) -> Self {
        Self {
            audience: audience.into(),
            issuers: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Accepts this key, too.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.keys.push(key);
        self
    }

    /// Accepts this issuer, and no longer everyone who has a key.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(issuer.into());
        self
    }

    /// Checks a token at `now` (Unix seconds).
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn verify(&self, token: &str, now: i64) -> Result<Caller, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Unsigned);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Unsigned)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Unsigned)?;
        let header: Header = decode(header)?;
        let known = self.keys.iter().find(|key| key.id == header.kid);
        let key = known.filter(|_| header.alg == "HS256");
        let signature = URL_SAFE_NO_PAD.decode(signature);
        let signature = signature.map_err(|_| TokenError::Unsigned)?;
        // Compares in constant time.
        let checked = key.ok_or(TokenError::Unsigned)?.mac(signed)?;
        checked
            .verify_slice(&signature)
            .map_err(|_| TokenError::Unsigned)?;
        self.check(decode(claims)?, now)
    }

    /// The same for a header `authorization`.
    pub(crate) fn verify_header(
        &self,
        header: Option<&str>,
        now: i64,
    ) -> Result<Caller, TokenError> {
        let (scheme, token) = header
            .and_then(|header| header.split_once(' '))
            .ok_or(TokenError::Missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(TokenError::Missing);
        }
        self.verify(token.trim(), now)
    }

    fn check(&self, claims: Claims, now: i64) -> Result<Caller, TokenError> {
        let tolerance = seconds(TOLERANCE);
        let may_call = self.issuers.is_empty() || self.issuers.contains(&claims.iss);
        if claims.aud != self.audience || !may_call {
            return Err(TokenError::Stranger);
        }
        if now > claims.exp.saturating_add(tolerance) {
            return Err(TokenError::Expired);
        }
        if now < claims.iat.saturating_sub(tolerance) {
            return Err(TokenError::Early);
        }
        // Nobody may sign for longer than anybody else.
        if claims.exp.saturating_sub(claims.iat) > seconds(LIFETIME) {
            return Err(TokenError::Unsigned);
        }
        Ok(Caller {
            issuer: claims.iss,
            expires_at: claims.exp,
        })
    }
}

/// Unix seconds of this process' clock.
pub(crate) fn unix_now() -> i64 {
    ring_shell::clock::now().wall.0.div_euclid(1000)
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

fn encode(part: &impl Serialize) -> String {
    // Texts and numbers: writing them can't fail.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(part).unwrap_or_default())
}

fn decode<T: DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    let bytes = URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| TokenError::Unsigned)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Unsigned)
}

impl fmt::Debug for Key {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;
    const HOURS: i64 = 60 * 60;

    fn key(id: &str, letter: &str) -> Key {
        Key::new(id, letter.repeat(32)).unwrap()
    }

    fn verifier() -> Verifier {
        Verifier::new("payment").key(key("a", "a"))
    }

    fn token(by: Key, audience: &str, at: i64) -> String {
        Signer::new("orders", by).token(audience, at)
    }

    #[test]
    fn a_token_is_good_for_two_hours_and_a_minute_of_clocks() {
        let made = token(key("a", "a"), "payment", NOW);
        let at = |now| verifier().verify(&made, now).map(|caller| caller.issuer);
        assert_eq!(at(NOW), Ok("orders".to_owned()));
        assert!(at(NOW + 2 * HOURS + 60).is_ok());
        assert_eq!(at(NOW + 2 * HOURS + 61), Err(TokenError::Expired));
        assert!(at(NOW - 60).is_ok());
        assert_eq!(at(NOW - 61), Err(TokenError::Early));
    }

    #[test]
    fn another_secret_audience_issuer_or_key_is_refused() {
        let verify = |token: String| verifier().verify(&token, NOW).unwrap_err();
        assert_eq!(
            verify(token(key("a", "b"), "payment", NOW)),
            TokenError::Unsigned
        );
        assert_eq!(
            verify(token(key("b", "a"), "payment", NOW)),
            TokenError::Unsigned
        );
        assert_eq!(
            verify(token(key("a", "a"), "inventory", NOW)),
            TokenError::Stranger
        );
        let picky = verifier().issuer("billing");
        let made = token(key("a", "a"), "payment", NOW);
        assert_eq!(picky.verify(&made, NOW), Err(TokenError::Stranger));
        assert!(picky.issuer("orders").verify(&made, NOW).is_ok());
    }

    #[test]
    fn a_token_that_was_changed_anywhere_is_refused() {
        let made = token(key("a", "a"), "payment", NOW);
        for at in 0..made.len() {
            let mut bytes = made.clone().into_bytes();
            // The lowest bits of the last character of a part carry nothing: change a high one.
            bytes[at] = if bytes[at] == b'A' { b'w' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(verifier().verify(&changed, NOW).is_err(), "{at}: {changed}");
        }
        for broken in ["", ".", "..", "a.b.c", "Zm9v", &made[..made.len() - 2]] {
            assert!(verifier().verify(broken, NOW).is_err(), "{broken}");
        }
    }

    #[test]
    fn no_algorithm_but_ours_is_accepted() {
        let claims = made_part(r#"{"iss":"orders","aud":"payment","iat":0,"exp":1790000001}"#);
        for alg in ["none", "HS512"] {
            let header = format!(r#"{{"alg":"{alg}","kid":"a","typ":"JWT"}}"#);
            let token = format!("{}.{claims}.", made_part(&header));
            assert_eq!(verifier().verify(&token, NOW), Err(TokenError::Unsigned));
        }
    }

    fn made_part(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    #[test]
    fn a_header_is_read_whatever_its_case() {
        let made = token(key("a", "a"), "payment", NOW);
        let check = |header: Option<&str>| verifier().verify_header(header, NOW);
        assert!(check(Some(&format!("bearer {made}"))).is_ok());
        assert_eq!(check(None), Err(TokenError::Missing));
        assert_eq!(
            check(Some(&format!("Basic {made}"))),
            Err(TokenError::Missing)
        );
    }

    #[test]
    fn secrets_are_long_and_never_printed() {
        assert!(Key::new("a", "short").is_err());
        let printed = format!("{:?} {:?}", verifier(), Signer::new("x", key("a", "q")));
        assert!(
            !printed.contains("aaaa") && !printed.contains("qqqq"),
            "{printed}"
        );
    }
}
