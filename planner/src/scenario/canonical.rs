//! The canonical form of a scenario and the identifier made of it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::Scenario;

/// Separates scenario identifiers from hashes of the same bytes made for other purposes.
const DOMAIN: &[u8] = b"planscope scenario\0";

/// Identifier of a scenario: SHA-256 over its canonical form, in lower-case base32 without padding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScenarioId(String);

impl ScenarioId {
    /// Characters of an identifier: 256 bits, five to a character.
    pub const LENGTH: usize = 52;

    /// The identifier as text.
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
    /// The canonical form: JSON without the title, keys sorted, no white space. Two scenarios that ask the same
    /// question have the same canonical form, whatever order or defaults they were written with.
    pub fn canonical(&self) -> String {
        let untitled = Self { title: None, ..self.clone() };
        // A JSON value keeps its keys in a sorted map, which sorts them at every depth.
        serde_json::to_value(&untitled).expect("a scenario has only text keys").to_string()
    }

    /// The identifier, by content.
    pub fn id(&self) -> ScenarioId {
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(self.canonical()).finalize();
        ScenarioId(data_encoding::BASE32_NOPAD.encode(&digest).to_ascii_lowercase())
    }
}
