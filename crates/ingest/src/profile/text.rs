//! Decodes a file as text, or detects a binary file type.

use super::{MAX_BYTES, ProfileError};

/// Magic bytes of files that users upload by mistake.
const MAGIC: [(&[u8], &str); 8] = [
    (b"\x1f\x8b", "it looks like a gzip archive"),
    (b"PK\x03\x04", "it looks like a zip archive or an office document"),
    (b"\x28\xb5\x2f\xfd", "it looks like a zstd archive"),
    (b"PAR1", "it looks like a Parquet file"),
    (b"\x89PNG", "it looks like a PNG image"),
    (b"%PDF", "it looks like a PDF document"),
    (b"\xff\xfe", "it looks like UTF-16"),
    (b"\xfe\xff", "it looks like UTF-16"),
];

/// Returns the text without byte order mark.
pub(super) fn text(bytes: &[u8]) -> Result<&str, ProfileError> {
    if bytes.len() > MAX_BYTES {
        return Err(ProfileError::TooLarge { bytes: bytes.len() });
    }
    if let Some((_, detail)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(ProfileError::NotText { detail: (*detail).to_owned() });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ProfileError::NotText { detail: format!("byte {} is not", error.valid_up_to()) })?;
    if let Some(at) = text.find('\0') {
        return Err(ProfileError::NotText { detail: format!("byte {at} is zero") });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() { Err(ProfileError::Empty) } else { Ok(text) }
}
