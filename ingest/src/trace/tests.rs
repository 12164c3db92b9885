//! Traces as profilers write them, and traces that nobody should write.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn try_read(bytes: &[u8]) -> Result<Trace, TraceError> {
    read(bytes, TimeUnit::default(), &Limits::default())
}

fn of(bytes: impl AsRef<[u8]>) -> Trace {
    let bytes = bytes.as_ref();
    try_read(bytes).unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(bytes)))
}

/// Start, duration, name and kind of every slice with its lane.
fn slices(trace: &Trace) -> Vec<(u32, u64, u64, &str, Kind)> {
    let Slices { lane, start_ns, duration_ns, name, kind, .. } = &trace.slices;
    (0..trace.slices.len())
        .map(|at| (lane[at], start_ns[at], duration_ns[at], trace.names[name[at] as usize].as_str(), kind[at]))
        .collect()
}

fn reasons(trace: &Trace) -> Vec<(&str, u64)> {
    trace.report.problems.iter().map(|problem| (problem.reason.as_str(), problem.count)).collect()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte")
}

const KINETO: &str = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "X"}],
 "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 2, "pg_config": [
   {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 8, "ranks": [0, 1, 2, 3]},
   {"pg_name": "7", "pg_desc": "tp", "pg_size": 2, "ranks": "[2, 3]"}, {"pg_name": "9", "ranks": "{}"}]},
 "displayTimeUnit": "ms", "baseTimeNanoseconds": 1735632360000000000,
 "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#12","pid":1102,"tid":1102,"ts":1712195495505000.001,"dur":900.002,"args":{"External id":2100}},
{"ph":"X","cat":"cpu_op","name":"nccl:all_reduce","pid":1102,"tid":1102,"ts":"1712195495505043.2","dur":92.804,"args":{"External id":2100,"Ev Idx":51, "Input Dims": [[1, 2], []]}},
{"ph":"X","cat":"user_annotation","name":"PP:0F3","pid":1102,"tid":1102,"ts":1712195495505200,"dur":10},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD (Device -> Device)","pid":0,"tid":7,"ts":1712195495506161.2,"dur":1.28,"args":{"device":0,"stream":7,"bytes":256}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL","pid":0,"tid":20,"ts":1712195495506160.0,"dur":10,"args":{"Collective name":"allreduce","dtype":"BFloat16","In msg nelems":1024,"Out msg nelems":1024,"Group size":2,"Process Group Name":"7","Process Group Ranks":"[2, 3]","Seq":5}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1712195495506165.0,"dur":10,"args":{}},
{"ph":"s","id":135071,"pid":1102,"tid":1102,"ts":1712195495505543.2,"cat":"ac2g","name":"ac2g"},
{"ph":"f","id":135071,"pid":0,"tid":7,"ts":1712195495506165.0,"cat":"ac2g","name":"ac2g","bp":"e"},
{"ph":"f","id":9,"pid":0,"tid":7,"ts":1712195495506165.0,"cat":"ac2g","name":"ac2g","bp":"e"},
{"name":"process_name","ph":"M","ts":1712195495501688.5,"pid":1102,"tid":0,"args":{"name":"python3.10"}},
{"name":"process_labels","ph":"M","ts":0,"pid":0,"tid":0,"args":{"labels":"GPU 0"}},
{"name":"process_sort_index","ph":"M","ts":0,"pid":1102,"tid":0,"args":{"sort_index":5}},
{"name":"thread_name","ph":"M","ts":0,"pid":0,"tid":7,"args":{"name":"stream 7"}},
{"name":"Iteration Start: PyTorch Profiler","ph":"i","s":"g","pid":"Traces","tid":"Trace PyTorch Profiler","ts":1712195495501688.5},
{"name":"Memory","ph":"C","pid":0,"ts":1712195495506165.0,"args":{"memory":12.5}}
],"traceName":"x"}"#;

