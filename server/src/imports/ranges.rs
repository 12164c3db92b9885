//! Byte ranges of a large file, in memory.

use std::io::{self, Read};

use axum::body::Bytes;

/// Maximum total size in MiB.
pub(crate) const MAX_PARTS: usize = 320;
/// Maximum column size in bytes that the web page uploads. Larger columns are sampled.
pub(crate) const COLUMN_BUDGET: u64 = 256 << 20;

/// Error for an invalid upload of byte ranges.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RangesError {
    /// The body is not a sequence of byte ranges.
    #[error("{0}")]
    Malformed(&'static str),
    /// The body is incomplete.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Parses byte ranges of a file of `length` bytes. The body has the format
/// [`api::dataset::RANGES_MEDIA_TYPE`]. Returns offsets and bytes.
pub(crate) fn receive(body: &mut impl Read, length: u64) -> Result<Vec<(u64, Bytes)>, RangesError> {
    let mut parts = Vec::new();
    let mut left = (MAX_PARTS as u64) << 20;
    let mut head = [0; 16];
    while read_head(body, &mut head)? {
        let [offset, bytes] = [&head[..8], &head[8..]].map(|field| field.try_into().map_or(0, u64::from_le_bytes));
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(RangesError::Malformed("a part ends behind the end of the file"));
        }
        left = left.checked_sub(bytes).ok_or(RangesError::Malformed("the parts are larger than 320 MiB"))?;
        let mut part = Vec::new();
        body.take(bytes).read_to_end(&mut part)?;
        if (part.len() as u64) < bytes {
            return Err(RangesError::Malformed("the last part is shorter than its header says"));
        }
        parts.push((offset, Bytes::from(part)));
    }
    Ok(parts)
}

/// Reads a header. Returns false at the end of the body.
fn read_head(body: &mut impl Read, head: &mut [u8; 16]) -> Result<bool, RangesError> {
    let read = body.read(&mut head[..])?;
    if read == 0 {
        return Ok(false);
    }
    body.read_exact(&mut head[read..]).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => RangesError::Malformed("the header of a part is cut off"),
        _ => error.into(),
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset: u64, said: u64, bytes: &[u8]) -> Vec<u8> {
        [&offset.to_le_bytes()[..], &said.to_le_bytes(), bytes].concat()
    }

    #[test]
    fn parts_are_read_with_their_places() {
        let body = [part(6, 2, b"yz"), part(1, 3, b"abc")].concat();
        let parts = receive(&mut body.as_slice(), 8).unwrap();
        assert_eq!(parts, [(6, Bytes::from_static(b"yz")), (1, Bytes::from_static(b"abc"))]);
    }

    #[test]
    fn invalid_parts_are_rejected() {
        for (body, reason) in [
            (part(7, 2, b"yz"), "behind the end"),
            (part(u64::MAX, 2, b"yz"), "behind the end"),
            (part(0, 3, b"yz"), "shorter than its header"),
            (vec![0; 15], "cut off"),
        ] {
            let error = receive(&mut body.as_slice(), 8).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        let error = receive(&mut part(0, 1 << 40, b"").as_slice(), u64::MAX).unwrap_err();
        assert!(error.to_string().contains("320 MiB"), "{error}");
    }
}
