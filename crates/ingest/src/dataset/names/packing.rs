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
    /// Start and end of each sample: `sample_ranges`.
    Ranges,
    /// Token positions within each sample: `position_ids`.
    Places,
    /// Cumulative lengths, from 0 to the row length: `cu_seqlens`.
    Sums,
    /// Start of each sample: `seq_start_id`.
    Starts,
    /// Positions between samples, with or without both ends of the row: `boundaries`.
    Cuts,
    /// Sample number of each token: `segment_ids`. Padding has number 0.
    Numbers,
    /// Part number of each token: `token_type_ids`. Two parts may be a pair of sentences.
    Types,
    /// 1 for a token and 0 for padding, or the sample number of each token: `attention_mask`.
    Mask,
}

/// Names in lower case, without separators.
const NAMES: [(Packing, &[&str]); 9] = [
    (
        Packing::Lengths,
        &[
            "seqlens",
            "seqlengths",
            "sequencelengths",
            "subseqlens",
            "subseqlengths",
            "samplelengths",
            "samplelens",
            "doclens",
            "doclengths",
            "documentlens",
            "documentlengths",
            "segmentlens",
            "segmentlengths",
            "packedlens",
            "packedlengths",
            "length",
            "lengths",
        ],
    ),
    (
        Packing::Ranges,
        &[
            "ranges",
            "sampleranges",
            "docranges",
            "documentranges",
            "seqranges",
            "sequenceranges",
            "segmentranges",
            "samplespans",
            "docspans",
            "documentspans",
            "segmentspans",
        ],
    ),
    (Packing::Places, &["positionids", "inputsposition", "inputspositions"]),
    (
        Packing::Sums,
        &["cuseqlens", "cuseqlensq", "cumseqlens", "cumulativeseqlens", "cumulativelen", "cumulativelens", "culengths"],
    ),
    (Packing::Starts, &["seqstartid", "seqstartids", "seqstarts"]),
    (
        Packing::Cuts,
        &[
            "boundaries",
            "docboundaries",
            "documentboundaries",
            "sampleboundaries",
            "seqboundaries",
            "sequenceboundaries",
            "segmentboundaries",
            "packboundaries",
        ],
    ),
    (
        Packing::Numbers,
        &[
            "segmentids",
            "sequenceids",
            "seqids",
            "docids",
            "documentids",
            "sampleids",
            "seqidx",
            "sequenceidx",
            "docidx",
            "documentidx",
            "sampleidx",
            "segmentidx",
            "inputssegmentation",
            "inputssegmentations",
            "inputssegmentids",
        ],
    ),
    (Packing::Types, &["tokentypeids"]),
    (Packing::Mask, &["attentionmask"]),
];

/// Names of lists with decoder token IDs, in rows that also contain encoder token IDs.
pub(in super::super) const DECODER: [&str; 4] = ["decoder_input_ids", "labels", "target_ids", "decoder_labels"];

/// Name of the token IDs beside `inputs_segmentation`, as MaxText and grain write them.
pub(in super::super) const INPUTS: &str = "inputs";

/// Returns the meaning of a column's lists by the column name.
pub(in super::super) fn packing(name: &str) -> Option<Packing> {
    // Fast rejection by the first letter and the length of the name.
    let is_possible = (6..=22).contains(&name.len()) && name.starts_with(|c: char| "abcdilprstABCDILPRST".contains(c));
    if !is_possible {
        return None;
    }
    let letters = letters(name);
    NAMES.iter().find(|(_, names)| names.contains(&letters.as_str())).map(|(packing, _)| *packing)
}

/// Returns whether a name counts the samples that are packed into a row: `num_packed`.
pub(in super::super) fn counts_packed(name: &str) -> bool {
    let letters = letters(name);
    let base = letters.strip_prefix("num").or_else(|| letters.strip_prefix('n')).unwrap_or(&letters);
    ["packed", "packedsamples", "packedsequences", "packedseqs", "packeddocs", "packeddocuments", "packedexamples"]
        .contains(&base)
        || ["packsize", "packcount", "packedcount"].contains(&letters.as_str())
}

/// Returns whether all list numbers must be read, and not only the element count.
pub(in super::super) fn reads_numbers(name: &str) -> bool {
    Field::from_name(name).is_some() || packing(name).is_some() || holds_lengths(name)
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
    fn packed_list_names() {
        for (name, expected) in [
            ("seq_lens", Some(Packing::Lengths)),
            ("sub_seq_lens", Some(Packing::Lengths)),
            ("length", Some(Packing::Lengths)),
            ("position_ids", Some(Packing::Places)),
            ("cumulative_len", Some(Packing::Sums)),
            ("seq_start_id", Some(Packing::Starts)),
            ("document_ids", Some(Packing::Numbers)),
            ("attention_mask", Some(Packing::Mask)),
            ("seq_idx", Some(Packing::Numbers)),
            ("doc_lengths", Some(Packing::Lengths)),
            ("boundaries", Some(Packing::Cuts)),
            ("sample_ranges", Some(Packing::Ranges)),
            ("token_type_ids", Some(Packing::Types)),
            ("inputs_segmentation", Some(Packing::Numbers)),
            ("inputs_position", Some(Packing::Places)),
            ("input_ids", None),
            ("labels", None),
        ] {
            assert_eq!(packing(name), expected, "{name}");
        }
    }
}
