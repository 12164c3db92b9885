//! Converts panics in third-party format readers to errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ImportError;

/// Converts a panic into an error. The crates `parquet`, `arrow` and `tokenizers` index with values
/// from the file and panic on some invalid files. The reader is dropped with the file, so that no
/// state outlives the panic.
pub(super) fn contain<T>(
    format: &'static str,
    read: impl FnOnce() -> Result<T, ImportError>,
) -> Result<T, ImportError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(ImportError::Broken { format, detail: "it is broken: its parts contradict each other".to_owned() })
    })
}
