//! Identifiers of profiles.

use api::profile::{ProfileEffect, ProfileSource};
use sha2::{Digest, Sha256};

use super::ProfileFile;

/// Domain separation for the content address. The same bytes have different hashes for other
/// purposes.
const DOMAIN: &[u8] = b"planscope profile\0";

/// The content address of a profile: of where it comes from, what it puts into a scenario and its files.
pub(crate) fn profile_address(
    source: &ProfileSource,
    effect: &ProfileEffect,
    base: Option<&str>,
    files: &[ProfileFile],
) -> String {
    let mut digest = Sha256::new().chain_update(DOMAIN);
    let mut part = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    part(&serde_json::to_vec(source).expect("a source has only text keys"));
    part(&serde_json::to_vec(effect).expect("an effect has only text keys"));
    part(base.unwrap_or_default().as_bytes());
    for file in files {
        part(file.name.as_bytes());
        part(&file.ranks.unwrap_or(0).to_le_bytes());
        part(&file.content);
    }
    data_encoding::BASE32_NOPAD.encode(&digest.finalize()).to_ascii_lowercase()
}
