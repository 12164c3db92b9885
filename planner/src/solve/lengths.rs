//! Lists of sequence lengths in questions: how many there may be, and how long.

use crate::scenario::FieldError;

/// Most sequences of a batch: the work of packing one pipeline grows with their square.
pub(super) const BATCH: usize = 10_000;
/// Most sequences of a data set.
pub(super) const DATA_SET: usize = 1_000_000;
/// Longest sequence.
pub(super) const LONGEST: u64 = 1_000_000_000;

/// All that is wrong with lengths by themselves.
pub(super) fn wrong_lengths(lengths: &[u64], most: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if lengths.len() > most {
        errors.push(FieldError::new("/lengths", format!("{} sequences are more than {most}", lengths.len())));
    }
    for (place, length) in lengths.iter().enumerate().filter(|(_, length)| **length > LONGEST) {
        errors.push(FieldError::new(&format!("/lengths/{place}"), format!("{length} tokens are more than {LONGEST}")));
    }
    errors
}

/// A limit of tokens as a memory model gives it: what is negative holds nothing.
pub(super) fn clamped(tokens: i64) -> u64 {
    tokens.max(0).unsigned_abs()
}