/// By hand: compute 6165-6175 us, communication 6160-6170, a copy 6161.2-6162.48; nothing is idle.
#[test]
fn kineto() {
    let trace = of(KINETO);
    let step = 1_712_195_495_505_000_001;
    let copy = 1_712_195_495_506_161_200;
    assert_eq!(
        slices(&trace),
        [
            (0, copy, 1280, "Memcpy DtoD (Device -> Device)", Kind::Memcpy),
            (0, 1_712_195_495_506_165_000, 10_000, "gemm", Kind::Compute),
            (1, 1_712_195_495_506_160_000, 10_000, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", Kind::Communication),
            (2, step, 900_002, "ProfilerStep#12", Kind::Annotation),
            (2, 1_712_195_495_505_043_200, 92_804, "nccl:all_reduce", Kind::Cpu),
            (2, 1_712_195_495_505_200_000, 10_000, "PP:0F3", Kind::Annotation),
        ]
    );
    assert_eq!((trace.origin_ns, trace.slices.depth.as_slice()), (step, &[0, 0, 0, 0, 1, 1][..]));
    assert_eq!(trace.base_ns, Some(1_735_632_360_000_000_000));
    assert_eq!(trace.steps, [Step { number: 12, slice: 3, on_device: false }]);
    let [Located { slice: 5, value }] = trace.actions[..] else { panic!("{:?}", trace.actions) };
    assert_eq!(value, Action { stage: 0, kind: ActionKind::Forward, microbatch: Some(3) });
    let [Located { slice: 2, value }] = &trace.collectives[..] else { panic!("{:?}", trace.collectives) };
    assert_eq!((value.elements_in, value.group_size, value.ranks.as_deref()), (Some(1024), Some(2), Some("[2, 3]")));
    assert_eq!(trace.transfers, [Transfer { slice: 0, bytes: 256 }]);
    let job = trace.distributed.as_ref().expect("a job");
    assert_eq!((job.rank, job.world_size, job.groups.len()), (Some(3), Some(8), 3));
    assert_eq!(
        (&job.groups[0].ranks, &job.groups[1].ranks, job.groups[2].ranks.len()),
        (&vec![0, 1, 2, 3], &vec![2, 3], 0)
    );
    let [total] = trace.totals[..] else { panic!("{:?}", trace.totals) };
    assert_eq!(
        (total.rank, total.span_ns, total.compute_ns, total.communication_ns),
        (Some(3), 15_000, 10_000, 10_000)
    );
    assert_eq!((total.overlapped_ns, total.copy_ns, total.idle_ns), (5000, 1280, 0));
    let flow = Flow { from_lane: 2, from_ns: 1_712_195_495_505_543_200, to_lane: 0, to_ns: 1_712_195_495_506_165_000 };
    assert_eq!(trace.flows, [flow]);
    assert_eq!(
        (trace.counters.len(), trace.counters[0].process, trace.names[trace.counters[0].series as usize].as_str()),
        (1, 1, "memory")
    );
    let names: Vec<_> =
        trace.processes.iter().map(|process| process.name.as_deref().or(process.labels.as_deref())).collect();
    assert_eq!(names, [Some("python3.10"), Some("GPU 0")]);
    assert_eq!(trace.lanes[0].name.as_deref(), Some("stream 7"));
    let Report { events, used, skipped, repaired, cut, .. } = trace.report;
    assert_eq!((events, used, skipped, repaired, cut), (15, 14, 1, 0, false));
}

const EVENT: &str = r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":1.5,"dur":2}"#;

#[test]
fn arrays_may_be_bare_unclosed_and_badly_separated() {
    for (text, cut) in [
        (format!("[{EVENT},{EVENT}]"), false),
        (format!("[{EVENT},\n{EVENT},"), true),
        (format!("[{EVENT},{EVENT},]"), false),
        (format!("{{\"traceEvents\":[{EVENT},{EVENT}"), true),
        (format!("\u{feff}[{EVENT} {EVENT}]"), false),
    ] {
        let trace = of(&text);
        assert_eq!((trace.slices.len(), trace.report.cut), (2, cut), "{text}");
        assert_eq!(of(gz(text.as_bytes())), trace, "{text}");
    }
    let trace = of(format!("[{EVENT},{{\"ph\":\"X\",\"name\":\"cut"));
    assert_eq!((trace.slices.len(), reasons(&trace)), (1, vec![("the last event is cut", 1)]));
}

#[test]
fn a_gzip_stream_that_breaks_off_keeps_what_stood_before() {
    let events: Vec<String> = (0..20_000)
        .map(|at| format!("{{\"ph\":\"X\",\"name\":\"n{}\",\"ts\":{at}.5,\"dur\":1}}", at * 7919 % 1000))
        .collect();
    let packed = gz(format!("[{}]", events.join(",")).as_bytes());
    let trace = of(&packed[..packed.len() / 2]);
    assert!(trace.report.cut && (1000..20_000).contains(&trace.slices.len()), "{:?}", trace.report);
    assert!(matches!(try_read(&gz(&gz(b"[]"))), Err(TraceError::NotATrace { .. })));
    let limits = Limits { bytes: 100_000, ..Limits::default() };
    assert_eq!(read(&packed[..], TimeUnit::default(), &limits), Err(TraceError::TooLarge { limit: 100_000 }));
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    for (bytes, told) in [
        (&b""[..], "empty"),
        (b"  \n", "empty"),
        (b"\x89PNG\r\n", "PNG"),
        (b"\x80\x04\x95", "pickle"),
        (b"hello, this is text", "a text file"),
        (b"SQLite format 3\0", "nsys2json"),
        (
            b"---------  ------------\n     Name    Self CPU %      Self CPU   CPU total %\n---------\n",
            "a table of key_averages().table()",
        ),
        (b"Start (ns),Duration (ns),CorrId,GrdX\n1,2,3,4\n", "a CSV table of nsys stats"),
        (b"\"Kind\",\"Agent_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n", "--output-format pftrace"),
        (b"\"Name\",\"Calls\",\"TotalDurationNs\"\n", "a CSV table of rocprof"),
        (b"\x0a\x20\x08\x01\x12\x09/host:CPU", "trace.json.gz"),
        (b"<!DOCTYPE html><title>Memory", "a web page"),
        (b"{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 7, \"nodes\": []}", "ExecutionTraceObserver"),
        (b"[[10, 1, 512, 0], [20, 2, 512, 0]]", "export_memory_timeline"),
        (b"{}", "no events"),
        (b"{\"a\": 1, \"b\": {\"c\": []}}", "the keys a, b"),
        (b"{\"traceEvents\": 5}", "no list"),
        (b"[]", "it has none"),
        (b"[1, [2], null]", "an event that is no object (3 times, first event 1)"),
        (b"[{\"a\" 5}]", "not readable as JSON: byte 6"),
    ] {
        let error = try_read(bytes).expect_err(told).to_string();
        assert!(error.contains(told), "{told}: {error}");
    }
    let deep = try_read("[".repeat(100_000).as_bytes()).expect_err("deep").to_string();
    assert!(deep.contains("nested more than 128 deep"), "{deep}");
}

#[test]
fn times_that_are_none_cost_their_event_only() {
    let event = |rest: &str| format!("{{\"ph\":\"X\",\"name\":\"a\",{rest}}}");
    let events = [
        event("\"ts\":1712195495519689.012,\"dur\":1"),
        event("\"ts\":-5,\"dur\":1"),
        event("\"ts\":1e30,\"dur\":1"),
        event("\"ts\":NaN,\"dur\":1"),
        event("\"ts\":null,\"dur\":1"),
        event("\"dur\":1"),
        event("\"ts\":10,\"dur\":-3"),
        event("\"ts\":20"),
        event("\"ts\":30.0001,\"dur\":1"),
        "{\"name\":\"no phase\",\"ts\":1}".to_owned(),
    ];
    let trace = of(format!("[{}]", events.join(",")));
    assert_eq!(
        slices(&trace).iter().map(|slice| (slice.1, slice.2)).collect::<Vec<_>>(),
        [(10_000, 0), (20_000, 0), (30_000, 1000), (1_712_195_495_519_689_012, 1000)]
    );
    assert_eq!(
        reasons(&trace),
        [
            ("a negative time", 1),
            ("a time that is not a number in range", 2),
            ("an event without a time", 2),
            ("a negative duration, read as none", 1),
            ("a slice without a duration", 1),
            ("a time below a nanosecond was rounded", 1),
            ("an event without a phase", 1),
        ]
    );
    assert_eq!((trace.report.skipped, trace.report.repaired), (6, 3));
}

#[test]
fn beginnings_and_ends_find_each_other() {
    let event = |phase: &str, name: &str, at: u64| format!("{{\"ph\":\"{phase}\",\"name\":\"{name}\",\"ts\":{at}}}");
    let events = [
        event("E", "stray", 0),
        event("B", "outer", 1),
        event("B", "inner", 2),
        event("E", "other", 3),
        event("B", "open", 4),
        event("X", "last", 9),
    ];
    let trace = of(format!("[{}]", events.join(",")));
    let seen: Vec<_> = slices(&trace).iter().map(|slice| (slice.3, slice.1, slice.2)).collect();
    assert_eq!(seen, [("outer", 1000, 8000), ("inner", 2000, 1000), ("open", 4000, 5000), ("last", 9000, 0)]);
    assert_eq!(
        reasons(&trace),
        [
            ("an end without a beginning", 1),
            ("an end with another name than the beginning", 1),
            ("a slice without a duration", 1),
            ("a beginning without an end, ended with the trace", 2),
        ]
    );
}

/// Times of start, step and ends of one arrow; the stray one has no start.
#[test]
fn arrows_go_from_the_last_start_before_their_end() {
    let event = |phase: &str, id: u32, at: u64| format!("{{\"ph\":\"{phase}\",\"id\":{id},\"tid\":1,\"ts\":{at}}}");
    let events = [
        "{\"ph\":\"X\",\"tid\":1,\"ts\":0,\"dur\":99}".to_owned(),
        event("f", 1, 9),
        event("s", 1, 2),
        event("t", 1, 5),
        event("f", 2, 9),
        event("s", 3, 9),
        event("f", 4, 3),
        event("s", 4, 4),
    ];
    let trace = of(format!("[{}]", events.join(",")));
    let seen: Vec<_> = trace.flows.iter().map(|flow| (flow.from_ns, flow.to_ns)).collect();
    assert_eq!(seen, [(5000, 9000), (2000, 5000), (4000, 3000)]);
    let told = trace.report.assumptions.join("; ");
    assert!(told.contains("1 ends of arrows") && told.contains("1 starts of arrows"), "{told}");
}

#[test]
fn threads_may_be_called_anything() {
    let event = |pid: &str| format!("{{\"ph\":\"X\",\"name\":\"a\",\"pid\":{pid},\"tid\":{pid},\"ts\":1,\"dur\":1}}");
    let ids = ["0", "\"0\"", "-1", "18446744073709551615", "{\"a\":[1]}", "\"Spans\"", "0"];
    let trace = of(format!("[{}]", ids.map(event).join(",")));
    let lanes: Vec<_> = trace.lanes.iter().map(|lane| lane.thread.as_str()).collect();
    assert_eq!(lanes, ["0", "0", "-1", "18446744073709551615", "(object)", "Spans"]);
    assert_eq!((trace.processes.len(), trace.slices.len()), (6, 7));
}

#[test]
fn overlapping_slices_get_lanes_and_identical_ones_stay() {
    let event =
        |at: u64, length: u64| format!("{{\"ph\":\"X\",\"name\":\"<img src=x>\",\"ts\":{at},\"dur\":{length}}}");
    let trace = of(format!("[{}]", [event(0, 10), event(5, 10), event(5, 10)].join(",")));
    assert_eq!(trace.slices.lane, [0, 1, 1]);
    assert_eq!((trace.lanes.len(), trace.report.overflowed), (2, 2));
    assert_eq!(trace.names, ["<img src=x>"]);
}

#[test]
fn names_are_repaired_and_bounded() {
    let trace = of("[{\"ph\":\"X\",\"name\":\"a\u{1}b\\ud800\",\"ts\":1,\"dur\":1}]");
    assert_eq!((trace.names[0].as_str(), trace.report.repaired), ("a b\u{fffd}", 1));
    let limits = Limits { name_bytes: 10, names_bytes: 25, events: 4, threads: 2, ..Limits::default() };
    let events: Vec<String> = (0..9)
        .map(|at| format!("{{\"ph\":\"X\",\"name\":\"{at}{}\",\"tid\":{},\"ts\":1,\"dur\":1}}", "x".repeat(50), at / 4))
        .collect();
    let trace = read(format!("[{}]", events.join(",")).as_bytes(), TimeUnit::default(), &limits).expect("a trace");
    assert_eq!(trace.names, ["0xxxxxxxxx", "1xxxxxxxxx", "(other)"]);
    assert_eq!((trace.slices.len(), trace.report.skipped), (4, 5));
}

#[test]
fn simulators_may_use_other_units() {
    let text = br#"[{"ph":"X","cat":"computation","name":"0F0","pid":1,"tid":1,"ts":2,"dur":1.5}]"#;
    let trace = read(&text[..], TimeUnit::Milliseconds, &Limits::default()).expect("a trace");
    assert_eq!(slices(&trace), [(0, 2_000_000, 1_500_000, "0F0", Kind::Compute)]);
    assert_eq!((trace.actions.len(), trace.totals[0].busy_ns), (1, 1_500_000));
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal")).collect()
}

/// The track "rank 0" and its slice 0F0 from 1000 to 2000 ns.
#[test]
fn perfetto() {
    let bytes =
        hex("0a0fe2030a0801120672616e6b203050010a1140e8075a0a48015801ba010330463050010a0b40d00f5a04480258015001");
    let trace = of(&bytes);
    assert_eq!(slices(&trace), [(0, 1000, 1000, "0F0", Kind::Other)]);
    assert_eq!((trace.format, trace.lanes[0].name.as_deref()), (Format::Perfetto, Some("rank 0")));
    assert_eq!((trace.processes[0].rank, trace.actions.len(), trace.report.cut), (Some(0), 1, false));
    assert_eq!(of(gz(&bytes)), trace);
    for cut in 18..bytes.len() {
        match try_read(&bytes[..cut]) {
            Ok(trace) => assert!(cut == 36 || trace.report.cut, "{cut}"),
            Err(TraceError::NoEvents { .. }) => assert!(cut < 36, "{cut}"),
            Err(error) => panic!("{cut}: {error}"),
        }
    }
}

/// A field of bytes.
fn bytes_field(number: u32, bytes: &[u8]) -> Vec<u8> {
    [varint((u64::from(number) << 3) | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A field of a whole number.
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

/// A packet of a sequence.
fn packet(sequence: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes_field(1, &[number_field(10, sequence), fields.concat()].concat())
}

/// An event of a type with a name by its number, as the SDK writes it.
fn interned(kind: u64, name: Option<u64>) -> Vec<u8> {
    bytes_field(11, &[number_field(9, kind), name.map_or_else(Vec::new, |name| number_field(10, name))].concat())
}

fn entry(number: u32, id: u64, name: &str) -> Vec<u8> {
    bytes_field(number, &[number_field(1, id), bytes_field(2, name.as_bytes())].concat())
}

/// Two sequences number their names from 1. The second clears its state and defines 1 again; then 2 is undefined. Its
/// clock counts microseconds from the packet before, from 5 microseconds of the shared clock on.
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
    let mut own_category = number_field(3, 7);
    own_category.extend([number_field(9, 1), number_field(10, 1)].concat());
    let bytes = [
        packet(1, &[track(11, "rank 0"), cleared()]),
        packet(1, &[defaults(11, None), names(&[entry(2, 1, "gemm"), entry(1, 7, "kernel")])]),
        packet(1, &[time(1000), bytes_field(11, &own_category)]),
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
    let trace = of(&bytes);
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

/// A thread of a process, by their descriptors, and a whole slice as Chrome writes it: 3 microseconds from 10.
#[test]
fn perfetto_threads_and_whole_slices() {
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
    let trace = of(&bytes);
    assert_eq!(slices(&trace), [(0, 10_000, 3000, "step", Kind::Other)]);
    assert_eq!((trace.processes[0].name.as_deref(), trace.lanes[0].name.as_deref()), (Some("trainer"), Some("worker")));
}

/// Two ranks of `Schedule1F1B`: the stage is the place in the pipeline group, or the rank where there is one group of all; else the
/// actions wait for a stage.
#[test]
fn actions_without_a_stage_take_that_of_their_rank() {
    let trace = |job: &str| {
        of(format!(
            r#"{{{job}"traceEvents":[
            {{"ph":"X","cat":"user_annotation","name":"Forward 0","pid":1,"tid":1,"ts":0,"dur":5}},
            {{"ph":"X","cat":"user_annotation","name":"Backward 0","pid":1,"tid":1,"ts":5,"dur":9}},
            {{"ph":"X","cat":"cpu_op","name":"Forward 1","pid":1,"tid":1,"ts":20,"dur":1}}]}}"#
        ))
    };
    let forward = |stage| Action { stage, kind: ActionKind::Forward, microbatch: Some(0) };
    let backward = |stage| Action { stage, kind: ActionKind::Backward, microbatch: Some(0) };
    for (job, stage) in [
        (r#""distributedInfo":{"rank":1,"world_size":2,"pg_config":[{"pg_name":"0","pg_size":2,"ranks":[0,1]}]},"#, 1),
        (r#""distributedInfo":{"rank":1,"world_size":2},"#, 1),
        (
            r#""distributedInfo":{"rank":6,"world_size":8,"pg_config":[{"pg_name":"0","pg_size":8},
            {"pg_name":"3","pg_desc":"mesh_pp","pg_size":4,"ranks":[0,2,4,6]}]},"#,
            3,
        ),
    ] {
        let trace = trace(job);
        let found: Vec<_> = trace.actions.iter().map(|located| located.value).collect();
        assert_eq!(found, [forward(stage), backward(stage)], "{job}");
        assert!(
            trace.unplaced.is_empty() && trace.report.assumptions[1].contains("name no stage"),
            "{:?}",
            trace.report
        );
    }
    for job in
        ["", r#""distributedInfo":{"rank":1,"world_size":8,"pg_config":[{"pg_name":"2","pg_desc":"tp","pg_size":2}]},"#]
    {
        let mut trace = trace(job);
        assert_eq!((trace.actions.len(), trace.unplaced.len()), (0, 2), "{job}");
        assert!(trace.report.assumptions[1].starts_with("2 actions (Forward 0, Backward 0) name no stage"));
        trace.place_actions(7);
        let found: Vec<_> = trace.actions.iter().map(|located| located.value).collect();
        assert_eq!((found, trace.unplaced.len()), (vec![forward(7), backward(7)], 0));
        assert_eq!(trace.report.assumptions.len(), 1);
    }
}

/// A message with its length.
fn message(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

/// A node: its number, the numbers before it, its type, microseconds.
fn node(id: u8, before: &[u8], kind: u8, micros: u8) -> Vec<u8> {
    let name = [&[0x12, 2, b'n'], &[b'0' + id % 10][..]].concat();
    message(&[&[0x08, id], &name[..], &[0x18, kind, 0x22, before.len() as u8], before, &[0x38, micros]].concat())
}

/// The same with data dependencies in place of control dependencies.
fn data_node(id: u8, before: &[u8], kind: u8, micros: u8) -> Vec<u8> {
    let mut bytes = node(id, before, kind, micros);
    let at = bytes.iter().position(|&byte| byte == 0x22).expect("a list");
    bytes[at] = 0x2a;
    bytes
}

fn metadata() -> Vec<u8> {
    message(b"\x12\x10\x0a\x06schema\xea\x01\x051.0.1")
}

/// Node 2 waits for 1, node 3 for both and one that is not there: 0-5, 5-8, 8-9 microseconds.
#[test]
fn chakra() {
    let bytes =
        [metadata(), node(1, &[], 4, 5), node(2, &[1], 7, 3), vec![0], node(3, &[1, 2, 9], 4, 1), node(3, &[], 4, 1)]
            .concat();
    let trace = of(&bytes);
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
    let trace = of(json);
    assert_eq!(slices(&trace), [(0, 0, 5000, "n1", Kind::Cpu), (1, 5000, 3000, "n2", Kind::Communication)]);
    assert_eq!((trace.format, trace.report.cut), (Format::Chakra, false));
}

/// Node 1 waits for itself, 2 and 3 for each other, all by control dependencies; 3 needs the data of 2 and 4 that of 3, also as a
/// control dependency: 0-5, 0-3, 3-4, 4-6 microseconds, with the three dependencies on cycles ignored.
#[test]
fn chakra_cycles_of_control_dependencies_are_ignored() {
    let json = r#"{"workload_graph":[{"id":1,"name":"n1","type":4,"ctrl_deps":[1],"runtime":5},
        {"id":2,"name":"n2","type":4,"ctrl_deps":[3],"runtime":3},
        {"id":3,"name":"n3","type":4,"ctrl_deps":[2],"data_deps":[2],"runtime":1},
        {"id":4,"name":"n4","type":7,"ctrl_deps":[3],"data_deps":[3],"runtime":2}]}"#;
    let trace = of(json);
    let mut times: Vec<_> =
        slices(&trace).into_iter().map(|(_, start, length, name, _)| (name, start, length)).collect();
    times.sort_unstable();
    assert_eq!(times, [("n1", 0, 5000), ("n2", 0, 3000), ("n3", 3000, 1000), ("n4", 4000, 2000)]);
    assert_eq!(
        trace.report.assumptions[0],
        "3 control dependencies lie on cycles and are ignored; data dependencies decide the order there"
    );
    let binary = of([metadata(), node(1, &[1], 4, 5)].concat());
    assert_eq!(slices(&binary), [(0, 0, 5000, "n1", Kind::Compute)]);
}

#[test]
fn chakra_errors_have_a_place() {
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
    let cut = of([metadata(), node(1, &[], 4, 5), vec![50, 8]].concat());
    assert!(cut.report.cut && cut.slices.len() == 1);
    let huge = [metadata(), hex("ffffffff0f")].concat();
    assert!(matches!(try_read(&huge), Err(TraceError::Message { .. })));
}

/// Three nodes of 292 years in a row, and one that is said to start in 584 years (18,446,744,073,709,551 microseconds).
#[test]
fn chakra_ends_before_64_bits_do() {
    let row =
        [1, 2, 3].map(|id| format!("{{\"id\":{id},\"ctrl_deps\":[{}],\"runtime\":9223372036854775.807}}", id - 1));
    let json = format!("{{\"workload_graph\":[{}]}}", row.join(","));
    let late = [&b"\x08\x01\x12\x01a\x18\x04\x30"[..], &hex("efcf9adef4a6e22038e807")].concat();
    let binary = [metadata(), message(&late)].concat();
    for trace in [of(json), of(binary)] {
        let Slices { start_ns, duration_ns, .. } = &trace.slices;
        let ends = start_ns.iter().zip(duration_ns).map(|(start, duration)| start.checked_add(*duration));
        assert!(
            ends.flatten().count() == trace.slices.len() && start_ns.iter().all(|&start| i64::try_from(start).is_ok())
        );
    }
}

/// Documents that look like traces.
fn documents() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        EVENT,
        ",",
        "[",
        "]",
        "{",
        "}",
        "{\"traceEvents\":[",
        "{\"ph\":\"B\",\"ts\":1,\"name\":\"b\"}",
        "{\"ph\":\"E\",\"ts\":3}",
        "{\"ph\":\"s\",\"id\":1,\"ts\":3}",
        "{\"ph\":\"t\",\"id\":1,\"ts\":1.7}",
        "{\"ph\":\"f\",\"id\":1,\"ts\":9}",
        "{\"ph\":\"C\",\"ts\":1,\"args\":{\"a\":1,\"b\":[2]}}",
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":\"x\"}}",
        "\"ph\":",
        "\"X\"",
        "NaN",
        "{\"args\":{\"bytes\":3},\"cat\":\"gpu_memcpy\",\"ph\":\"X\",\"ts\":9223372036854775,\"dur\":9223372036854775}",
        "{\"workload_graph\":[{\"id\":1,\"runtime\":3},{\"id\":2,\"ctrl_deps\":[1]}",
    ]);
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_document_is_read_or_refused(text in documents()) {
        if let Ok(trace) = try_read(text.as_bytes()) {
            let Slices { lane, start_ns, duration_ns, name, kind, depth } = &trace.slices;
            let lengths = [lane.len(), start_ns.len(), duration_ns.len(), name.len(), kind.len(), depth.len()];
            prop_assert_eq!(lengths, [trace.slices.len(); 6]);
            prop_assert!(lane.iter().all(|&lane| (lane as usize) < trace.lanes.len()));
            prop_assert!(trace.flows.iter().all(|flow| flow.from_lane.max(flow.to_lane) < trace.lanes.len() as u32));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = try_read(&bytes);
        let _ = try_read(&[&b"\x0a\x04\x40\x01\x50\x01"[..], &bytes].concat());
        let _ = try_read(&[&metadata()[..], &bytes].concat());
    }
}
