//! Names of lists that describe the samples of a row of token identifiers: their lengths, their places, and their padding.

use super::super::media::Field;
use super::super::{Meaning, Unit, token_ids};
use super::{letters, meaning};

/// What the numbers of a list say about the samples of its row, the most exact first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Packing {
    /// Lengths of the samples: `seq_lens`.
    Lengths,
    /// Places of tokens within their samples: `position_ids`.
    Places,
    /// Sums of the lengths, from 0 to the length of the row: `cu_seqlens`.
    Sums,
    /// Where each sample starts: `seq_start_id`.
    Starts,
    /// The number of the sample of each token: `segment_ids`. Padding has the number 0.
    Numbers,
    /// 1 for a token and 0 for padding, or the number of the sample of each token: `attention_mask`.
    Mask,
}

/// Names without separators, in lower case.
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

/// Names of lists with the identifiers of a decoder, in rows with those of an encoder.
pub(in super::super) const DECODER: [&str; 4] = ["decoder_input_ids", "labels", "target_ids", "decoder_labels"];

/// What the lists of a column say about the samples of a row, by the name of the column.
pub(in super::super) fn packing(name: &str) -> Option<Packing> {
    // Most names differ by their first letter or their length.
    let is_possible = (6..=22).contains(&name.len()) && name.starts_with(|c: char| "acdlpsACDLPS".contains(c));
    if !is_possible {
        return None;
    }
    let letters = letters(name);
    NAMES.iter().find(|(_, names)| names.contains(&letters.as_str())).map(|(packing, _)| *packing)
}

/// Whether every number of the lists of a column is read, and not only the number of elements.
pub(in super::super) fn reads_numbers(name: &str) -> bool {
    Field::of(name).is_some() || packing(name).is_some() || holds_lengths(name)
}

/// Whether each number of a list is a length by the name of its column: `num_tokens`, `seqlens`.
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
