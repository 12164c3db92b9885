//! Plain numbers between white space or commas.

use super::cell::Cell;
use super::rows::Rows;
use super::{ImportError, Imported};

/// Reads plain numbers.
pub(super) fn import(text: &str) -> Result<Imported, ImportError> {
    let mut rows = Rows::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        for word in line.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty()) {
            rows.push(|| format!("line {}", index + 1), Cell::Text(word))?;
        }
    }
    rows.finish("plain numbers", "every number of the file".to_owned(), Vec::new())
}
