//! Merges rows of microbatches if the log numbers microbatches in its step column.

use super::labels::is_microbatch;
use super::point::Point;
use super::{Limits, Log};

/// Names of steps of the optimizer, in rows whose step may be that of a microbatch.
const OPTIMIZER_STEPS: [&str; 5] =
    ["optimizer_step", "optimizer_steps", "optim_step", "update_step", "num_optimizer_steps"];
/// Minimum number of complete steps.
const MIN_STEPS: usize = 2;

/// Merges the microbatches of each step if their index begins again after a fixed number of rows.
pub(super) fn merge(log: &mut Log, limits: &Limits) {
    let Some(count) = microbatches(&log.points) else {
        if let Some((name, count)) = slower_counter(&log.points) {
            log.report.assume(&format!(
                "the steps may be microbatches: {name} rises once in {count} steps; if it counts the steps of the optimizer, a step \
                 takes {count} times as long"
            ));
        }
        return;
    };
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

/// Returns the counter of optimizer steps that rises less often than the step, and the steps between two rises.
fn slower_counter(points: &[Point]) -> Option<(&'static str, u64)> {
    let name = OPTIMIZER_STEPS
        .into_iter()
        .find(|name| points.first().is_some_and(|point| point.others.iter().any(|other| other.name == *name)))?;
    let counter = |point: &Point| point.others.iter().find(|other| other.name == name).map(|other| other.value as u64);
    let rises: Vec<u64> = points
        .windows(2)
        .filter_map(|pair| match pair {
            [before, after] if counter(before)?.checked_add(1) == counter(after) => Some(after.step),
            _ => None,
        })
        .collect();
    let mut gaps = rises.windows(2).filter_map(|pair| pair[1].checked_sub(pair[0]));
    let count = gaps.next().filter(|&count| count > 1)?;
    gaps.all(|gap| gap == count).then_some((name, count))
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
