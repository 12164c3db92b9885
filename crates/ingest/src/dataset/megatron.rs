//! Reads Megatron-LM's index of a tokenized dataset (`.idx`), which contains the token count of
//! each sequence.
//!
//! `"MMIDIDX\0\0" | u64 version 1 | u8 token type | u64 sequences | u64 documents | i32 lengths |
//! i64 pointers | i64 document starts [| i8 modes]`, little-endian
//! (megatron/core/datasets/indexed_dataset.py). The pointers are prefix sums of the lengths times
//! the token size, which serves as a checksum. The document starts are prefix sums of the sequence
//! count per document.

use super::number::Number;
use super::rows::Rows;
use super::{Candidate, ImportError, Imported, MAX_ROWS, Options};

pub(super) const MAGIC: &[u8] = b"MMIDIDX\0\0";
/// Number of bytes before the lengths.
const HEAD: usize = 34;
/// Column name that selects documents instead of sequences.
const DOCUMENTS: &str = "documents";

const FORMAT: &str = "Megatron-LM index";

fn broken(detail: String) -> ImportError {
    ImportError::Broken { format: FORMAT, detail }
}

/// Reads each sequence as a sample, or each document if the column is `documents`.
pub(super) fn import(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    options.check_columns(&["sequences", DOCUMENTS])?;
    let by_document = options.column == Some(DOCUMENTS);
    let eight = |at: usize| bytes.get(at..)?.first_chunk().map(|&eight| u64::from_le_bytes(eight));
    let head = (eight(9), bytes.get(17), eight(18), eight(26));
    let (Some(version), Some(&dtype), Some(sequences), Some(documents)) = head else {
        return Err(broken(format!("it ends after {} bytes, inside its head of {HEAD}", bytes.len())));
    };
    if version != 1 {
        return Err(broken(format!("its version is {version}; only 1 is known")));
    }
    let token = match dtype {
        1 | 2 => 1_u64,
        3 | 8 => 2,
        4 | 7 => 4,
        5 | 6 => 8,
        _ => return Err(broken(format!("its type of tokens is {dtype}; 1 to 8 are known"))),
    };
    if sequences > MAX_ROWS as u64 {
        return Err(ImportError::TooManyRows);
    }
    // The sequence count is already bounded, but the document count from the file is not.
    let plain = HEAD as u64 + 12 * sequences;
    let size = documents.checked_mul(8).and_then(|bytes| bytes.checked_add(plain));
    let found = bytes.len() as u64;
    let with_modes = |size: u64| size.checked_add(sequences);
    let Some(size) = size.filter(|&size| size == found || with_modes(size) == Some(found)) else {
        return Err(broken(format!(
            "it has {found} bytes, but {sequences} sequences and {documents} document starts take {plain} + 8 per \
             document; the file is cut or not an index"
        )));
    };
    let sequences = sequences as usize;
    let (lengths, rest) = bytes[HEAD..size as usize].split_at(4 * sequences);
    let (pointers, starts) = rest.split_at(8 * sequences);
    let lengths: Vec<i32> = lengths.as_chunks().0.iter().map(|&four| i32::from_le_bytes(four)).collect();
    let mut pointer = 0_u64;
    for (index, (&length, &eight)) in lengths.iter().zip(pointers.as_chunks().0).enumerate() {
        let Ok(positive) = u64::try_from(length) else {
            return Err(broken(format!("sequence {} has {length} tokens", index + 1)));
        };
        let found = i64::from_le_bytes(eight);
        if u64::try_from(found) != Ok(pointer) {
            return Err(broken(format!(
                "sequence {} starts at byte {found}, but the sequences before it end at {pointer}",
                index + 1
            )));
        }
        // At most five million sequences with two billion tokens of eight bytes each.
        pointer += positive * token;
    }
    let starts: Vec<i64> = starts.as_chunks().0.iter().map(|&eight| i64::from_le_bytes(eight)).collect();
    let ordered = starts.first() == Some(&0)
        && starts.last().copied().map(usize::try_from) == Some(Ok(sequences))
        && starts.is_sorted();
    if !(ordered || (starts.is_empty() && sequences == 0)) {
        return Err(broken("the starts of its documents do not rise from 0 to the number of sequences".to_owned()));
    }
    let mut rows = Rows::default();
    if by_document {
        for (index, pair) in starts.windows(2).enumerate() {
            let document = &lengths[pair[0] as usize..pair[1] as usize];
            let tokens: i128 = document.iter().map(|&length| i128::from(length)).sum();
            push(&mut rows, "document", index, tokens)?;
        }
        let candidates = vec![Candidate::named("sequences".to_owned())];
        return rows.finish(FORMAT, "tokens of each document".to_owned(), candidates, Vec::new());
    }
    for (index, &length) in lengths.iter().enumerate() {
        push(&mut rows, "sequence", index, length.into())?;
    }
    let candidates = vec![Candidate::named(DOCUMENTS.to_owned())];
    rows.finish(FORMAT, "tokens of each sequence".to_owned(), candidates, Vec::new())
}

