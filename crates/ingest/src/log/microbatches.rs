//! Merges rows of microbatches if the log numbers microbatches in its step column.

use super::labels::is_microbatch;
use super::point::Point;
use super::{Limits, Log};

/// Minimum number of complete steps.
const MIN_STEPS: usize = 2;

/// Merges the microbatches of each step if their index begins again after a fixed number of rows.
pub(super) fn merge(log: &mut Log, limits: &Limits) {
    let Some(count) = microbatches(&log.points) else { return };
    let first = log.points.first().map_or(0, |point| point.step);
    // Rows counted from 1 belong to step 1, rows counted from 0 to step 0.
    let base = u64::from(first % count == 1);
    let mut points: Vec<Point> = Vec::new();
    for mut row in std::mem::take(&mut log.points) {
        row.step = (row.step - base) / count + base;
        match points.last_mut().filter(|point| point.step == row.step) {
            Some(point) => {
                point.step_time_s = point.step_time_s.zip(row.step_time_s).map(|(sum, time)| sum + time);
                point.step_time_origin = point.step_time_s.and(point.step_time_origin);
                row.step_time_s = None;
                row.step_time_origin = None;
                point.merge(row, limits);
            }
            None => points.push(row),
        }
    }
    log.report.points = points.len() as u64;
    log.points = points;
    log.report.assume(&format!(
        "rows are microbatches, {count} per step: steps are counted from them, step times are the sums of their times, and the \
         loss is that of the first"
    ));
}

/// Returns the number of microbatches per step if the step column counts microbatches.
fn microbatches(points: &[Point]) -> Option<u64> {
    let index = |point: &Point| {
        let index = point.others.iter().find(|other| is_microbatch(&other.name))?.value;
        (index.fract() == 0.0 && (0.0..1e6).contains(&index)).then_some(index as u64)
    };
    let indices = points.iter().map(index).collect::<Option<Vec<u64>>>()?;
    let start = indices.first().copied().filter(|&start| start <= 1)?;
    let count = indices.iter().skip(1).position(|&index| index == start)? + 1;
    let cycles = indices.iter().enumerate().all(|(at, &index)| index == start + (at % count) as u64);
    let rises = points.iter().zip(points.iter().skip(1)).all(|(a, b)| a.segment == b.segment && b.step == a.step + 1);
    (count > 1 && points.len() >= MIN_STEPS * count && cycles && rises).then_some(count as u64)
}
