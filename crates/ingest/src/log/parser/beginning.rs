//! Detects streams of files that are read only as a whole.

use serde_json::Value;

use crate::log::json_lines::finite;
use crate::log::{header, listed};

/// Maximum length of the beginning of a stream that is classified, in bytes.
const BEGINNING: usize = 4096;
/// Number of lines without a step after which a whole file is reported while a stream grows.
pub(super) const MIN_LINES: u64 = 3;
/// Note for a stream of a file that is read only as a whole.
pub(super) const WHOLE_FILE: &str = "this looks like a table, a JSON document or a packed file, from which a stream reads no steps: import the file (POST \
                          /runs/import, or the import on the page of runs)";

/// Beginning of a stream.
#[derive(Debug, Clone)]
pub(super) enum Beginning {
    /// The first bytes, as long as they do not contain a complete line.
    Unknown(Vec<u8>),
    Lines,
    /// The file is read only as a whole.
    WholeFile,
}

impl Beginning {
    /// Adds bytes and classifies the beginning once a line is complete.
    pub(super) fn push(&mut self, bytes: &[u8], is_end: bool) {
        let Self::Unknown(head) = self else { return };
        head.extend(bytes.iter().take(BEGINNING - head.len()));
        let is_line = head.trim_ascii_start().contains(&b'\n');
        if is_line || is_end || head.len() >= BEGINNING {
            *self = if is_whole_file(head) { Self::WholeFile } else { Self::Lines };
        }
    }
}

/// Returns whether the beginning of a log is that of a file that is read only as a whole: a table, a JSON
/// document, or a packed file.
fn is_whole_file(head: &[u8]) -> bool {
    const GZIP: &[u8] = b"\x1f\x8b";
    if head.starts_with(GZIP) {
        return true;
    }
    let text = String::from_utf8_lossy(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head));
    let text = text.trim_start();
    let first = text.lines().next().unwrap_or_default().trim_end();
    let is_row = || serde_json::from_str::<Value>(&finite(first)).is_ok_and(|row| row.is_object());
    let is_json = matches!(first, "{" | "[")
        || first.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
        || (first.starts_with("{\"") && (first.contains("\"log_history\"") || !is_row()));
    is_json
        || first == "Wall time,Step,Value"
        || header::is_panel(first)
        || header::delimiter(first).is_some()
        || listed::is_log_table(first)
        || header::is_mlflow_metric(text)
}
