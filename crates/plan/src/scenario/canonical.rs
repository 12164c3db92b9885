//! Canonical form and identifier of a scenario.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::Scenario;

/// Domain separation for the hash.
const DOMAIN: &[u8] = b"planscope scenario\0";

/// Scenario identifier: SHA-256 of the canonical form, in lower-case base32 without padding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScenarioId(String);

impl ScenarioId {
    /// Identifier length in characters: 256 bits, five bits per character.
    pub const LENGTH: usize = 52;

    /// Returns the identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScenarioId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ScenarioId {
    type Err = NotAnIdentifier;

    fn from_str(text: &str) -> Result<Self, NotAnIdentifier> {
        let valid = text.len() == Self::LENGTH && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
        if valid { Ok(Self(text.to_owned())) } else { Err(NotAnIdentifier) }
    }
}

/// The text is not a scenario identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a scenario identifier: 52 characters of a-z and 2-7 are needed")]
pub struct NotAnIdentifier;

impl Scenario {
    /// Returns the canonical form: JSON without title, sorted keys, no white space. Equivalent
    /// scenarios have the same canonical form, independent of key order, order of free settings and explicit
    /// defaults.
    pub fn canonical(&self) -> String {
        let mut untitled = Self { title: None, ..self.clone() };
        untitled.free.sort_unstable();
        untitled.free.dedup();
        // `serde_json::Value` stores object keys in a sorted map.
        serde_json::to_value(&untitled).expect("a scenario has only text keys").to_string()
    }

    /// Returns the content-based identifier.
    pub fn id(&self) -> ScenarioId {
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(self.canonical()).finalize();
        ScenarioId(data_encoding::BASE32_NOPAD.encode(&digest).to_ascii_lowercase())
    }
}
