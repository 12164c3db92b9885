//! Length files of every format; a first byte below four says which column is asked for.

#![no_main]

use ingest::dataset;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (asked, bytes) = match bytes {
        [0, rest @ ..] => (Some("1"), rest),
        [1, rest @ ..] => (Some("tokens"), rest),
        [2, rest @ ..] => (Some("a"), rest),
        [3, rest @ ..] => (Some(""), rest),
        _ => (None, bytes),
    };
    match dataset::import(bytes, asked) {
        Ok(imported) => assert!(imported.report.parsed + imported.report.repaired > 0, "{:?}", imported.report),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
