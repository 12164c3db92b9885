//! What the head of a log states of its job.

use ingest::log::{JobSetups, job_setup};

/// Reads one input.
pub fn read(bytes: &[u8]) {
    let _ = job_setup(bytes);
    let mut setups = JobSetups::new(None);
    for piece in bytes.chunks(97) {
        setups.push(piece);
    }
    assert!(!setups.finish().is_empty());
}
