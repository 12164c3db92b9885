//! Panics of readers of foreign formats.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ImportError;

/// Converts a panic into an error. The crates `parquet`, `arrow` and `tokenizers` index into what a file says, and panic on some broken files. Their
/// readers are dropped with the file, so that no state outlives the panic.
pub(super) fn contain<T>(
    format: &'static str,
    read: impl FnOnce() -> Result<T, ImportError>,
) -> Result<T, ImportError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(ImportError::Broken { format, detail: "it is broken: its parts contradict each other".to_owned() })
    })
}
