//! Tests with published traces in the folder `PLANSCOPE_DATA`.

use std::path::PathBuf;

use ingest::trace::{Format, Kind, Limits, TimeUnit, Trace, read};

/// Returns a published file, or `None` if the folder is not available.
fn published(path: &str) -> Option<Trace> {
    let Some(folder) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so {path} is not read");
        return None;
    };
    let path = PathBuf::from(folder).join("data/traces").join(path);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let trace = read(file, TimeUnit::default(), &Limits::default());
    Some(trace.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Counts of events, slices, complete flows and kernels, computed with Python's json.
#[test]
fn every_event_is_read() {
    for (path, events, slices, kernels, rank) in [
        ("benchmark_result_2869224_1695835535_trace.json.gz", 1408, 868, 79, Some(0)),
        ("mi250_minitoy_train_ROCm6_2_kineto.json.gz", 220, 113, 14, None),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 68_692, 45_420, 4350, Some(0)),
        ("sampled_rank-0.json.gz", 4855, 4811, 1154, Some(0)),
    ] {
        let Some(trace) = published(path) else { return };
        assert_eq!(trace.format, Format::Chrome);
        assert_eq!((trace.report.events, trace.slices.len()), (events, slices), "{path}: {:?}", trace.report);
        let found = trace.slices.kind.iter().filter(|kind| matches!(kind, Kind::Compute | Kind::Communication)).count();
        assert_eq!(found, kernels, "{path}");
        assert_eq!(trace.distributed.and_then(|job| job.rank), rank, "{path}");
        assert_eq!(trace.report.events, trace.report.used + trace.report.skipped, "{path}: {:?}", trace.report);
        assert!(!trace.report.cut);
        for total in &trace.totals {
            assert_eq!(total.span_ns, total.busy_ns + total.idle_ns);
            assert!(total.overlapped_ns <= total.compute_ns.min(total.communication_ns));
        }
    }
}

/// The first file has a job with one rank, the second contains steps 551 and 552.
#[test]
fn steps_and_groups_are_found() {
    let Some(trace) = published("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz") else { return };
    let job = trace.distributed.expect("a job");
    assert_eq!((job.world_size, job.groups.len(), job.groups[0].ranks.as_slice()), (Some(1), 1, &[0][..]));
    let Some(trace) = published("sampled_rank-0.json.gz") else { return };
    let mut numbers: Vec<u64> = trace.steps.iter().map(|step| step.number).collect();
    numbers.dedup();
    assert_eq!(numbers, [551, 552]);
}

/// Interval unions computed by a short Python script with decimal times.
#[test]
fn totals_match_another_program() {
    for (path, [span, compute, communication, overlapped, copy, active]) in [
        (
            "benchmark_result_2869224_1695835535_trace.json.gz",
            [12_920_244_000, 10_630_000, 0, 0, 55_511_000, 66_141_000],
        ),
        ("mi250_minitoy_train_ROCm6_2_kineto.json.gz", [8_911_887, 110_881, 0, 0, 38_161, 149_042]),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", [480_029_179, 468_153_602, 0, 0, 4_300_839, 472_454_441]),
        ("sampled_rank-0.json.gz", [1_222_847_000, 210_320_000, 396_199_000, 59_216_000, 1_325_000, 547_656_000]),
    ] {
        let Some(trace) = published(path) else { return };
        let [total] = trace.totals[..] else { panic!("{path}: {:?}", trace.totals) };
        let found = [
            total.span_ns,
            total.compute_ns,
            total.communication_ns,
            total.overlapped_ns,
            total.copy_ns,
            total.busy_ns,
        ];
        assert_eq!(found, [span, compute, communication, overlapped, copy, active], "{path}");
    }
}
