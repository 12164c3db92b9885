//! The content address of a dataset.

use planner::workload::Dataset;
use sha2::{Digest, Sha256};

/// Separates dataset addresses from hashes of the same bytes made for other purposes.
const DOMAIN: &[u8] = b"planscope dataset\0";

/// The canonical form of a dataset: JSON without white space, fields in the order of their declaration.
pub(crate) fn canonical(dataset: &Dataset) -> Vec<u8> {
    serde_json::to_vec(dataset).expect("a dataset holds only numbers in lists")
}

/// Characters of an address.
const LENGTH: usize = 52;

/// Whether a text may be the address of a dataset.
pub(crate) fn is_one(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}

/// SHA-256 over the canonical form, in lower-case base32 without padding: 52 characters.
pub(crate) fn of(canonical: &[u8]) -> String {
    let digest = Sha256::new().chain_update(DOMAIN).chain_update(canonical).finalize();
    data_encoding::BASE32_NOPAD.encode(&digest).to_ascii_lowercase()
}
