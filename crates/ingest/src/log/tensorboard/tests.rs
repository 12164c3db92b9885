//! Tests with valid TensorBoard records and with corrupt records.

use proptest::prelude::*;

use super::*;

/// `brain.Event:2`, and a scalar in both encodings: 2.5 at step 7 with wall time 1,700,000,001.5 s,
/// and at step 8 one second later.
const FILE: &str = "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d\
                    1d00000000000000602fdf230900006040fc54d94110072a100a0e0a076c6d206c6f737315000020408e4fa90a\
                    31000000000000009d8383e90900008040fc54d94110082a240a220a076c6d206c6f73734a0b0a090a077363616c\
                    617273420a080112002a0400002040c0fa6635";

fn file() -> Vec<u8> {
    (0..FILE.len()).step_by(2).map(|at| u8::from_str_radix(&FILE[at..at + 2], 16).expect("hexadecimal")).collect()
}

fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &crc32c::masked(&length).to_le_bytes(), data, &crc32c::masked(data).to_le_bytes()].concat()
}

pub(in crate::log) fn event(step: u8, tag: &str, value: f32) -> Vec<u8> {
    let value = [&[0x0a, tag.len() as u8], tag.as_bytes(), &[0x15], &value.to_le_bytes()].concat();
    let summary = [&[0x0a, value.len() as u8], &value[..]].concat();
    framed(&[&[0x10, step, 0x2a, summary.len() as u8], &summary[..]].concat())
}

fn read(bytes: &[u8]) -> Log {
    import(bytes, &Limits::default()).expect("an event file")
}

#[test]
fn both_scalar_forms_are_read() {
    let Log { points, report, .. } = read(&file());
    assert_eq!(report.lines, 3);
    assert_eq!((report.steps, report.ignored, report.points), (2, 1, 2));
    let seen: Vec<_> = points.iter().map(|point| (point.step, point.loss, point.time_us, point.offset)).collect();
    assert_eq!(
        seen,
        [(7, Some(2.5), Some(1_700_000_001_500_000), 40), (8, Some(2.5), Some(1_700_000_002_000_000), 85)]
    );
    assert_eq!((points[0].step_time_s, points[1].step_time_s), (None, Some(0.5)));
}

#[test]
fn half_a_record_waits_at_every_byte() {
    let full = file();
    let expected = read(&full).points;
    for cut in 0..full.len() {
        let mut parser = EventParser::new();
        let mut points = parser.push(&full[..cut]).expect("sound so far");
        points.extend(parser.push(&full[cut..]).expect("sound"));
        points.extend(parser.finish().0);
        assert_eq!(points, expected, "{cut}");
    }
}

#[test]
fn wrong_checksums() {
    let mut data = file();
    data[60] ^= 1;
    let log = read(&data);
    assert_eq!((log.report.skipped, log.points.len()), (1, 1));
    let mut length = file();
    length[85] ^= 1;
    let log = read(&length);
    assert_eq!((log.points.len(), log.report.problems[0].offset), (1, 85));
    let mut first = file();
    first[40] ^= 1;
    assert_eq!(import(&first, &Limits::default()), Err(LogError::Framing { offset: 40, read: 1 }));
}

#[test]
fn excessive_length_is_rejected_before_allocation() {
    let length = (1_u64 << 63).to_le_bytes();
    let bytes = [file(), length.to_vec(), crc32c::masked(&length).to_le_bytes().to_vec()].concat();
    let mut parser = EventParser::new();
    assert_eq!(parser.push(&bytes), Err(LogError::Framing { offset: 150, read: 3 }));
    assert!(parser.push(b"x").is_err());
    assert_eq!(parser.finish().0.len(), 2);
}

#[test]
fn long_records_are_left_out_in_passing() {
    let limits = Limits { record_bytes: 64, ..Limits::default() };
    let bytes = [event(1, "loss", 1.0), framed(&[0; 1000]), event(2, "loss", 0.5)].concat();
    for cut in [30, 200, 700] {
        let mut parser = EventParser::with_limits(limits);
        let mut points = parser.push(&bytes[..cut]).expect("sound");
        points.extend(parser.push(&bytes[cut..]).expect("sound"));
        assert_eq!(parser.report().skipped, 1);
        points.extend(parser.finish().0);
        assert_eq!(points.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 2]);
    }
}

#[test]
fn step_tags_are_merged_and_a_step_back_is_a_restart() {
    let bytes = [
        event(1, "lm loss", 4.0),
        event(1, "lm loss vs samples", 4.0),
        event(1, "learning-rate", 0.5),
        event(1, "iteration-time", 2.0),
        event(2, "lm loss", 3.0),
        event(1, "lm loss", 3.5),
    ]
    .concat();
    let Log { points, report, .. } = read(&bytes);
    let seen: Vec<_> = points.iter().map(|point| (point.segment, point.step, point.loss)).collect();
    assert_eq!(seen, [(0, 1, Some(4.0)), (0, 2, Some(3.0)), (1, 1, Some(3.5))]);
    assert_eq!((points[0].learning_rate, points[0].step_time_s), (Some(0.5), Some(2.0)));
    assert_eq!((report.restarts, points[0].others.len()), (1, 0));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = import(&bytes, &Limits::default());
        let framed = framed(&bytes);
        prop_assert_eq!(read(&[file(), framed].concat()).report.lines, 4);
    }
}
