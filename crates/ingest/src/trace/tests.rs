//! Tests with profiler traces and with malformed traces.

mod chakra;
mod nsys;
mod perfetto;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn try_read(bytes: &[u8]) -> Result<Trace, TraceError> {
    read(bytes, TimeUnit::default(), &Limits::default())
}

fn read_trace(bytes: impl AsRef<[u8]>) -> Trace {
    let bytes = bytes.as_ref();
    try_read(bytes).unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(bytes)))
}

/// Lane, start, duration, name and kind per slice.
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

/// Computed by hand: compute 6165-6175 us, communication 6160-6170, copy 6161.2-6162.48; no idle
/// time.
#[test]
fn kineto() {
    let trace = read_trace(KINETO);
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
    assert_eq!(names, [Some("python3.10"), Some("GPU 0, X")]);
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
        let trace = read_trace(&text);
        assert_eq!((trace.slices.len(), trace.report.cut), (2, cut), "{text}");
        assert_eq!(read_trace(gz(text.as_bytes())), trace, "{text}");
    }
    let trace = read_trace(format!("[{EVENT},{{\"ph\":\"X\",\"name\":\"cut"));
    assert_eq!((trace.slices.len(), reasons(&trace)), (1, vec![("the last event is cut", 1)]));
}

#[test]
fn truncated_gzip_stream_retains_its_start() {
    let events: Vec<String> = (0..20_000)
        .map(|at| format!("{{\"ph\":\"X\",\"name\":\"n{}\",\"ts\":{at}.5,\"dur\":1}}", at * 7919 % 1000))
        .collect();
    let packed = gz(format!("[{}]", events.join(",")).as_bytes());
    let trace = read_trace(&packed[..packed.len() / 2]);
    assert!(trace.report.cut && (1000..20_000).contains(&trace.slices.len()), "{:?}", trace.report);
    assert!(matches!(try_read(&gz(&gz(b"[]"))), Err(TraceError::NotATrace { .. })));
    let limits = Limits { bytes: 100_000, ..Limits::default() };
    assert_eq!(read(&packed[..], TimeUnit::default(), &limits), Err(TraceError::TooLarge { limit: 100_000 }));
}

