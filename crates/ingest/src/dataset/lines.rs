//! Reads JSONL: one JSON document per line.

use super::reader::Reader;
use super::value::{Location, Row};
use super::{ImportError, Imported, Options, json_text};

/// Reads JSON lines. Skips a line that is not JSON.
pub(super) fn import(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    let mut reader = Reader::new(options);
    for (number, line) in (1..).zip(text.lines()) {
        push(&mut reader, number, line)?;
    }
    reader.finish("JSONL")
}

/// Reads a line. A blank line is not a row.
pub(super) fn push(reader: &mut Reader<'_>, number: u64, line: &str) -> Result<(), ImportError> {
    // RFC 7464 starts each document with a record separator.
    let line = line.trim_start_matches('\u{1e}');
    if line.trim().is_empty() {
        return Ok(());
    }
    let location = Location { item: "line", number };
    match serde_json::from_str::<Row<'_>>(line) {
        Ok(row) => reader.push(location, row),
        Err(error) => {
            // Python writes NaN. A list without its brackets has commas behind the documents.
            let plain = json_text::without_nan(line).or_else(|| json_text::without_comma(line).map(str::to_owned));
            if let Some(row) = plain.as_deref().and_then(|plain| serde_json::from_str::<Row<'_>>(plain).ok()) {
                return reader.push(location, row);
            }
            reader.skip(location, &format!("not JSON: {error}"));
            Ok(())
        }
    }
}
