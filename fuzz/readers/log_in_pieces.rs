//! A log in chunks must give the same result as the complete log. The first byte is the chunk
//! length.

use ingest::log::{LogParser, Point, Report};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let Some((&length, text)) = bytes.split_first() else { return };
    assert_eq!(points(text, usize::from(length).max(1)), points(text, text.len().max(1)));
}

fn points(text: &[u8], length: usize) -> (Vec<Point>, Report) {
    let mut parser = LogParser::new();
    let mut points: Vec<Point> = text.chunks(length).flat_map(|piece| parser.push(piece)).collect();
    let (last, report) = parser.finish();
    points.extend(last);
    (points, report)
}
