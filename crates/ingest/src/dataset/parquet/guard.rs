//! Limits the decompressed page size of a file. The crate `parquet` allocates the size that a page
//! header declares.

use std::io::{self, Chain, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

use super::Source;

/// Maximum decompressed size of the pages for one row batch, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of values in the pages for one row batch, including list elements.
const MAX_VALUES: u64 = 20_000_000;

/// Decompressed bytes and values since the last row batch.
#[derive(Debug, Default)]
pub(super) struct Budget {
    bytes: AtomicU64,
    values: AtomicU64,
    missing: AtomicBool,
}

impl Budget {
    /// Starts a new batch.
    pub(super) fn reset(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.values.store(0, Ordering::Relaxed);
    }

    /// Returns whether the reader needed bytes that are unavailable.
    pub(super) fn is_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed)
    }

    fn take(&self, header: PageHeader) -> io::Result<()> {
        let bytes = self.bytes.fetch_add(header.bytes, Ordering::Relaxed).saturating_add(header.bytes);
        let values = self.values.fetch_add(header.values, Ordering::Relaxed).saturating_add(header.values);
        if bytes > MAX_BYTES {
            return Err(io::Error::other(format!(
                "its pages unpack to more than {} MiB per batch of rows",
                MAX_BYTES >> 20
            )));
        }
        if values > MAX_VALUES {
            return Err(io::Error::other(format!("its pages hold more than {MAX_VALUES} values per batch of rows")));
        }
        Ok(())
    }
}

/// A source that checks each page header before the page is decompressed.
#[derive(Debug)]
pub(super) struct Guarded<R> {
    pub(super) source: Arc<R>,
    pub(super) budget: Arc<Budget>,
}

impl<R: Source> Guarded<R> {
    /// Records an access to a missing byte.
    fn look(&self, offset: u64) {
        if !self.source.has(offset) {
            self.budget.missing.store(true, Ordering::Relaxed);
        }
    }
}

impl<R: Source> Length for Guarded<R> {
    fn len(&self) -> u64 {
        self.source.len()
    }
}

impl<R: Source> ChunkReader for Guarded<R> {
    type T = HeaderReader<R::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.look(start);
        Ok(HeaderReader::Unread { inner: Some(self.source.get_read(start)?), budget: Arc::clone(&self.budget) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.look(start);
        self.look(start.saturating_add((length as u64).saturating_sub(1)));
        self.source.get_bytes(start, length)
    }
}

/// Reads a page header. The crate opens readers that it does not use, so the check happens at the
/// first read.
#[derive(Debug)]
pub(super) enum HeaderReader<T> {
    Unread { inner: Option<T>, budget: Arc<Budget> },
    Read(Chain<Cursor<Vec<u8>>, T>),
}

impl<T: Read> Read for HeaderReader<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Self::Unread { inner, budget } = self {
            let mut inner = inner.take().ok_or_else(|| io::Error::other("the page header was refused"))?;
            let mut head = Vec::with_capacity(PageHeader::BYTES);
            inner.by_ref().take(PageHeader::BYTES as u64).read_to_end(&mut head)?;
            let header = PageHeader::read(&head).ok_or_else(|| {
                io::Error::other("a page header cannot be read: the column is encrypted, or the file is broken")
            })?;
            budget.take(header)?;
            *self = Self::Read(Cursor::new(head).chain(inner));
        }
        match self {
            Self::Read(reader) => reader.read(buffer),
            Self::Unread { .. } => Ok(0),
        }
    }
}

/// Sizes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageHeader {
    /// Decompressed bytes.
    bytes: u64,
    /// Number of values, including null values and list elements.
    values: u64,
}

impl PageHeader {
    /// Number of header bytes that contain the sizes.
    const BYTES: usize = 40;

    /// Reads the first fields in Thrift's compact protocol: type, decompressed size, compressed
    /// size, optional CRC, and the number of values, which is the first field of the page-type
    /// header.
    fn read(head: &[u8]) -> Option<Self> {
        /// A 32-bit field whose ID follows the previous field ID.
        const NEXT_I32: u8 = 0x15;
        /// Type code of a struct.
        const STRUCT: u8 = 0x0c;
        let mut head = head;
        let mut field = |expected: u8| {
            let (&first, rest) = head.split_first()?;
            (first == expected).then_some(())?;
            let (value, rest) = varint(rest)?;
            head = rest;
            Some(value)
        };
        field(NEXT_I32)?;
        let bytes = zigzag(field(NEXT_I32)?)?;
        field(NEXT_I32)?;
        // The CRC is optional.
        let _ = field(NEXT_I32);
        let (&kind, rest) = head.split_first()?;
        (kind & 0x0f == STRUCT).then_some(())?;
        let values = match rest.split_first()? {
            (&NEXT_I32, rest) => zigzag(varint(rest)?.0)?,
            // An index page has no values.
            _ => 0,
        };
        Some(Self { bytes, values })
    }
}

/// Parses a number with seven bits per byte; returns it with the remaining bytes.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

/// Decodes a zigzag number; returns `None` if it is negative.
fn zigzag(value: u64) -> Option<u64> {
    (value & 1 == 0).then_some(value >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_header_sizes() {
        // Data page: type 0, 300 bytes decompressed, 20 compressed, header with 100 values.
        let plain = [0x15, 0, 0x15, 0xd8, 4, 0x15, 40, 0x2c, 0x15, 0xc8, 1, 0x15, 0];
        assert_eq!(PageHeader::read(&plain), Some(PageHeader { bytes: 300, values: 100 }));
        // The same with a CRC.
        let with_crc = [0x15, 0, 0x15, 0xd8, 4, 0x15, 40, 0x15, 9, 0x1c, 0x15, 0xc8, 1];
        assert_eq!(PageHeader::read(&with_crc), Some(PageHeader { bytes: 300, values: 100 }));
        // A negative size, a different order, a truncated header.
        for wrong in [&[0x15, 0, 0x15, 1, 0x15, 40, 0x2c, 0x15, 2][..], &[0x25, 0, 0x15, 2], &[0x15, 0, 0x15]] {
            assert_eq!(PageHeader::read(wrong), None);
        }
    }

    /// A page that declares 2 GiB is rejected before memory is reserved.
    #[test]
    fn headers_are_checked_when_they_are_read() {
        let header = |size: &[u8]| [&[0x15, 0, 0x15][..], size, &[0x15, 40, 0x2c, 0x15, 0xc8, 1, 7, 7]].concat();
        let sound = header(&[0xd8, 4]);
        let reader = |bytes| HeaderReader::Unread { inner: Some(bytes), budget: Arc::new(Budget::default()) };
        let mut read = Vec::new();
        reader(&sound[..]).read_to_end(&mut read).expect("a header");
        assert_eq!(read, sound, "no byte is lost");
        let bomb = header(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        let error = reader(&bomb[..]).read_to_end(&mut read).expect_err("a refusal").to_string();
        assert!(error.contains("more than 256 MiB"), "{error}");
    }

    #[test]
    fn a_batch_has_a_budget() {
        let budget = Budget::default();
        let page = PageHeader { bytes: MAX_BYTES / 2 + 1, values: 1 };
        assert!(budget.take(page).is_ok());
        assert!(budget.take(page).is_err());
        budget.reset();
        assert!(budget.take(page).is_ok());
        assert!(budget.take(PageHeader { bytes: 0, values: MAX_VALUES }).is_err());
    }
}
