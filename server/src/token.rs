//! Tokens that authorize log uploads.
//!
//! A token contains 160 random bits in base32. The database stores only its SHA-256 hash. If a
//! request has an Idempotency-Key, the token is derived from the key and a secret that exists in
//! memory only. A repeated request therefore returns the same token. After a restart it returns a
//! new token, and the old token remains valid. Renewing a run's token changes all tokens derived
//! later, so that no revoked token is valid a second time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Token length in bytes.
const BYTES: usize = 20;
/// Length of a run identifier in bytes: 16 characters in base32.
const ID_BYTES: usize = 10;

/// A token in base32.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Creates a random token.
    pub fn draw() -> Self {
        Self(base32(&random::<BYTES>()))
    }

    /// Returns the token text. It is displayed only once.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 hash that the database stores.
    pub fn hash(&self) -> [u8; 32] {
        Self::digest(&self.0)
    }

    /// Returns the hash of a received token.
    pub fn digest(token: &str) -> [u8; 32] {
        // Base32 is case-insensitive.
        Sha256::digest(token.to_ascii_lowercase()).into()
    }
}

/// Secret that derives tokens from Idempotency-Keys.
pub struct Secret {
    key: [u8; 32],
    /// Number of renewals per run. Only renewed runs have an entry.
    renewals: Mutex<HashMap<String, u64>>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Creates a random secret.
    pub fn draw() -> Self {
        Self { key: random(), renewals: Mutex::default() }
    }

    /// Returns the token for the first request with this key.
    pub fn token(&self, key: &str) -> Token {
        self.derive(key, 0)
    }

    /// Returns the token for a repeated request with this key, which opened the given run.
    pub fn token_again(&self, key: &str, run: &str) -> Token {
        let renewals = self.renewals().get(run).copied().unwrap_or_default();
        self.derive(key, renewals)
    }

    /// Invalidates derivation of the run's earlier tokens: later calls derive different tokens.
    pub fn renew(&self, run: &str) {
        *self.renewals().entry(run.to_owned()).or_default() += 1;
    }

    fn derive(&self, key: &str, renewals: u64) -> Token {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is a key");
        mac.update(b"planscope log token\0");
        // Fixed length, so no byte can move from the counter to the key.
        mac.update(&renewals.to_le_bytes());
        mac.update(key.as_bytes());
        Token(base32(&mac.finalize().into_bytes()[..BYTES]))
    }

    fn renewals(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        // A panic cannot leave the map inconsistent: each update is a single step.
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a random run identifier.
pub fn run_id() -> String {
    base32(&random::<ID_BYTES>())
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

fn base32(bytes: &[u8]) -> String {
    data_encoding::BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_their_hash_is_found_again() {
        let (token, other) = (Token::draw(), Token::draw());
        // 160 bits are 32 characters of 5 bits.
        assert_eq!((token.as_str().len(), run_id().len()), (32, 16));
        assert_ne!(token, other);
        assert_eq!(token.hash(), Token::digest(&token.as_str().to_ascii_uppercase()));
        assert!(!format!("{token:?}").contains(token.as_str()));
    }

    #[test]
    fn same_key_gives_the_same_token_per_process() {
        let secret = Secret::draw();
        assert_eq!(secret.token("a"), secret.token("a"));
        assert_ne!(secret.token("a"), secret.token("b"));
        assert_ne!(secret.token("a"), Secret::draw().token("a"));
    }

    #[test]
    fn renewed_run_has_new_tokens() {
        let secret = Secret::draw();
        assert_eq!(secret.token("a"), secret.token_again("a", "run"));
        secret.renew("run");
        let second = secret.token_again("a", "run");
        assert_ne!(secret.token("a"), second);
        assert_eq!(secret.token("a"), secret.token_again("a", "another run"));
        secret.renew("run");
        assert_ne!(second, secret.token_again("a", "run"));
    }
}
