//! Chakra tests: both formats, cycles and malformed messages.

use super::*;

/// Adds a length prefix.
fn message(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

/// Builds a node with identifier, control dependencies, type and microseconds.
fn node(id: u8, before: &[u8], kind: u8, micros: u8) -> Vec<u8> {
    let name = [&[0x12, 2, b'n'], &[b'0' + id % 10][..]].concat();
    message(&[&[0x08, id], &name[..], &[0x18, kind, 0x22, before.len() as u8], before, &[0x38, micros]].concat())
}

/// Builds a node with data dependencies instead.
fn data_node(id: u8, before: &[u8], kind: u8, micros: u8) -> Vec<u8> {
    let mut bytes = node(id, before, kind, micros);
    let at = bytes.iter().position(|&byte| byte == 0x22).expect("a list");
    bytes[at] = 0x2a;
    bytes
}

pub(super) fn metadata() -> Vec<u8> {
    message(b"\x12\x10\x0a\x06schema\xea\x01\x051.0.1")
}

/// Node 2 depends on 1, node 3 on both and on a missing node: 0-5, 5-8, 8-9 microseconds.
#[test]
fn chakra() {
    let bytes =
        [metadata(), node(1, &[], 4, 5), node(2, &[1], 7, 3), vec![0], node(3, &[1, 2, 9], 4, 1), node(3, &[], 4, 1)]
            .concat();
    let trace = read_trace(&bytes);
    assert_eq!(
        slices(&trace),
        [
            (0, 0, 5000, "n1", Kind::Compute),
            (0, 8000, 1000, "n3", Kind::Compute),
            (1, 5000, 3000, "n2", Kind::Communication)
        ]
    );
    assert_eq!(
        reasons(&trace),
        [
            ("an empty message, at which other readers stop", 1),
            ("a node with the id of another", 1),
            ("a dependency on a node that is not there", 1)
        ]
    );
    assert_eq!((trace.totals[0].busy_ns, trace.report.events), (9000, 5));
    let json = r#"{"workload_graph":[{"Id":1,"Name":"n1","NodeType":4,"data_deps":[],"runtime":5,"is_cpu_op":true},
        {"id":2,"name":"n2","type":7,"ctrlDeps":[1],"runtime":3,"is_cpu_op":false}],"ngpus":8}"#;
    let trace = read_trace(json);
    assert_eq!(slices(&trace), [(0, 0, 5000, "n1", Kind::Cpu), (1, 5000, 3000, "n2", Kind::Communication)]);
    assert_eq!((trace.format, trace.report.cut), (Format::Chakra, false));
}

/// Node 1 depends on itself, 2 and 3 on each other, all by control dependencies. Node 3 needs data
/// from 2, and 4 from 3, also as a control dependency: 0-5, 0-3, 3-4, 4-6 microseconds. The three
/// dependencies on cycles are ignored.
#[test]
fn chakra_control_dependency_cycles_are_ignored() {
    let json = r#"{"workload_graph":[{"id":1,"name":"n1","type":4,"ctrl_deps":[1],"runtime":5},
        {"id":2,"name":"n2","type":4,"ctrl_deps":[3],"runtime":3},
        {"id":3,"name":"n3","type":4,"ctrl_deps":[2],"data_deps":[2],"runtime":1},
        {"id":4,"name":"n4","type":7,"ctrl_deps":[3],"data_deps":[3],"runtime":2}]}"#;
    let trace = read_trace(json);
    let mut times: Vec<_> =
        slices(&trace).into_iter().map(|(_, start, length, name, _)| (name, start, length)).collect();
    times.sort_unstable();
    assert_eq!(times, [("n1", 0, 5000), ("n2", 0, 3000), ("n3", 3000, 1000), ("n4", 4000, 2000)]);
    assert_eq!(
        trace.report.assumptions[0],
        "3 control dependencies lie on cycles and are ignored; data dependencies decide the order there"
    );
    let binary = read_trace([metadata(), node(1, &[1], 4, 5)].concat());
    assert_eq!(slices(&binary), [(0, 0, 5000, "n1", Kind::Compute)]);
}

#[test]
fn chakra_errors_have_a_location() {
    let circle =
        [metadata(), data_node(1, &[3], 4, 5), data_node(2, &[1], 4, 5), data_node(3, &[2], 4, 5), node(4, &[3], 4, 1)]
            .concat();
    let Err(TraceError::Cycle { mut nodes }) = try_read(&circle) else { panic!("a circle") };
    nodes.sort_unstable();
    assert_eq!(nodes, [1, 2, 3]);
    let long = [metadata(), vec![0xff; 11]].concat();
    let start = metadata().len() as u64;
    let error = try_read(&long).expect_err("a length of eleven bytes");
    assert!(matches!(error, TraceError::Message { message: 2, offset, .. } if offset == start), "{error}");
    let cut = read_trace([metadata(), node(1, &[], 4, 5), vec![50, 8]].concat());
    assert!(cut.report.cut && cut.slices.len() == 1);
    let huge = [metadata(), hex("ffffffff0f")].concat();
    assert!(matches!(try_read(&huge), Err(TraceError::Message { .. })));
}

/// Three consecutive nodes with 292 years each, and one with a stated start after 584 years
/// (18,446,744,073,709,551 microseconds).
#[test]
fn chakra_ends_before_64_bits_do() {
    let row =
        [1, 2, 3].map(|id| format!("{{\"id\":{id},\"ctrl_deps\":[{}],\"runtime\":9223372036854775.807}}", id - 1));
    let json = format!("{{\"workload_graph\":[{}]}}", row.join(","));
    let late = [&b"\x08\x01\x12\x01a\x18\x04\x30"[..], &hex("efcf9adef4a6e22038e807")].concat();
    let binary = [metadata(), message(&late)].concat();
    for trace in [read_trace(json), read_trace(binary)] {
        let Slices { start_ns, duration_ns, .. } = &trace.slices;
        let ends = start_ns.iter().zip(duration_ns).map(|(start, duration)| start.checked_add(*duration));
        assert!(
            ends.flatten().count() == trace.slices.len() && start_ns.iter().all(|&start| i64::try_from(start).is_ok())
        );
    }
}
