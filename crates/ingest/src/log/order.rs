//! Restores row order in files with the newest step first and in unordered tables.

use std::collections::BTreeSet;

use super::point::Source;
use super::steps::{EARLIER, MIXED};
use super::{Limits, Log, rows};

/// Sorts points by step if the file has a different order, and reports it.
pub(super) fn restore(log: &mut Log, limits: &Limits) {
    let note = if is_newest_first(log) {
        log.points.reverse();
        "the newest step stands first: the log is read from its end"
    } else if is_unordered(log) {
        log.points.sort_by_key(|point| point.step);
        "the rows are not in the order of their steps, and no step is repeated: they are sorted by step, as rows of one run"
    } else {
        return;
    };
    for point in &mut log.points {
        point.segment = 0;
    }
    log.report.restarts = 0;
    log.report
        .assumptions
        .retain(|note| note != MIXED && note != EARLIER && !note.starts_with("no step time is read or derived"));
    log.report.assume(note);
    rows::complete(&mut log.points, &mut log.report, limits);
}

/// True if each step is lower than the previous one and no timestamp contradicts this.
fn is_newest_first(log: &Log) -> bool {
    let pairs = || log.points.iter().zip(log.points.iter().skip(1));
    let goes_back = pairs().all(|(above, below)| below.step < above.step);
    let times = || pairs().filter_map(|(above, below)| above.time_us.zip(below.time_us));
    // Two consecutive restarts are not sufficient evidence.
    let min_points = if times().next().is_some() { 3 } else { 4 };
    log.points.len() >= min_points
        && log.report.restarts as usize == log.points.len() - 1
        && goes_back
        && times().all(|(above, below)| below <= above)
}

/// True if rows of a table or JSON lines alternate in step order without repeating a step, in
/// contrast to a restarted run. Timestamps must increase with the steps. Without timestamps the
/// steps must decrease more than once.
fn is_unordered(log: &Log) -> bool {
    let is_row = |source| matches!(source, Source::StepCsv | Source::JsonLines);
    let segments = log.points.last().map_or(0, |point| point.segment);
    // Segments without restarts are runs.
    if log.report.restarts == 0
        || segments != log.report.restarts
        || log.points.iter().any(|point| !is_row(point.source))
    {
        return false;
    }
    let steps: BTreeSet<u64> = log.points.iter().map(|point| point.step).collect();
    let mut times: Vec<(u64, i64)> = log.points.iter().filter_map(|point| Some((point.step, point.time_us?))).collect();
    times.sort_unstable();
    let rises = times.is_sorted_by_key(|(_, time)| *time);
    let is_confirmed =
        if times.len() == log.points.len() { rises } else { times.is_empty() && log.report.restarts > 1 };
    steps.len() == log.points.len() && is_confirmed
}
