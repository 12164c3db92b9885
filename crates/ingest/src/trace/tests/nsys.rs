//! SQLite exports of Nsight Systems. The seed has the columns of a real export, pages of 512 bytes,
//! and two iterations of 100 us.

use super::*;
use planner::trace_comparison::Phase;

const EXPORT: &[u8] = include_bytes!("../../../../../fuzz/seeds/trace/38");

/// Replaces texts by others of equal length.
fn renamed(names: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = EXPORT.to_vec();
    for (from, to) in names {
        assert_eq!(from.len(), to.len());
        for at in 0..bytes.len() - from.len() {
            if &bytes[at..at + from.len()] == from.as_bytes() {
                bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            }
        }
    }
    bytes
}

#[test]
fn an_export_becomes_lanes() {
    let trace = read_trace(EXPORT);
    assert_eq!((trace.format, trace.base_ns), (Format::Nsight, Some(1_735_632_360_000_000_000)));
    let lanes: Vec<_> =
        trace.lanes.iter().map(|lane| (lane.process, lane.thread.as_str(), lane.name.as_deref())).collect();
    assert_eq!(
        lanes,
        [
            (0, "7", Some("stream 7")),
            (0, "20", Some("stream 20")),
            (0, "13", Some("stream 13")),
            (1, "4243", Some("pt_main_thread")),
        ]
    );
    let [device, host] = &trace.processes[..] else { panic!("{:?}", trace.processes) };
    // The process sees the GPU 1 as its device 0.
    assert_eq!((device.id.as_str(), device.labels.as_deref()), ("0", Some("NVIDIA H100 80GB HBM3")));
    assert_eq!((device.name.as_deref(), device.rank), (Some("process 4242, GPU"), Some(3)));
    assert_eq!((host.id.as_str(), host.name.as_deref()), ("4242", Some("/usr/bin/python3")));
    let found = slices(&trace);
    // The name of the first kernel is longer than a page.
    assert!(
        found[0].3.starts_with("void cutlass::Kernel2<")
            && found[0].3.len() > 1200
            && found[0].3.ends_with(">(Params)")
    );
    assert_eq!((found[0].1, found[0].2, found[0].4), (1_010_000, 30_000, Kind::Compute));
    assert_eq!(found[1], (0, 1_040_000, 40_000, "sm80_gemm_bf16", Kind::Compute));
    assert_eq!(found[2], (0, 1_085_000, 1000, "Memset", Kind::Memset));
    assert!(found.contains(&(1, 1_060_000, 25_000, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", Kind::Communication)));
    assert!(found.contains(&(2, 1_002_000, 1000, "Memcpy HtoD", Kind::Memcpy)));
    assert!(found.contains(&(3, 1_005_000, 500, "cudaLaunchKernel_v7000", Kind::Runtime)));
    assert!(found.contains(&(3, 1_021_000, 19_000, "backward", Kind::Annotation)));
    assert_eq!(trace.transfers.iter().map(|transfer| transfer.bytes).collect::<Vec<_>>(), [2048, 2048, 4096, 4096]);
    assert_eq!(
        trace.steps.iter().map(|step| (step.number, step.on_device)).collect::<Vec<_>>(),
        [(0, false), (1, false)]
    );
    assert_eq!(trace.flows.len(), 12);
    assert!(trace.flows.contains(&Flow { from_lane: 3, from_ns: 1_025_000, to_lane: 1, to_ns: 1_060_000 }));
    let [total] = trace.totals[..] else { panic!("{:?}", trace.totals) };
    assert_eq!((total.span_ns, total.compute_ns, total.communication_ns), (193_000, 158_000, 50_000));
    assert_eq!((total.overlapped_ns, total.copy_ns, total.idle_ns), (40_000, 4000, 21_000));
    let Report { events, used, skipped, cut, phases, .. } = &trace.report;
    assert_eq!((*events, *used, *skipped, *cut, phases["kernel"], phases["nvtx"]), (33, 32, 1, false, 8, 9));
    assert_eq!(read_trace(gz(EXPORT)), trace);
}

#[test]
fn kernels_have_phases_and_steps() {
    use Phase::{Backward, Forward, Optimizer};
    let [device] = &recorded(&read_trace(EXPORT), "report.sqlite", Some(2))[..] else { panic!("one device") };
    assert_eq!((device.rank, device.steps.len(), device.calls.len()), (2, 2, 2));
    assert_eq!((device.calls[0].operation.as_str(), device.calls[0].waits_for_all), ("allreduce", true));
    let found: Vec<_> = device.slices.iter().map(|slice| (slice.step, slice.phase)).collect();
    let phases = [Forward, Forward, Backward, Backward, Optimizer, Optimizer].map(Some);
    let expected: Vec<_> = [0, 1].iter().flat_map(|&step| phases.map(|phase| (Some(step), phase))).collect();
    assert_eq!(found, expected);
}

#[test]
fn other_files_are_refused_by_name() {
    let other = renamed(&[("CUPTI_ACTIVITY_KIND_", "XUPTI_ACTIVITY_KIND_"), ("NVTX_EVENTS", "NVTX_EVENTX")]);
    let error = try_read(&other).expect_err("no slices").to_string();
    assert!(error.contains("all tables CUPTI_ACTIVITY_KIND_KERNEL, ") && error.contains("ThreadNames"), "{error}");
    for (from, to, message) in [
        ("StringIds", "StringXds", "the table StringIds"),
        ("streamId", "streamXd", "the columns streamId in the table CUPTI_ACTIVITY_KIND_KERNEL"),
        ("utcEpochNs", "utcEpochXs", "utcEpochNs"),
    ] {
        let error = try_read(&renamed(&[(from, to)])).expect_err(from).to_string();
        assert!(error.contains(message), "{error}");
    }
    let mut utf16 = EXPORT.to_vec();
    utf16[59] = 2;
    assert!(try_read(&utf16).expect_err("UTF-16").to_string().contains("UTF-16"));
    let limits = Limits { sqlite_bytes: 1000, ..Limits::default() };
    assert_eq!(read(EXPORT, TimeUnit::default(), &limits), Err(TraceError::TooLarge { limit: 1000 }));
}

#[test]
fn an_export_without_kernels_says_so() {
    let trace = read_trace(renamed(&[("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEX")]));
    assert!(trace.report.assumptions.iter().any(|line| line.contains("no kernel was recorded")));
    assert_eq!(trace.slices.len(), 24);
}

#[test]
fn cut_exports_are_read_as_far_as_possible() {
    let mut counts = std::collections::BTreeSet::new();
    for pages in 1..EXPORT.len() / 512 {
        match try_read(&EXPORT[..pages * 512]) {
            Ok(trace) => {
                assert!(trace.report.cut);
                counts.insert(trace.slices.len());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(counts.len() > 3 && counts.last() == Some(&32), "{counts:?}");
}

proptest! {
    /// Damaged bytes are an error or other content, never a panic or an endless loop.
    #[test]
    fn damaged_exports_do_not_panic(damage in prop::collection::vec((0_usize..EXPORT.len(), any::<u8>()), 1..12)) {
        let mut bytes = EXPORT.to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        if let Err(error) = try_read(&bytes) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
