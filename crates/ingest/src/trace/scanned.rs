//! Final state of a JSON scan, complete or truncated.

use std::io::Read;

use super::build::Builder;
use crate::json::Scanner;

/// Copies scanner findings to the report.
pub(super) fn finish_scan<R: Read>(scanner: &Scanner<R>, builder: &mut Builder<'_>) {
    let report = &mut builder.report;
    report.bytes = scanner.offset();
    report.cut = scanner.depth() > 0 || scanner.broken_off().is_some();
    if let Some(detail) = scanner.broken_off() {
        report.assume(&format!("the file breaks off after {} unpacked bytes ({detail})", report.bytes));
    } else if report.cut {
        report.assume("the document is not closed; every complete event was read");
    }
    let repairs = scanner.repairs();
    if repairs.strings > 0 {
        let (count, first) = (repairs.strings, repairs.first);
        report.repaired += count;
        report.assume(&format!("{count} texts were repaired: not UTF-8, or control characters; first at byte {first}"));
    }
    if repairs.cut > 0 {
        report.assume(&format!("{} texts are longer than is kept and were cut", repairs.cut));
    }
}
