//! Tokens that let a log be written.
//!
//! A token is 160 bits in base32. The database has its SHA-256 only. Where a request carries an Idempotency-Key, the token
//! is made from the key with a secret that lives as long as the server and is stored nowhere: asked again, the same token
//! is answered, and after a restart a further one, while the first stays good. A run whose token was renewed has others from then
//! on, so that none that ended is good again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Bytes of a token.
const BYTES: usize = 20;
/// Bytes of a run's identifier: 16 characters of base32.
const ID_BYTES: usize = 10;

/// A token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A new one.
    pub fn draw() -> Self {
        Self(base32(&random::<BYTES>()))
    }

    /// As it is shown, once.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the database keeps of it.
    pub fn hash(&self) -> [u8; 32] {
        Self::hash_of(&self.0)
    }

    /// The same of a token that someone sent.
    pub fn hash_of(token: &str) -> [u8; 32] {
        // Base32 has no letter that is told apart by its case.
        Sha256::digest(token.to_ascii_lowercase()).into()
    }
}

/// What tokens of repeated requests are made with.
pub struct Secret {
    key: [u8; 32],
    /// How often the token of a run was renewed; none where it never was.
    renewals: Mutex<HashMap<String, u64>>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A new one.
    pub fn draw() -> Self {
        Self { key: random(), renewals: Mutex::default() }
    }

    /// The token of the first request with this key.
    pub fn token(&self, key: &str) -> Token {
        self.made(key, 0)
    }

    /// The token of a further request with this key, which opened that run.
    pub fn token_again(&self, key: &str, run: &str) -> Token {
        let renewals = self.renewals().get(run).copied().unwrap_or_default();
        self.made(key, renewals)
    }

    /// Tokens of that run which were made before are not made again.
    pub fn renew(&self, run: &str) {
        *self.renewals().entry(run.to_owned()).or_default() += 1;
    }

    fn made(&self, key: &str, renewals: u64) -> Token {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is a key");
        mac.update(b"planscope log token\0");
        // Of one length, so that nothing moves from it to the key.
        mac.update(&renewals.to_le_bytes());
        mac.update(key.as_bytes());
        Token(base32(&mac.finalize().into_bytes()[..BYTES]))
    }

    fn renewals(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        // Changed in single steps, so it is whole even after a panic elsewhere.
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new identifier of a run.
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
        assert_eq!(token.hash(), Token::hash_of(&token.as_str().to_ascii_uppercase()));
        assert!(!format!("{token:?}").contains(token.as_str()));
    }

    #[test]
    fn the_same_key_gives_the_same_token_in_one_life_of_the_server() {
        let secret = Secret::draw();
        assert_eq!(secret.token("a"), secret.token("a"));
        assert_ne!(secret.token("a"), secret.token("b"));
        assert_ne!(secret.token("a"), Secret::draw().token("a"));
    }

    #[test]
    fn a_renewed_run_has_other_tokens_of_the_same_key() {
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
