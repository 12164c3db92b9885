//! Perfetto tests: interned names, default tracks, sequence-scoped clocks.

use super::*;

/// Track "rank 0" with slice 0F0 from 1000 to 2000 ns.
#[test]
fn perfetto() {
    let bytes =
        hex("0a0fe2030a0801120672616e6b203050010a1140e8075a0a48015801ba010330463050010a0b40d00f5a04480258015001");
    let trace = read_trace(&bytes);
    assert_eq!(slices(&trace), [(0, 1000, 1000, "0F0", Kind::Other)]);
    assert_eq!((trace.format, trace.lanes[0].name.as_deref()), (Format::Perfetto, Some("rank 0")));
    assert_eq!((trace.processes[0].rank, trace.actions.len(), trace.report.cut), (Some(0), 1, false));
    assert_eq!(read_trace(gz(&bytes)), trace);
    for cut in 18..bytes.len() {
        match try_read(&bytes[..cut]) {
            Ok(trace) => assert!(cut == 36 || trace.report.cut, "{cut}"),
            Err(TraceError::NoEvents { .. }) => assert!(cut < 36, "{cut}"),
            Err(error) => panic!("{cut}: {error}"),
        }
    }
}

fn bytes_field(number: u32, bytes: &[u8]) -> Vec<u8> {
    [varint((u64::from(number) << 3) | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn number_field(number: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn packet(sequence: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes_field(1, &[number_field(10, sequence), fields.concat()].concat())
}

/// Builds an event with an interned name, as written by the SDK.
fn interned(kind: u64, name: Option<u64>) -> Vec<u8> {
    bytes_field(11, &[number_field(9, kind), name.map_or_else(Vec::new, |name| number_field(10, name))].concat())
}

fn entry(number: u32, id: u64, name: &str) -> Vec<u8> {
    bytes_field(number, &[number_field(1, id), bytes_field(2, name.as_bytes())].concat())
}

/// Both sequences number names from 1. The second clears its state and redefines 1, so 2 is
/// undefined. Its clock counts microseconds from the previous packet, starting at 5 microseconds on
/// the shared clock.
#[test]
fn perfetto_names_by_number() {
    let track =
        |uuid: u64, name: &str| bytes_field(60, &[number_field(1, uuid), bytes_field(2, name.as_bytes())].concat());
    let defaults = |track: u64, clock: Option<u64>| {
        let clock = clock.map_or_else(Vec::new, |clock| number_field(58, clock));
        bytes_field(59, &[bytes_field(11, &number_field(11, track)), clock].concat())
    };
    let names = |entries: &[Vec<u8>]| bytes_field(12, &entries.concat());
    let time = |time: u64| number_field(8, time);
    let cleared = || number_field(13, 1);
    let clocks = bytes_field(
        6,
        &[
            bytes_field(1, &[number_field(1, 6), number_field(2, 5000)].concat()),
            bytes_field(
                1,
                &[number_field(1, 64), number_field(2, 0), number_field(3, 1), number_field(4, 1000)].concat(),
            ),
        ]
        .concat(),
    );
    let mut custom_category = number_field(3, 7);
    custom_category.extend([number_field(9, 1), number_field(10, 1)].concat());
    let bytes = [
        packet(1, &[track(11, "rank 0"), cleared()]),
        packet(1, &[defaults(11, None), names(&[entry(2, 1, "gemm"), entry(1, 7, "kernel")])]),
        packet(1, &[time(1000), bytes_field(11, &custom_category)]),
        packet(2, &[track(12, "rank 1"), cleared(), defaults(12, Some(64)), clocks, names(&[entry(2, 1, "load")])]),
        packet(1, &[time(1500), interned(2, None)]),
        packet(2, &[time(1), interned(1, Some(1))]),
        packet(2, &[time(2), interned(2, None)]),
        packet(2, &[cleared(), names(&[entry(2, 1, "store")]), defaults(12, None), time(9000), interned(1, Some(1))]),
        packet(2, &[time(9500), interned(2, None)]),
        packet(2, &[time(9600), interned(1, Some(2))]),
        packet(2, &[time(9700), interned(2, None)]),
        packet(2, &[number_field(58, 65), time(1), interned(1, Some(1))]),
    ]
    .concat();
    let trace = read_trace(&bytes);
    assert_eq!(
        slices(&trace),
        [
            (0, 1000, 500, "gemm", Kind::Compute),
            (1, 6000, 2000, "load", Kind::Other),
            (1, 9000, 500, "store", Kind::Other),
            (1, 9600, 100, "(name 2)", Kind::Other),
        ]
    );
    assert_eq!(
        trace.lanes.iter().map(|lane| lane.name.as_deref()).collect::<Vec<_>>(),
        [Some("rank 0"), Some("rank 1")]
    );
    assert_eq!(
        reasons(&trace),
        [
            ("a name by a number that its sequence does not define", 1),
            ("an event with a clock that the trace does not define", 1),
        ]
    );
}

/// Thread and process descriptors, and a complete slice as written by Chrome: 3 microseconds from
/// 10.
#[test]
fn perfetto_threads_and_complete_slices() {
    let process = bytes_field(3, &[number_field(1, 77), bytes_field(6, b"trainer")].concat());
    let thread = bytes_field(4, &[number_field(1, 77), number_field(2, 78), bytes_field(5, b"worker")].concat());
    let legacy = bytes_field(6, &[number_field(1, 4), number_field(2, u64::from(b'X')), number_field(3, 3)].concat());
    let bytes = [
        packet(1, &[bytes_field(60, &[number_field(1, 1), process].concat())]),
        packet(1, &[bytes_field(60, &[number_field(1, 2), thread].concat())]),
        packet(1, &[bytes_field(12, &entry(2, 4, "step"))]),
        packet(1, &[number_field(8, 10_000), bytes_field(11, &[number_field(11, 2), legacy].concat())]),
    ]
    .concat();
    let trace = read_trace(&bytes);
    assert_eq!(slices(&trace), [(0, 10_000, 3000, "step", Kind::Other)]);
    assert_eq!((trace.processes[0].name.as_deref(), trace.lanes[0].name.as_deref()), (Some("trainer"), Some("worker")));
}
