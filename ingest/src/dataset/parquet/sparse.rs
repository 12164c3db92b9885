//! Parts of a file that is not at hand as a whole.

use bytes::{Buf, Bytes, buf};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Parts of a file: the page sends the footer and the columns of a local file, not the whole of it.
#[derive(Debug, Clone, Default)]
pub struct Sparse {
    length: u64,
    /// Sorted by offset.
    parts: Vec<(u64, Bytes)>,
}

impl Sparse {
    /// Parts by their offset in a file of a length in bytes. Parts that touch are joined, so that a page may span them.
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

    /// The bytes from an offset to the end of their part; `None` if they are not at hand.
    fn rest(&self, start: u64) -> Option<Bytes> {
        let before = self.parts.partition_point(|&(offset, _)| offset <= start);
        // Parts may overlap: the one that reaches furthest counts.
        let reaching = self.parts[..before].iter().rev().filter_map(|(offset, bytes)| {
            let skipped = usize::try_from(start - offset).ok()?;
            (skipped < bytes.len()).then(|| bytes.slice(skipped..))
        });
        reaching.max_by_key(Bytes::len)
    }

    /// Whether a byte is at hand.
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
