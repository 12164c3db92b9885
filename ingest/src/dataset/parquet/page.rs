//! Pages of a chunk, unpacked.

use std::borrow::Cow;

use super::super::ImportError;
use super::broken;
use super::thrift::{Reader, kind};
use crate::gzip;

/// Most bytes of a page, unpacked; writers make them of one mebibyte.
const MOST_BYTES: i64 = 128 << 20;

/// A page.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// What it holds.
    pub(super) content: Content,
    /// Values, with those that are missing.
    pub(super) values: usize,
    /// How they are encoded.
    pub(super) encoding: i64,
    /// Its bytes, unpacked, levels included.
    pub(super) bytes: Cow<'a, [u8]>,
}

/// What a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The values that others refer to.
    Dictionary,
    /// Levels with their lengths before them, and values.
    Data,
    /// Levels of these lengths, and values.
    DataV2 {
        /// Bytes of repetition levels.
        repetition: usize,
        /// Bytes of definition levels.
        definition: usize,
    },
    /// Something that is passed over.
    Other,
}

#[derive(Debug, Default)]
struct Header {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
    definition: i64,
    repetition: i64,
    plain: bool,
}

/// Reads the page at the start of the bytes and returns what stands behind it.
pub(super) fn read(bytes: &[u8], codec: i64) -> Result<(Page<'_>, &[u8]), ImportError> {
    let mut reader = Reader::new(bytes);
    let cut = || broken("a page is cut, or its header cannot be read");
    let header = header(&mut reader).ok_or_else(cut)?;
    if !(0..=MOST_BYTES).contains(&header.unpacked) {
        return Err(broken(format!("a page of {} bytes; at most {MOST_BYTES} are read", header.unpacked)));
    }
    let length = usize::try_from(header.packed).map_err(|_| cut())?;
    let (body, rest) = reader.rest().split_at_checked(length).ok_or_else(cut)?;
    let level = |bytes: i64| usize::try_from(bytes).ok().filter(|&bytes| bytes <= body.len()).ok_or_else(cut);
    let content = match header.kind {
        0 => Content::Data,
        2 => Content::Dictionary,
        3 => Content::DataV2 { repetition: level(header.repetition)?, definition: level(header.definition)? },
        _ => Content::Other,
    };
    let bytes = match content {
        Content::Other => Cow::Borrowed(&[][..]),
        // Levels are not packed with the values.
        Content::DataV2 { repetition, definition } => {
            let levels = repetition + definition;
            let (levels, values) = body.split_at_checked(levels).ok_or_else(cut)?;
            let codec = if header.plain { 0 } else { codec };
            let values = unpack(values, codec, (header.unpacked as usize).saturating_sub(levels.len()))?;
            match values {
                Cow::Borrowed(_) => Cow::Borrowed(body),
                Cow::Owned(values) => Cow::Owned([levels, &values].concat()),
            }
        }
        _ => unpack(body, codec, header.unpacked as usize)?,
    };
    let values = usize::try_from(header.values).map_err(|_| cut())?;
    Ok((Page { content, values, encoding: header.encoding, bytes }, rest))
}

fn header(reader: &mut Reader<'_>) -> Option<Header> {
    let mut header = Header::default();
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (1, kind::I32) => header.kind = reader.number()?,
            (2, kind::I32) => header.unpacked = reader.number()?,
            (3, kind::I32) => header.packed = reader.number()?,
            // Number of values and encoding, of data and of dictionaries.
            (5 | 7, kind::STRUCT) => reader.fields(|reader, id, kind| {
                match (id, kind) {
                    (1, kind::I32) => header.values = reader.number()?,
                    (2, kind::I32) => header.encoding = reader.number()?,
                    _ => return Some(false),
                }
                Some(true)
            })?,
            (8, kind::STRUCT) => reader.fields(|reader, id, kind| {
                match (id, kind) {
                    (1, kind::I32) => header.values = reader.number()?,
                    (4, kind::I32) => header.encoding = reader.number()?,
                    (5, kind::I32) => header.definition = reader.number()?,
                    (6, kind::I32) => header.repetition = reader.number()?,
                    // A truth value is its type; 2 is false.
                    (7, 2) => header.plain = true,
                    _ => return Some(false),
                }
                Some(true)
            })?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(header)
}

/// Unpacks to exactly so many bytes.
fn unpack(bytes: &[u8], codec: i64, length: usize) -> Result<Cow<'_, [u8]>, ImportError> {
    let unpacked = match codec {
        0 => Cow::Borrowed(bytes),
        1 => {
            let wrong = || broken("a page cannot be unpacked (Snappy)");
            if snap::raw::decompress_len(bytes).map_err(|_| wrong())? != length {
                return Err(wrong());
            }
            Cow::Owned(snap::raw::Decoder::new().decompress_vec(bytes).map_err(|_| wrong())?)
        }
        2 => gzip::unpack(bytes, length).map_err(|_| broken("a page cannot be unpacked (gzip)"))?,
        _ => {
            const NAMES: [&str; 5] = ["LZO", "Brotli", "LZ4", "Zstandard", "LZ4"];
            let place = codec.checked_sub(3).and_then(|place| usize::try_from(place).ok());
            let name = place.and_then(|place| NAMES.get(place)).unwrap_or(&"an unknown codec");
            return Err(broken(format!("it is packed with {name}; write it with compression=\"snappy\"")));
        }
    };
    if unpacked.len() == length {
        Ok(unpacked)
    } else {
        Err(broken(format!("a page has {} bytes, but its header says {length}", unpacked.len())))
    }
}
