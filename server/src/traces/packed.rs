//! Storage format of columns: postcard with deflate compression.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use ingest::trace::Kind;
use ingest::trace::levels::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum unpacked size. Valid data is much smaller, but a damaged file can expand to any size.
const MAX_BYTES: u64 = 1 << 30;

/// Error: stored columns are damaged.
#[derive(Debug, thiserror::Error)]
#[error("stored columns of a trace are damaged: {0}")]
pub(crate) struct Damaged(String);

impl Damaged {
    /// Creates an error for contents that do not fit together.
    pub(super) fn new(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// Packs a value as postcard.
pub(crate) fn pack<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let body = postcard::to_allocvec(value).expect("columns hold numbers and texts");
    deflate(&body)
}

pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Damaged> {
    postcard::from_bytes(&inflate(bytes)?).map_err(|error| Damaged(error.to_string()))
}

/// Packs a value as JSON. Required for types with optional fields.
pub(crate) fn pack_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    deflate(&serde_json::to_vec(value).expect("documents have only text keys"))
}

/// Unpacks data from [`pack_json`].
pub(crate) fn unpack_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Damaged> {
    serde_json::from_slice(&inflate(bytes)?).map_err(|error| Damaged(error.to_string()))
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes every byte")
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, Damaged> {
    let mut body = Vec::new();
    DeflateDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut body).map_err(|error| Damaged(error.to_string()))?;
    Ok(body)
}

/// Spans in column format. Starts are stored as differences, because consecutive starts are close.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Columns {
    lane: Vec<u32>,
    depth: Vec<u16>,
    /// True and the difference from the previous start; or false and the absolute start, if it
    /// precedes the previous start.
    start_ns: Vec<(bool, u64)>,
    extent_ns: Vec<u64>,
    name: Vec<u32>,
    kind: Vec<u8>,
    /// Count, busy time and longest duration per span. Empty if each span is a single slice whose
    /// duration equals the extent.
    merged: Vec<(u32, u64, u64)>,
}

pub(crate) fn pack_spans(spans: &[Span]) -> Vec<u8> {
    let mut columns = Columns::default();
    let mut before = 0;
    let is_exact =
        |span: &Span| span.count == 1 && span.active_ns == span.extent_ns && span.max_duration_ns == span.extent_ns;
    let exact = spans.iter().all(is_exact);
    for span in spans {
        columns.lane.push(span.lane);
        columns.depth.push(span.depth);
        let ahead = span.start_ns >= before;
        columns.start_ns.push((ahead, if ahead { span.start_ns - before } else { span.start_ns }));
        before = span.start_ns;
        columns.extent_ns.push(span.extent_ns);
        columns.name.push(span.name);
        columns.kind.push(span.kind.index() as u8);
        if !exact {
            columns.merged.push((span.count, span.active_ns, span.max_duration_ns));
        }
    }
    pack(&columns)
}

pub(crate) fn unpack_spans(bytes: &[u8]) -> Result<Vec<Span>, Damaged> {
    let columns: Columns = unpack(bytes)?;
    let count = columns.lane.len();
    let lengths =
        [columns.depth.len(), columns.start_ns.len(), columns.extent_ns.len(), columns.name.len(), columns.kind.len()];
    let merged = columns.merged.len();
    if lengths.iter().any(|&length| length != count) || (merged != 0 && merged != count) {
        return Err(Damaged("columns of different lengths".to_owned()));
    }
    let mut before = 0_u64;
    let span = |at: usize| {
        let (ahead, start) = columns.start_ns[at];
        before = if ahead { before.saturating_add(start) } else { start };
        let extent_ns = columns.extent_ns[at];
        let (count, active_ns, max_ns) = columns.merged.get(at).copied().unwrap_or((1, extent_ns, extent_ns));
        Span {
            lane: columns.lane[at],
            depth: columns.depth[at],
            start_ns: before,
            extent_ns,
            active_ns,
            count,
            name: columns.name[at],
            max_duration_ns: max_ns,
            kind: Kind::ALL.get(usize::from(columns.kind[at])).copied().unwrap_or(Kind::Other),
        }
    };
    Ok((0..count).map(span).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back() {
        let exact = Span {
            lane: 3,
            depth: 1,
            start_ns: 1 << 50,
            extent_ns: 7,
            active_ns: 7,
            count: 1,
            name: 9,
            max_duration_ns: 7,
            kind: Kind::Runtime,
        };
        let earlier = Span { lane: 4, start_ns: 5, ..exact };
        let merged = Span { count: 12, active_ns: 6, max_duration_ns: 2, ..earlier };
        for spans in [vec![], vec![exact, earlier], vec![exact, merged]] {
            assert_eq!(unpack_spans(&pack_spans(&spans)).expect("ours"), spans);
        }
        assert!(unpack_spans(&[1, 2, 3]).is_err());
        assert!(unpack_spans(&pack(&Columns { lane: vec![1], ..Columns::default() })).is_err());
    }
}
