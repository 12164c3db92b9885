//! Job information at the beginning of a log.

use ingest::log::{JobSetups, job_setup};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let _ = job_setup(bytes);
    let mut setups = JobSetups::new(None);
    for piece in bytes.chunks(97) {
        setups.push(piece);
    }
    assert!(!setups.finish().is_empty());
}
