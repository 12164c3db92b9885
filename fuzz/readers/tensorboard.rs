//! Event files: unchanged input, and records with correct checksums. A length byte precedes each
//! record.

use ingest::log::Point;
use ingest::log::tensorboard::EventParser;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    drop(EventParser::new().push(bytes));
    let mut file = Vec::new();
    let mut rest = bytes;
    while let Some((&length, behind)) = rest.split_first() {
        let (record, behind) = behind.split_at(usize::from(length).min(behind.len()));
        let length = (record.len() as u64).to_le_bytes();
        file.extend_from_slice(&length);
        file.extend_from_slice(&masked(&length).to_le_bytes());
        file.extend_from_slice(record);
        file.extend_from_slice(&masked(record).to_le_bytes());
        rest = behind;
    }
    // Compare the text, because a missing value (NaN) is not equal to itself.
    assert_eq!(format!("{:?}", points(&file, 7)), format!("{:?}", points(&file, file.len().max(1))));
}

fn points(file: &[u8], length: usize) -> Vec<Point> {
    let mut parser = EventParser::new();
    let mut points = Vec::new();
    for piece in file.chunks(length) {
        points.extend(parser.push(piece).expect("every frame is right"));
    }
    points.extend(parser.finish().0);
    points
}

/// Bitwise CRC-32C, masked as in TFRecord files.
fn masked(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}
