//! The hash that puts a transaction on the ring (R3): Murmur3 x64/128 with seed 0, the first 64
//! bits, of the id's 16 bytes. Hashing those (not its text) makes it equal to Cassandra's
//! `token(id)`, whose variant differs from plain Murmur3 only where the length is no multiple of
//! 16. The one function outside the core, because the crate needs std.

use std::io::Cursor;

use ring_core::{id::TransactionId, token::Token};

/// Where a transaction stands on the ring.
#[must_use]
pub fn token_of(id: TransactionId) -> Token {
    #[expect(clippy::cast_possible_truncation, reason = "the low 64 bits are meant")]
    let low = hash(id.0.as_bytes()) as u64;
    Token(low.cast_signed())
}

/// The same hash in full, for digests: it notices mistakes, not malice, and is the same in every
/// build.
#[must_use]
pub fn hash(bytes: &[u8]) -> u128 {
    // Reading from memory does not fail; the crate's signature is that of any reader.
    murmur3::murmur3_x64_128(&mut Cursor::new(bytes), 0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &[u8] = include_bytes!("../../tests/vectors/tokens.csv");

    #[test]
    fn tokens_are_the_vectors() {
        let mut seen = 0;
        for row in csv::Reader::from_reader(VECTORS).deserialize() {
            let (id, token): (TransactionId, i64) = row.unwrap();
            assert_eq!(token_of(id), Token(token), "{id}");
            seen += 1;
        }
        assert!(seen > 0);
    }
}
