//! Custom pattern tables. The table ends at a line `---`; the log follows.

use ingest::log::{self, Limits, LogParser, LogTable};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (table, lines) = text.split_once("\n---\n").unwrap_or((&text, "step 1 loss 2\n"));
    match LogTable::parse(table) {
        Ok(table) => {
            drop(log::import_with(lines.as_bytes(), &Limits::default(), Some(&table)));
            let mut parser = LogParser::with_table(Limits::default(), Some(table));
            drop(parser.push(lines.as_bytes()));
            drop(parser.finish());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
