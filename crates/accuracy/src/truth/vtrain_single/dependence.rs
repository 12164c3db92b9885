//! Number of independent measurements in the rows.
//!
//! Repeated measurements normally scatter. In this file they do not: rows that differ only in
//! microbatch count lie exactly on a straight line, and its slope is linear in the layer count. The
//! statistics below quantify this.

use std::collections::BTreeMap;

use super::Run;

/// Hidden size, TP, PP and microbatch size; layers; DP. A key identifies a line of times by
/// microbatch count.
type Key = ([u32; 4], u32, u32);

/// Returns sentences for the report.
pub(super) fn findings(runs: &[Run]) -> Vec<String> {
    let slopes = slopes(runs);
    let mut by_data: BTreeMap<([u32; 4], u32), Vec<f64>> = BTreeMap::new();
    for (&(shape, layers, _), slope) in &slopes.by_key {
        by_data.entry((shape, layers)).or_default().push(*slope);
    }
    let spread = |values: &Vec<f64>| {
        let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
        high - low
    };
    let data = by_data.values().map(spread).fold(0.0, f64::max);
    let mut by_layers: BTreeMap<[u32; 4], Vec<(f64, f64)>> = BTreeMap::new();
    for (&(shape, layers), values) in &by_data {
        by_layers.entry(shape).or_default().push((f64::from(layers), values[0]));
    }
    let bends: Vec<f64> = by_layers.values().flat_map(|points| bends(points)).collect();
    let straight = bends.iter().filter(|bend| **bend < 1e-3).count();
    vec![
        format!(
            "Rows that differ in the number of microbatches only lie on a straight line: {} rows follow from two others, \
             with a largest deviation of {:.6} ms.",
            slopes.implied, slopes.deviation
        ),
        format!(
            "The time of one more microbatch is the same for every DP: the {} slopes take {} values, equal within \
             {data:.6} ms.",
            slopes.by_key.len(),
            by_data.len()
        ),
        format!(
            "That time is in turn linear in the number of layers within 0.001 ms in {straight} of {} cases. No clock \
             repeats like that: the file is composed from a few timed pieces and holds about {} independent slopes, \
             not {} step times. A mean over its rows weighs the same pieces many times.",
            bends.len(),
            2 * by_layers.len(),
            runs.len()
        ),
    ]
}

/// Returns measured and predicted time per additional microbatch, one pair per hidden size, TP, PP,
/// microbatch size and depth.
pub(super) fn increments(runs: &[Run]) -> Vec<(f64, f64)> {
    let mut distinct: BTreeMap<([u32; 4], u32), (f64, f64)> = BTreeMap::new();
    for ((shape, layers, _), points) in lines(runs) {
        let [first, second, ..] = points.as_slice() else { continue };
        let per = |from: f64, to: f64| (to - from) / (second.microbatches - first.microbatches);
        let increment = (per(first.measured, second.measured), per(first.predicted, second.predicted));
        distinct.entry((shape, layers)).or_insert(increment);
    }
    distinct.into_values().collect()
}

/// A row on a line.
#[derive(Debug, Clone, Copy)]
struct Point {
    microbatches: f64,
    measured: f64,
    predicted: f64,
}

/// Groups rows that differ only in microbatch count, in ascending order of microbatch count.
fn lines(runs: &[Run]) -> BTreeMap<Key, Vec<Point>> {
    let mut lines: BTreeMap<Key, Vec<Point>> = BTreeMap::new();
    for run in runs {
        let layout = run.layout;
        let key = ([run.hidden, layout.tensor, layout.pipeline, layout.microbatch], run.layers, layout.data);
        let Run { measured, predicted, .. } = *run;
        let point = Point { microbatches: f64::from(run.microbatches), measured, predicted };
        lines.entry(key).or_default().push(point);
    }
    for points in lines.values_mut() {
        points.sort_by(|a, b| a.microbatches.total_cmp(&b.microbatches));
    }
    lines
}

struct Slopes {
    /// Time per additional microbatch in ms.
    by_key: BTreeMap<Key, f64>,
    /// Rows beyond the two that determine a line.
    implied: usize,
    /// Maximum distance of these rows from the line in ms.
    deviation: f64,
}

fn slopes(runs: &[Run]) -> Slopes {
    let mut slopes = Slopes { by_key: BTreeMap::new(), implied: 0, deviation: 0.0 };
    for (key, points) in lines(runs) {
        let points: Vec<(f64, f64)> = points.iter().map(|point| (point.microbatches, point.measured)).collect();
        let [first, second, rest @ ..] = points.as_slice() else { continue };
        slopes.by_key.insert(key, (second.1 - first.1) / (second.0 - first.0));
        slopes.implied += rest.len();
        slopes.deviation = bends(&points).into_iter().fold(slopes.deviation, f64::max);
    }
    slopes
}

/// Distances of the third and later points from the line through the first two.
fn bends(points: &[(f64, f64)]) -> Vec<f64> {
    let [first, second, rest @ ..] = points else { return vec![] };
    let slope = (second.1 - first.1) / (second.0 - first.0);
    rest.iter().map(|point| (first.1 + slope * (point.0 - first.0) - point.1).abs()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bend_is_the_distance_from_the_line_through_the_first_two() {
        assert_eq!(bends(&[(1.0, 10.0), (2.0, 20.0), (4.0, 41.0)]), [1.0]);
        assert!(bends(&[(1.0, 10.0)]).is_empty());
    }
}
