//! Computes lengths from offsets: the positions at which samples start and end in a token array.

use super::super::number::Number;
use super::super::value::Value;
use super::super::{names, token_ids};
use super::Named;

/// Names of offset arrays.
const NAMES: [&str; 16] = [
    "cu_seqlens",
    "cu_seqlens_q",
    "cu_seq_lens",
    "cu_lens",
    "offsets",
    "indptr",
    "row_splits",
    "boundaries",
    "seq_offsets",
    "sequence_offsets",
    "sample_offsets",
    "doc_offsets",
    "document_offsets",
    "token_offsets",
    "cumulative_lengths",
    "ends",
];

pub(super) struct Offsets<'n> {
    pub(super) name: &'n str,
    pub(super) lengths: Vec<i128>,
    /// True if an array's element count equals the sum of the lengths.
    pub(super) is_complete: bool,
}

/// Returns whether a name denotes offsets.
pub(super) fn are(name: &str) -> bool {
    NAMES.iter().any(|known| names::is_same(name, known))
}

/// Returns the lengths from the first offset array; `None` if there is none, or if it contradicts
/// the token array.
pub(super) fn lengths<'n>(columns: &[Named<'n>]) -> Option<Offsets<'n>> {
    let (name, values) = columns.iter().find(|(name, _)| are(name))?;
    let offsets: Vec<i128> = values
        .iter()
        .map(|value| match value {
            Value::Number(Number::Integer(offset)) => Some(*offset),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (&first, &last) = (offsets.first()?, offsets.last()?);
    if first < 0 || !offsets.is_sorted() {
        return None;
    }
    let count = |values: &[Value<'static>]| i128::try_from(values.len()).ok();
    let tokens = columns.iter().find(|(name, _)| token_ids::are_listed(name)).and_then(|(_, values)| count(values));
    let is_complete = columns.iter().any(|(_, values)| count(values) == Some(last));
    let between = offsets.array_windows().map(|[start, end]| end - start);
    let lengths = match (first, tokens) {
        (0, Some(tokens)) if tokens > last => between.chain([tokens - last]).collect(),
        (0, Some(tokens)) if tokens == last => between.collect(),
        (0, None) => between.collect(),
        // The offsets are ends; the first sample starts at 0.
        (first, _) if first > 0 && is_complete => std::iter::once(first).chain(between).collect(),
        _ => return None,
    };
    Some(Offsets { name, lengths, is_complete: is_complete || tokens.is_some() })
}
