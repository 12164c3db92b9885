//! Decompresses gzip with a size limit.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;

/// Magic bytes of a gzip stream.
const MAGIC: &[u8] = b"\x1f\x8b";

/// Decompression errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GzipError {
    /// The output exceeds the limit.
    TooLarge,
    /// The output is itself a gzip stream.
    Nested,
    /// The stream is corrupt or truncated.
    Broken {
        /// Data decompressed before the error.
        unpacked: Vec<u8>,
        detail: String,
    },
}

/// Decompresses gzip data and returns other data unchanged. The output has at most `budget` bytes.
pub(crate) fn unpack(bytes: &[u8], budget: usize) -> Result<Cow<'_, [u8]>, GzipError> {
    if !bytes.starts_with(MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    // The size is counted first, because a growing buffer needs up to three times its final size.
    let stream = || MultiGzDecoder::new(bytes).take(budget as u64 + 1);
    let size = count(&mut stream());
    if size > budget {
        return Err(GzipError::TooLarge);
    }
    let mut unpacked = Vec::with_capacity(size);
    let outcome = stream().read_to_end(&mut unpacked);
    if unpacked.starts_with(MAGIC) {
        return Err(GzipError::Nested);
    }
    match outcome {
        Ok(_) => Ok(Cow::Owned(unpacked)),
        Err(error) => Err(GzipError::Broken { unpacked, detail: error.to_string() }),
    }
}

/// Returns the number of bytes before the end or the first error.
fn count(stream: &mut impl Read) -> usize {
    let mut block = vec![0; 64 << 10];
    let mut size = 0;
    while let Ok(read @ 1..) = stream.read(&mut block) {
        size += read;
    }
    size
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    }

    #[test]
    fn a_budget_holds() {
        let bomb = packed(&vec![0; 1 << 20]);
        assert!(bomb.len() < 1 << 14);
        assert_eq!(unpack(&bomb, 1 << 20).map(|bytes| bytes.len()), Ok(1 << 20));
        assert_eq!(unpack(&bomb, (1 << 20) - 1), Err(GzipError::TooLarge));
        assert_eq!(unpack(&packed(&packed(b"x")), 1 << 20), Err(GzipError::Nested));
    }

    #[test]
    fn truncated_stream_returns_its_available_bytes() {
        let full: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let stream = packed(&full);
        match unpack(&stream[..stream.len() / 2], 1 << 20) {
            Err(GzipError::Broken { unpacked, .. }) => assert!(!unpacked.is_empty() && full.starts_with(&unpacked)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn plain_bytes_stay() {
        assert_eq!(unpack(b"plain", 3), Ok(Cow::Borrowed(&b"plain"[..])));
    }
}
