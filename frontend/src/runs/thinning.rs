//! Downsampling that preserves the visual shape: minimum and maximum of each interval are retained.

/// Returns at most `most` points in the original order. `most` must be at least 4. The result
/// contains the first and last point, plus the minimum and maximum of each interval between them,
/// so no peak is lost.
pub(crate) fn thin(points: &[(f64, f64)], max_points: usize) -> Vec<(f64, f64)> {
    let limit = max_points.max(4);
    let (&[first, ref inner @ .., last], true) = (points, points.len() > limit) else { return points.to_vec() };
    let stretch = inner.len().div_ceil((limit - 2) / 2);
    let mut selected = Vec::with_capacity(limit);
    selected.push(first);
    for part in inner.chunks(stretch) {
        let by = |left: &(f64, f64), other: &(f64, f64)| left.1.total_cmp(&other.1);
        let index_or_zero = |found: Option<(usize, &(f64, f64))>| found.map_or(0, |(index, _)| index);
        let min_index =
            index_or_zero(part.iter().enumerate().min_by(|min_candidate, other| by(min_candidate.1, other.1)));
        let max_index =
            index_or_zero(part.iter().enumerate().max_by(|max_candidate, other| by(max_candidate.1, other.1)));
        selected.push(part[min_index.min(max_index)]);
        if min_index != max_index {
            selected.push(part[min_index.max(max_index)]);
        }
    }
    selected.push(last);
    selected
}

/// Distributes `most` points over several lines in proportion to their lengths. Each line gets at
/// least 4 points.
pub(crate) fn share_out(lengths: &[usize], limit: usize) -> Vec<usize> {
    let total: usize = lengths.iter().sum();
    if total <= limit {
        return lengths.iter().map(|length| (*length).max(4)).collect();
    }
    let spare = limit.saturating_sub(4 * lengths.len());
    lengths.iter().map(|length| 4 + (spare as f64 * *length as f64 / total as f64) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_ends_stay() {
        let mut points: Vec<(f64, f64)> = (0..50_000).map(|index| (f64::from(index), 1.0)).collect();
        points[31_234].1 = 9.0;
        points[17].1 = 0.1;
        let thinned = thin(&points, 5_000);
        assert!(thinned.len() <= 5_000, "{}", thinned.len());
        assert!(thinned.contains(&(31_234.0, 9.0)) && thinned.contains(&(17.0, 0.1)));
        assert_eq!((thinned[0].0, thinned[thinned.len() - 1].0), (0.0, 49_999.0));
        assert!(thinned.windows(2).all(|pair| pair[0].0 < pair[1].0), "the order stays");
    }

    #[test]
    fn few_points_are_unchanged_and_small_limits_are_respected() {
        let points = [(1.0, 3.0), (2.0, 1.0), (3.0, 2.0)];
        assert_eq!(thin(&points, 3), points);
        assert_eq!(thin(&[], 0), []);
        // Four points: both ends, and the minimum and maximum between them.
        let points = [(0.0, 5.0), (1.0, 2.0), (2.0, 9.0), (3.0, 4.0), (4.0, 5.0), (5.0, 5.0)];
        assert_eq!(thin(&points, 4), [(0.0, 5.0), (1.0, 2.0), (2.0, 9.0), (5.0, 5.0)]);
    }

    #[test]
    fn limit_is_divided_by_line_lengths() {
        assert_eq!(share_out(&[10, 0], 100), [10, 4]);
        // 1,000 points minus 4 per line leave 988, distributed as 10 %, 50 % and 40 %.
        assert_eq!(share_out(&[1_000, 5_000, 4_000], 1_000), [102, 498, 399]);
        assert!(share_out(&[90_000; 20], 5_000).iter().sum::<usize>() <= 5_000);
    }
}
