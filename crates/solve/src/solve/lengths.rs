//! Limits for sequence length lists in requests.

use planscope_plan::scenario::FieldError;

/// Maximum sequences per batch. Packing time per pipeline grows quadratically.
pub(super) const BATCH: usize = 10_000;
/// Maximum sequences per dataset.
pub(super) const DATA_SET: usize = 1_000_000;
/// Maximum sequence length.
pub(super) const MAX: u64 = 1_000_000_000;

/// Returns all validation errors for a length list.
pub(super) fn wrong_lengths(lengths: &[u64], max_count: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if lengths.len() > max_count {
        errors.push(FieldError::new("/lengths", format!("{} sequences are more than {max_count}", lengths.len())));
    }
    for (index, length) in lengths.iter().enumerate().filter(|(_, length)| **length > MAX) {
        errors.push(FieldError::new(&format!("/lengths/{index}"), format!("{length} tokens are more than {MAX}")));
    }
    errors
}

/// Converts a token limit from a memory model. Negative limits mean no capacity.
pub(super) fn clamped(tokens: i64) -> u64 {
    tokens.max(0).unsigned_abs()
}
