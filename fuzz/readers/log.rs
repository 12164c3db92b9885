//! Complete logs in all formats, compressed or not.

use ingest::log::{self, Limits};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let limits = Limits { file_bytes: 8 << 20, record_bytes: 1 << 20, ..Limits::default() };
    match log::import(bytes, &limits) {
        Ok(log) => assert!(!log.points.is_empty() && log.points.len() <= limits.points),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
