//! Step functions, clipped to a window and reduced to the visible resolution.

use crate::gantt::TimeWindow;

/// Returns the steps inside a window, with points at both edges. The point count is about `max_points` or
/// less.
///
/// If the window contains more points, each interval stores its first, minimum, maximum and last
/// value, so no peak is lost. The step function begins at the first time and ends at `end_ns`.
pub(crate) fn visible(
    time_ns: &[u64],
    values: &[u64],
    end_ns: u64,
    window: TimeWindow,
    max_points: usize,
) -> Vec<(f64, u64)> {
    let from = window.start_ns.max(time_ns.first().map_or(f64::INFINITY, |&time| time as f64));
    let to = window.end_ns.min(end_ns as f64);
    if from > to {
        return Vec::new();
    }
    let first = time_ns.partition_point(|&time| time as f64 <= from);
    let last = time_ns.partition_point(|&time| time as f64 <= to).min(values.len());
    let mut points = Vec::with_capacity((last - first.min(last)).min(max_points) + 2);
    if let Some(&value) = first.checked_sub(1).and_then(|before| values.get(before)) {
        points.push((from, value));
    }
    if last.saturating_sub(first) <= max_points {
        points.extend((first..last).map(|at| (time_ns[at] as f64, values[at])));
    } else {
        thinned(time_ns, values, first..last, max_points, &mut points);
    }
    if let Some(&(time, value)) = points.last()
        && time < to
    {
        points.push((to, value));
    }
    points
}

fn thinned(
    time_ns: &[u64],
    values: &[u64],
    range: std::ops::Range<usize>,
    max_points: usize,
    points: &mut Vec<(f64, u64)>,
) {
    let stretches = (max_points / 4).max(1);
    let (start, end) = (time_ns[range.start] as f64, time_ns[range.end - 1] as f64);
    let mut from = range.start;
    for stretch in 1..=stretches {
        let limit = start + (end - start) * stretch as f64 / stretches as f64;
        let count = if stretch == stretches {
            range.end - from
        } else {
            time_ns[from..range.end].partition_point(|&time| (time as f64) < limit)
        };
        let to = from + count;
        if from == to {
            continue;
        }
        let min_index = (from..to).min_by_key(|&at| values[at]).unwrap_or(from);
        let max_index = (from..to).max_by_key(|&at| values[at]).unwrap_or(from);
        let mut selected = [from, min_index, max_index, to - 1];
        selected.sort_unstable();
        let mut before = None;
        for at in selected {
            if before != Some(at) {
                points.push((time_ns[at] as f64, values[at]));
            }
            before = Some(at);
        }
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: TimeWindow = TimeWindow { start_ns: 0.0, end_ns: 1e12 };

    #[test]
    fn short_staircase_is_unchanged_and_extended_to_its_end() {
        assert_eq!(visible(&[0, 10, 20], &[5, 7, 6], 30, ALL, 100), [(0.0, 5), (10.0, 7), (20.0, 6), (30.0, 6)]);
    }

    #[test]
    fn a_window_begins_with_the_value_from_before() {
        let window = TimeWindow { start_ns: 12.0, end_ns: 25.0 };
        assert_eq!(visible(&[0, 10, 20], &[5, 7, 6], 30, window, 100), [(12.0, 7), (20.0, 6), (25.0, 6)]);
        let after = TimeWindow { start_ns: 40.0, end_ns: 50.0 };
        assert!(visible(&[0, 10, 20], &[5, 7, 6], 30, after, 100).is_empty());
        assert!(visible(&[], &[], 30, ALL, 100).is_empty());
    }

    #[test]
    fn thinning_keeps_every_extreme_and_the_order() {
        let time: Vec<u64> = (0..100_000).collect();
        let mut values: Vec<u64> = time.iter().map(|time| 1_000 + time % 7).collect();
        values[54_321] = 9_999;
        values[77_777] = 1;
        let points = visible(&time, &values, 100_000, ALL, 5_000);
        assert!(points.len() <= 5_002, "{} points", points.len());
        assert!(points.contains(&(54_321.0, 9_999)) && points.contains(&(77_777.0, 1)));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(points.last(), Some(&(100_000.0, values[99_999])));
    }
}
