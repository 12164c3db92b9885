//! Length files in all formats. A first byte below 4 selects the column, a byte from 4 to 7 selects
//! the media rule.

use ingest::dataset;
use planner::workload::preprocessing::Preprocessing;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let (asked, bytes) = match bytes {
        [0, rest @ ..] => (Some("1"), rest),
        [1, rest @ ..] => (Some("tokens"), rest),
        [2, rest @ ..] => (Some("a"), rest),
        [3, rest @ ..] => (Some(""), rest),
        _ => (None, bytes),
    };
    let (rule, bytes) = match bytes {
        [rule @ 4..=7, rest @ ..] => (Some(Preprocessing::ALL[usize::from(rule - 4)]), rest),
        _ => (None, bytes),
    };
    let options = dataset::Options { column: asked, preprocessing: rule, ..dataset::Options::default() };
    match dataset::import(bytes, &options) {
        Ok(imported) => assert!(imported.report.parsed + imported.report.repaired > 0, "{:?}", imported.report),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