#[test]
fn non_traces_are_rejected_by_name() {
    for (bytes, message) in [
        (&b""[..], "empty"),
        (b"  \n", "empty"),
        (b"\x89PNG\r\n", "PNG"),
        (b"\x80\x04\x95", "pickle"),
        (b"hello, this is text", "a text file"),
        (b"SQLite format 3\0", "fewer than 100 bytes"),
        (b"\x89HDF\r\n", "nsys export --type sqlite"),
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
        let error = try_read(bytes).expect_err(message).to_string();
        assert!(error.contains(message), "{message}: {error}");
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
    let trace = read_trace(format!("[{}]", events.join(",")));
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

/// `cat` of two traces has a second document. It is not read.
#[test]
fn text_after_a_trace_is_reported() {
    let one = r#"{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}]}"#;
    assert_eq!(reasons(&read_trace(format!("{one}\n"))), []);
    let both = read_trace(format!("{one}\n{one}"));
    assert_eq!(slices(&both).len(), 1);
    assert!(reasons(&both)[0].0.starts_with("text after the end of the trace"), "{:?}", reasons(&both));
}

/// Launches take 5 µs. A file in ns has 5000, one in ms 0.005.
#[test]
fn launches_show_a_wrong_unit() {
    let problems = |duration: &str| {
        let launch = |at: u32| {
            format!(r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{at}0000,"dur":{duration}}}"#)
        };
        let trace = read_trace(format!("[{}]", (0..12).map(launch).collect::<Vec<_>>().join(",")));
        trace.report.problems.first().map(|problem| problem.reason.clone()).unwrap_or_default()
    };
    assert_eq!(problems("5"), "");
    assert!(problems("5000").contains("--unit ns") && problems("0.005").contains("--unit ms"));
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
    let trace = read_trace(format!("[{}]", events.join(",")));
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

/// Start, step and end times for one flow. The stray end has no start.
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
    let trace = read_trace(format!("[{}]", events.join(",")));
    let seen: Vec<_> = trace.flows.iter().map(|flow| (flow.from_ns, flow.to_ns)).collect();
    assert_eq!(seen, [(5000, 9000), (2000, 5000), (4000, 3000)]);
    let assumptions = trace.report.assumptions.join("; ");
    assert!(assumptions.contains("1 ends of arrows") && assumptions.contains("1 starts of arrows"), "{assumptions}");
}

#[test]
fn threads_may_be_called_anything() {
    let event = |pid: &str| format!("{{\"ph\":\"X\",\"name\":\"a\",\"pid\":{pid},\"tid\":{pid},\"ts\":1,\"dur\":1}}");
    let ids = ["0", "\"0\"", "-1", "18446744073709551615", "{\"a\":[1]}", "\"Spans\"", "0"];
    let trace = read_trace(format!("[{}]", ids.map(event).join(",")));
    let lanes: Vec<_> = trace.lanes.iter().map(|lane| lane.thread.as_str()).collect();
    assert_eq!(lanes, ["0", "0", "-1", "18446744073709551615", "(object)", "Spans"]);
    assert_eq!((trace.processes.len(), trace.slices.len()), (6, 7));
}

#[test]
fn overlapping_slices_get_lanes_and_identical_ones_stay() {
    let event =
        |at: u64, length: u64| format!("{{\"ph\":\"X\",\"name\":\"<img src=x>\",\"ts\":{at},\"dur\":{length}}}");
    let trace = read_trace(format!("[{}]", [event(0, 10), event(5, 10), event(5, 10)].join(",")));
    assert_eq!(trace.slices.lane, [0, 1, 1]);
    assert_eq!((trace.lanes.len(), trace.report.overflowed), (2, 2));
    assert_eq!(trace.names, ["<img src=x>"]);
}

#[test]
fn names_are_repaired_and_bounded() {
    let trace = read_trace("[{\"ph\":\"X\",\"name\":\"a\u{1}b\\ud800\",\"ts\":1,\"dur\":1}]");
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

/// Two `Schedule1F1B` ranks: the stage is the position in the pipeline group, or the rank if one
/// group contains all ranks. Otherwise the actions have no stage.
#[test]
fn actions_without_a_stage_use_that_for_their_rank() {
    let trace = |job: &str| {
        read_trace(format!(
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
    for job in [
        "",
        r#""distributedInfo":{"rank":1,"world_size":8,"pg_config":[{"pg_name":"2","pg_desc":"tp","pg_size":2}]},"#,
        r#""distributedInfo":{"rank":1,"world_size":4,"pg_config":[{"pg_name":"2","ranks":[0,1]}]},"#,
    ] {
        let mut trace = trace(job);
        assert_eq!((trace.actions.len(), trace.unplaced.len()), (0, 2), "{job}");
        assert!(trace.report.assumptions[1].starts_with("2 actions (Forward 0, Backward 0) name no stage"));
        trace.set_missing_stages(7);
        let found: Vec<_> = trace.actions.iter().map(|located| located.value).collect();
        assert_eq!((found, trace.unplaced.len()), (vec![forward(7), backward(7)], 0));
        assert_eq!(trace.report.assumptions.len(), 1);
    }
}

/// Generates documents that resemble traces.
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
    fn any_document_is_read_or_rejected(text in documents()) {
        if let Ok(trace) = try_read(text.as_bytes()) {
            let Slices { lane, start_ns, duration_ns, name, kind, depth } = &trace.slices;
            let lengths = [lane.len(), start_ns.len(), duration_ns.len(), name.len(), kind.len(), depth.len()];
            prop_assert_eq!(lengths, [trace.slices.len(); 6]);
            prop_assert!(lane.iter().all(|&lane| (lane as usize) < trace.lanes.len()));
            prop_assert!(trace.flows.iter().all(|flow| flow.from_lane.max(flow.to_lane) < trace.lanes.len() as u32));
        }
    }

    #[test]
    fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = try_read(&bytes);
        let _ = try_read(&[&b"\x0a\x04\x40\x01\x50\x01"[..], &bytes].concat());
        let _ = try_read(&[&chakra::metadata()[..], &bytes].concat());
    }
}