/// Adds a sequence or document. Empty ones contain no training tokens and are skipped.
fn push(rows: &mut Rows, noun: &str, index: usize, tokens: i128) -> Result<(), ImportError> {
    let location = || format!("{noun} {}", index + 1);
    if tokens == 0 {
        rows.skip(location, "it is empty");
        return Ok(());
    }
    rows.push(location, Number::Integer(tokens))
}

#[cfg(test)]
mod tests {
    use planner::workload::Dataset;
    use proptest::prelude::*;

    use super::*;

    /// Builds an index with int32 tokens.
    fn index(lengths: &[i32], starts: &[i64]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(1_u64.to_le_bytes());
        bytes.push(4);
        bytes.extend((lengths.len() as u64).to_le_bytes());
        bytes.extend((starts.len() as u64).to_le_bytes());
        bytes.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
        let mut pointer = 0_i64;
        for &length in lengths {
            bytes.extend(pointer.to_le_bytes());
            pointer += i64::from(length) * 4;
        }
        bytes.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        bytes
    }

    fn by(column: Option<&str>) -> Options<'_> {
        Options { column, ..Options::default() }
    }

    fn lengths(bytes: &[u8], requested: Option<&str>) -> Vec<u32> {
        match import(bytes, &by(requested)) {
            Ok(Imported { dataset: Dataset::Rows { text_tokens, .. }, .. }) => text_tokens,
            other => panic!("{other:?}"),
        }
    }

    /// Bytes that Megatron-LM writes for sequences with 5, 3 and 7 tokens in two documents.
    #[test]
    fn index_with_three_sequences() {
        let hex = "4d4d4944494458000001000000000000000403000000000000000300000000000000050000000300000007000000\
                   000000000000000014000000000000002000000000000000000000000000000002000000000000000300000000000000";
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        assert_eq!(bytes, index(&[5, 3, 7], &[0, 2, 3]));
        assert_eq!(lengths(&bytes, None), [5, 3, 7]);
        assert_eq!(lengths(&bytes, Some("documents")), [8, 7]);
        let modes = [&bytes[..], &[0, 1, 0]].concat();
        assert_eq!(lengths(&modes, None), [5, 3, 7]);
        assert_eq!(super::super::tests::import(&bytes, None).map(|imported| imported.report.parsed), Ok(3));
    }

    #[test]
    fn invalid_indices_are_reported() {
        let sound = index(&[5, 3, 7], &[0, 2, 3]);
        let with = |at: usize, byte: u8| {
            let mut bytes = sound.clone();
            bytes[at] = byte;
            bytes
        };
        // 34 + 12,000 + 8 documents equals 2^64 - 958, so adding 1,000 modes overflows.
        let mut endless = sound[..42].to_vec();
        endless[18..26].copy_from_slice(&1000_u64.to_le_bytes());
        endless[26..34].copy_from_slice(&2_305_843_009_213_692_328_u64.to_le_bytes());
        for (bytes, message) in [
            (endless, "the file is cut"),
            (with(9, 2), "version is 2"),
            (with(17, 9), "type of tokens is 9"),
            (with(25, 0x20), "more than 5000000 rows"),
            (with(32, 0x20), "the file is cut"),
            (sound[..90].to_vec(), "the file is cut"),
            (sound[..20].to_vec(), "inside its head"),
            (with(37, 0x80), "sequence 1 has -2147483643 tokens"),
            (with(54, 21), "sequence 2 starts at byte 21, but the sequences before it end at 20"),
            (with(78, 9), "do not rise"),
            (index(&[0, 0, 5], &[0, 3]), "2 of 3 rows"),
            (index(&[], &[]), "no length found"),
        ] {
            let error = import(&bytes, &Options::default()).expect_err(message).to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
        let weighted = Options { weight: Some("pages"), ..Options::default() };
        for options in [by(Some("pages")), weighted] {
            assert!(matches!(import(&sound, &options), Err(ImportError::NoSuchColumn { .. })));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 9_usize..90, byte in any::<u8>()) {
            let _ = import(&[MAGIC, &bytes].concat(), &Options::default());
            let mut sound = index(&[5, 3, 7], &[0, 2, 3]);
            sound[at] = byte;
            let _ = import(&sound, &by(Some("documents")));
        }
    }
}
