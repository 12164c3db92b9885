//! The content address of a dataset.

use planner::workload::Dataset;
use sha2::{Digest, Sha256};

/// Domain separator, so dataset addresses differ from hashes of the same bytes for other purposes.
const DOMAIN: &[u8] = b"planscope dataset\0";

/// Serializes a dataset in canonical form: JSON without white space, fields in declaration order.
pub(crate) fn canonical(dataset: &Dataset) -> Vec<u8> {
    serde_json::to_vec(dataset).expect("a dataset holds only numbers in lists")
}

/// Address length in characters.
const LENGTH: usize = 52;

/// True if the text has the form of a dataset address.
pub(crate) fn is_valid(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}

/// Returns the SHA-256 of the canonical form in lower-case base32 without padding: 52 characters.
pub(crate) fn from_content(canonical: &[u8]) -> String {
    let digest = Sha256::new().chain_update(DOMAIN).chain_update(canonical).finalize();
    data_encoding::BASE32_NOPAD.encode(&digest).to_ascii_lowercase()
}
