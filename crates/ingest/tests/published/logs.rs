//! Tests with published logs in the folder `PLANSCOPE_DATA`.

use std::path::PathBuf;

use ingest::log::{Limits, Log, LogParser, Point, Source, import};

/// Returns a published file, or `None` if the folder is not available.
fn published(path: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so {path} is not read");
        return None;
    };
    let path = PathBuf::from(folder).join("data").join(path);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn log(path: &str) -> Option<Log> {
    Some(import(&published(path)?, &Limits::default()).unwrap_or_else(|error| panic!("{path}: {error}")))
}

const LOGS: [(&str, usize); 4] = [
    ("logs/meg_ds_3d_gpt2_perf_n16-ds-on.out", 49),
    ("logs/meg_gpt2_base_n16_dp1_tp4_pp16-1809577.out", 9),
    ("logs/meg_gpt2_base_n4_dp1_tp4_pp4-1809579.out", 20),
    ("logs/meg_gpt2_perf_n16.out", 3),
];

/// The point count equals the number of lines that start with " iteration" (`grep -c '^
/// iteration'`).
#[test]
fn every_step_is_a_point() {
    for (path, steps) in LOGS {
        let Some(Log { points, report, .. }) = log(path) else { return };
        assert_eq!(points.iter().filter(|point| point.source == Source::Megatron).count(), steps, "{path}: {report:?}");
        assert_eq!(report.lines, report.steps + report.companions + report.ignored + report.skipped + report.torn);
        assert_eq!((report.torn, report.skipped), (0, 0), "{path}: {report:?}");
    }
}

/// 64 ranks print memory after the first iteration, with one or two messages per line.
#[test]
fn memory_is_found_for_every_rank() {
    let Some(Log { points, .. }) = log(LOGS[0].0) else { return };
    let first = points.iter().find(|point| point.step == 1).expect("iteration 1");
    let mut ranks: Vec<_> = first.memory.iter().filter_map(|memory| memory.rank).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, (0..64).collect::<Vec<_>>());
    assert_eq!((first.loss, first.step_time_s, first.global_batch), (Some(12.44238), Some(159.7789), Some(1024)));
}

#[test]
fn timers_are_found_for_every_step() {
    let Some(Log { points, setup, .. }) = log(LOGS[3].0) else { return };
    assert_eq!(setup.len(), 3);
    for point in &points {
        assert_eq!(point.timers.len(), 11, "{point:?}");
    }
    let forward = &points[0].timers[0];
    assert_eq!((forward.name.as_str(), forward.time_s), ("forward-compute", Some(32.05416)));
}

/// Splits the step section of a real log at every position, and parses the log byte by byte.
#[test]
fn a_log_may_be_cut_anywhere() {
    let Some(bytes) = published(LOGS[3].0) else { return };
    let rest = |mut parser: LogParser, mut points: Vec<Point>, bytes: &[u8]| {
        points.extend(parser.push(bytes));
        points.extend(parser.finish().0);
        points
    };
    let expected = rest(LogParser::new(), Vec::new(), &bytes);
    let mut parser = LogParser::new();
    let mut points = Vec::new();
    for cut in 0..bytes.len() {
        if bytes.len() - cut < 6000 {
            assert_eq!(rest(parser.clone(), points.clone(), &bytes[cut..]), expected, "{cut}");
        }
        points.extend(parser.push(&bytes[cut..=cut]));
    }
    assert_eq!(rest(parser, points, &[]), expected);
}
