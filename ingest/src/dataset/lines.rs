//! JSONL: one JSON document per line.

use planner::data_aware::Preprocessing;

use super::json::{Row, RowReader};
use super::rows::Rows;
use super::{ImportError, Imported};

/// Reads JSON lines. A line that is not JSON is left out.
pub(super) fn import(text: &str, asked: Option<&str>, rule: Option<Preprocessing>) -> Result<Imported, ImportError> {
    let mut rows = Rows::of(rule);
    let mut reader = RowReader::new(asked);
    for (index, line) in text.lines().enumerate() {
        let place = || format!("line {}", index + 1);
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Row>(line) {
            Ok(row) => reader.take(&mut rows, place, &row)?,
            Err(error) => rows.skip(place, &format!("not JSON: {error}")),
        }
    }
    reader.finish(rows, "JSONL")
}
