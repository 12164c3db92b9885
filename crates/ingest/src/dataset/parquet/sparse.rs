//! Stores parts of an incompletely available file.

use bytes::{Buf, Bytes, buf};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Parts of a file: the web page sends the footer and the columns of a local file instead of the
/// complete file.
#[derive(Debug, Clone, Default)]
pub struct Sparse {
    length: u64,
    /// Sorted by offset.
    parts: Vec<(u64, Bytes)>,
}

impl Sparse {
    /// Creates the parts from offset and content; `length` is the file length in bytes. Adjacent
    /// parts are joined, so that a page may span them.
    pub fn new(length: u64, mut parts: Vec<(u64, Bytes)>) -> Self {
        parts.sort_by_key(|&(offset, _)| offset);
        let mut joined: Vec<(u64, Vec<Bytes>, u64)> = Vec::new();
        for (offset, bytes) in parts {
            let end = offset.saturating_add(bytes.len() as u64);
            match joined.last_mut() {
                Some((_, pieces, last)) if *last == offset => {
                    pieces.push(bytes);
                    *last = end;
                }
                _ => joined.push((offset, vec![bytes], end)),
            }
        }
        let parts = joined.into_iter().map(|(offset, pieces, _)| match <[Bytes; 1]>::try_from(pieces) {
            Ok([only]) => (offset, only),
            Err(pieces) => (offset, pieces.concat().into()),
        });
        Self { length, parts: parts.collect() }
    }

    /// Returns the bytes from an offset to the end of their part; `None` if they are unavailable.
    fn rest(&self, start: u64) -> Option<Bytes> {
        let before = self.parts.partition_point(|&(offset, _)| offset <= start);
        // If parts overlap, the part with the maximum end is used.
        let reaching = self.parts[..before].iter().rev().filter_map(|(offset, bytes)| {
            let skipped = usize::try_from(start - offset).ok()?;
            (skipped < bytes.len()).then(|| bytes.slice(skipped..))
        });
        reaching.max_by_key(Bytes::len)
    }

    /// Returns whether a byte is available.
    pub(super) fn has(&self, offset: u64) -> bool {
        self.rest(offset).is_some()
    }
}

fn missing(start: u64) -> ParquetError {
    ParquetError::EOF(format!("byte {start} of the file was not sent"))
}

impl Length for Sparse {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Sparse {
    type T = buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.rest(start).map(Buf::reader).ok_or_else(|| missing(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.rest(start).ok_or_else(|| missing(start))?;
        if bytes.len() < length {
            return Err(missing(start + bytes.len() as u64));
        }
        Ok(bytes.slice(..length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_offset() {
        let part = |offset, bytes: &'static [u8]| (offset, Bytes::from_static(bytes));
        let file = Sparse::new(100, vec![part(50, b"xyz"), part(10, b"ab"), part(12, b"cd")]);
        assert_eq!(file.get_bytes(11, 3).ok().as_deref(), Some(&b"bcd"[..]), "parts that touch are joined");
        assert_eq!(file.get_bytes(52, 1).ok().as_deref(), Some(&b"z"[..]));
        for (start, length) in [(9, 1), (12, 3), (52, 2), (99, 1)] {
            let error = file.get_bytes(start, length).expect_err("not sent").to_string();
            assert!(error.contains("was not sent"), "{error}");
        }
        assert!(file.has(13) && !file.has(14));
        assert_eq!(file.len(), 100);
    }
}
