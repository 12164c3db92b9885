//! The compact form of a view: columns in the postcard encoding behind a byte that says which form it is.

use serde::{Deserialize, Serialize};

/// First byte of the form.
const VERSION: u8 = 1;

/// What ran in a stretch of time, as fine as its pixels can show.
///
/// Spans stand lane by lane, row by row, in time. Lane `lanes[l]` is the range `lane_offsets[l] .. lane_offsets[l + 1]` of the
/// columns. A span is one slice where its count is 1; otherwise it stands for that many slices of the row, all of them
/// shorter than `merged_ns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceView {
    /// Left edge, in nanoseconds since the trace's first start.
    pub from_ns: u64,
    /// Right edge.
    pub to_ns: u64,
    /// Slices shorter than this may be merged with their neighbours; 0 where none is.
    pub merged_ns: u64,
    /// Level that was read: 0 has every slice.
    pub level: u32,
    /// Parts of the stored trace that were read.
    pub chunks: u32,
    /// Lanes, ascending.
    pub lanes: Vec<u32>,
    /// First index of every lane, and the number of spans at the end.
    pub lane_offsets: Vec<u32>,
    /// Row within the lane, from 0.
    pub row: Vec<u16>,
    /// First start.
    pub start_ns: Vec<u64>,
    /// From the first start to the last end.
    pub extent_ns: Vec<u64>,
    /// Sum of the durations.
    pub busy_ns: Vec<u64>,
    /// Number of the slice kind that most of it is.
    pub kind: Vec<u8>,
    /// How many slices.
    pub count: Vec<u32>,
    /// Index into `names`: of the slice, or of the longest of several.
    pub name: Vec<u32>,
    /// The names that occur; text, never markup.
    pub names: Vec<String>,
}

impl TraceView {
    /// Number of spans.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Whether there is no span.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// Column range of the lane at a position of `lanes`.
    pub fn lane(&self, position: usize) -> std::ops::Range<usize> {
        let offset = |position: usize| self.lane_offsets.get(position).map_or(0, |&offset| offset as usize);
        offset(position)..offset(position + 1).max(offset(position))
    }

    /// Whether all columns have the length that the others promise.
    fn is_whole(&self) -> bool {
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

/// Why bytes are not a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// Written by a newer server, or not a view at all.
    Version(u8),
    /// Cut short or damaged.
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

/// Writes a view.
pub fn encode(view: &TraceView) -> Vec<u8> {
    let body = postcard::to_allocvec(view).expect("a view holds only integers, texts and columns of them");
    let mut bytes = Vec::with_capacity(body.len() + 1);
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes
}

/// Reads a view.
pub fn decode(bytes: &[u8]) -> Result<TraceView, DecodeError> {
    match bytes.split_first().ok_or(DecodeError::Damaged)? {
        (&VERSION, body) => {
            let view: TraceView = postcard::from_bytes(body).map_err(|_| DecodeError::Damaged)?;
            if view.is_whole() { Ok(view) } else { Err(DecodeError::Damaged) }
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
    fn what_is_written_is_read_again() {
        let bytes = encode(&view());
        assert_eq!(decode(&bytes), Ok(view()));
        assert_eq!(view().lane(1), 2..3);
        assert_eq!(view().lane(9), 0..0);
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Damaged));
        assert_eq!(decode(&[9, 0]), Err(DecodeError::Version(9)));
        assert_eq!(decode(&[]), Err(DecodeError::Damaged));
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
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
