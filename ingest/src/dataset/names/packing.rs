//! Names of lists that describe the samples within a row of token IDs: lengths, positions and
//! padding.

use super::super::media::Field;
use super::super::{Meaning, Unit, token_ids};
use super::{letters, meaning};

/// Meaning of the list numbers for the row's samples, in descending order of precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Packing {
    /// Sample lengths: `seq_lens`.
    Lengths,
    /// Token positions within each sample: `position_ids`.
    Places,
    /// Cumulative lengths, from 0 to the row length: `cu_seqlens`.
    Sums,
    /// Start of each sample: `seq_start_id`.
    Starts,
    /// Sample number of each token: `segment_ids`. Padding has number 0.
    Numbers,
    /// 1 for a token and 0 for padding, or the sample number of each token: `attention_mask`.
    Mask,
}

/// Names in lower case, without separators.
const NAMES: [(Packing, &[&str]); 6] = [
    (
        Packing::Lengths,
        &[
            "seqlens",
            "seqlengths",
            "sequencelengths",
            "subseqlens",
            "subseqlengths",
            "samplelengths",
            "length",
            "lengths",
        ],
    ),
    (Packing::Places, &["positionids"]),
    (
        Packing::Sums,
        &["cuseqlens", "cuseqlensq", "cumseqlens", "cumulativeseqlens", "cumulativelen", "cumulativelens", "culengths"],
    ),
    (Packing::Starts, &["seqstartid", "seqstartids", "seqstarts"]),
    (Packing::Numbers, &["segmentids", "sequenceids", "seqids", "docids", "documentids", "sampleids"]),
    (Packing::Mask, &["attentionmask"]),
];

/// Names of lists with decoder token IDs, in rows that also contain encoder token IDs.
pub(in super::super) const DECODER: [&str; 4] = ["decoder_input_ids", "labels", "target_ids", "decoder_labels"];

/// Returns the meaning of a column's lists by the column name.
pub(in super::super) fn packing(name: &str) -> Option<Packing> {
    // Fast rejection by the first letter and the length of the name.
    let is_possible = (6..=22).contains(&name.len()) && name.starts_with(|c: char| "acdlpsACDLPS".contains(c));
    if !is_possible {
        return None;
    }
    let letters = letters(name);
    NAMES.iter().find(|(_, names)| names.contains(&letters.as_str())).map(|(packing, _)| *packing)
}

/// Returns whether all list numbers must be read, and not only the element count.
pub(in super::super) fn reads_numbers(name: &str) -> bool {
    Field::of(name).is_some() || packing(name).is_some() || holds_lengths(name)
}

/// Returns whether the column name says that each list number is a length: `num_tokens`, `seqlens`.
pub(in super::super) fn holds_lengths(name: &str) -> bool {
    let is_number = |name: &str| ["num", "count", "len"].iter().any(|word| name.contains(word));
    matches!(meaning(name).0, Meaning::Length(Unit::Tokens) | Meaning::Prompt | Meaning::Completion)
        && !token_ids::are_listed(name)
        && is_number(&name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lists_of_packed_rows() {
        for (name, expected) in [
            ("seq_lens", Some(Packing::Lengths)),
            ("sub_seq_lens", Some(Packing::Lengths)),
            ("length", Some(Packing::Lengths)),
            ("position_ids", Some(Packing::Places)),
            ("cumulative_len", Some(Packing::Sums)),
            ("seq_start_id", Some(Packing::Starts)),
            ("document_ids", Some(Packing::Numbers)),
            ("attention_mask", Some(Packing::Mask)),
            ("input_ids", None),
            ("labels", None),
        ] {
            assert_eq!(packing(name), expected, "{name}");
        }
    }
}
