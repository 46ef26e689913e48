//! The hook for programs: one JSON object an alert, signed so that the receiver knows who sent it
//! and when.

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

/// The header with the signature: `sha256=` and [`signature`] in hex.
pub const SIGNATURE: &str = "X-Signature";

/// The header with the time of the attempt, Unix seconds. A receiver refuses old ones, so that a
/// request that was overheard is worth nothing later.
pub const TIMESTAMP: &str = "X-Timestamp";

/// HMAC-SHA256 of `timestamp + "." + body` under the shared secret, in lower-case hex.
#[must_use]
pub fn signature(secret: &SecretString, timestamp: &str, body: &[u8]) -> String {
    let key = secret.expose_secret().as_bytes();
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return String::new();
    };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_what_other_tools_compute() {
        // printf '1790000000.{"id":1}' | openssl dgst -sha256 -hmac key
        let signed = signature(&"key".into(), "1790000000", br#"{"id":1}"#);
        assert_eq!(signed.len(), 64);
        assert_eq!(
            signed,
            "b3841d86e5ee97df96c5a1b904575f094968e8dc3a46349d327e58ae1226c7d4"
        );
    }
}
