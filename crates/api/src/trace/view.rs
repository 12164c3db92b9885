//! Compact view encoding: a version byte, then columns in postcard format.

use serde::{Deserialize, Serialize};

/// Version byte.
const VERSION: u8 = 1;

/// Slices within a time range, at the resolution of the pixels.
///
/// Spans are ordered by lane, row and time. Lane `lanes[l]` has the column range `lane_offsets[l]
/// .. lane_offsets[l + 1]`. A span with count 1 is a slice. A larger count merges that many slices
/// on the row, all shorter than `merged_ns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceView {
    /// Start of the range, in nanoseconds since the first start in the trace.
    pub from_ns: u64,
    /// End of the range.
    pub to_ns: u64,
    /// Slices shorter than this can be merged with neighbours; 0 if none are.
    pub merged_ns: u64,
    /// Detail level. Level 0 contains all slices.
    pub level: u32,
    /// Number of stored chunks that were read.
    pub chunks: u32,
    /// Lanes, ascending.
    pub lanes: Vec<u32>,
    /// First index per lane, followed by the number of spans.
    pub lane_offsets: Vec<u32>,
    /// Row on the lane, from 0.
    pub row: Vec<u16>,
    /// First start.
    pub start_ns: Vec<u64>,
    /// Time from the first start to the last end.
    pub extent_ns: Vec<u64>,
    /// Total duration.
    pub busy_ns: Vec<u64>,
    /// Number of the dominant slice kind.
    pub kind: Vec<u8>,
    /// Number of slices.
    pub count: Vec<u32>,
    /// Index into `names`: the slice name, or the name of the longest merged slice.
    pub name: Vec<u32>,
    /// Names; text, not markup.
    pub names: Vec<String>,
}

impl TraceView {
    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Returns whether the view has no span.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// Returns the column range for the lane at a position in `lanes`.
    pub fn lane(&self, position: usize) -> std::ops::Range<usize> {
        let offset = |position: usize| self.lane_offsets.get(position).map_or(0, |&offset| offset as usize);
        offset(position)..offset(position + 1).max(offset(position))
    }

    /// Returns whether all columns have consistent lengths.
    fn is_complete(&self) -> bool {
        let spans = self.count.len();
        let columns = [
            self.row.len(),
            self.start_ns.len(),
            self.extent_ns.len(),
            self.busy_ns.len(),
            self.kind.len(),
            self.name.len(),
        ];
        columns.iter().all(|&length| length == spans)
            && self.lane_offsets.len() == self.lanes.len() + 1
            && self.lane_offsets.is_sorted()
            && self.lane_offsets.last().is_some_and(|&last| last as usize == spans)
            && self.name.iter().all(|&name| (name as usize) < self.names.len())
    }
}

/// Decoding error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The version is unknown, or the bytes are not a view.
    Version(u8),
    /// The data is truncated or damaged.
    Damaged,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => write!(f, "trace view form {version} is not known here; reload the page"),
            Self::Damaged => write!(f, "the view of the trace arrived damaged"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Encodes a view.
pub fn encode(view: &TraceView) -> Vec<u8> {
    let body = postcard::to_allocvec(view).expect("a view holds only integers, texts and columns of them");
    let mut bytes = Vec::with_capacity(body.len() + 1);
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes
}

/// Decodes a view.
pub fn decode(bytes: &[u8]) -> Result<TraceView, DecodeError> {
    match bytes.split_first().ok_or(DecodeError::Damaged)? {
        (&VERSION, body) => {
            let view: TraceView = postcard::from_bytes(body).map_err(|_| DecodeError::Damaged)?;
            if view.is_complete() { Ok(view) } else { Err(DecodeError::Damaged) }
        }
        (&other, _) => Err(DecodeError::Version(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> TraceView {
        TraceView {
            from_ns: 0,
            to_ns: 100,
            merged_ns: 4,
            level: 1,
            chunks: 2,
            lanes: vec![3, 7],
            lane_offsets: vec![0, 2, 3],
            row: vec![0, 1, 0],
            start_ns: vec![0, 5, 1 << 40],
            extent_ns: vec![50, 1, 3],
            busy_ns: vec![50, 1, 2],
            kind: vec![0, 4, 8],
            count: vec![1, 1, 9],
            name: vec![0, 1, 1],
            names: vec!["gemm".to_owned(), "<b>".to_owned()],
        }
    }

    #[test]
    fn view_round_trip() {
        let bytes = encode(&view());
        assert_eq!(decode(&bytes), Ok(view()));
        assert_eq!(view().lane(1), 2..3);
        assert_eq!(view().lane(9), 0..0);
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Damaged));
        assert_eq!(decode(&[9, 0]), Err(DecodeError::Version(9)));
        assert_eq!(decode(&[]), Err(DecodeError::Damaged));
    }

    #[test]
    fn columns_with_mismatched_lengths_are_rejected() {
        for broken in [
            TraceView { count: vec![1, 1], ..view() },
            TraceView { lane_offsets: vec![0, 3], ..view() },
            TraceView { lane_offsets: vec![0, 2, 4], ..view() },
            TraceView { name: vec![0, 1, 2], ..view() },
        ] {
            assert_eq!(decode(&encode(&broken)), Err(DecodeError::Damaged));
        }
    }
}
