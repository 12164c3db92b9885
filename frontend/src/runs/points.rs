//! Compact storage for tens of thousands of points.

use std::collections::BTreeSet;

use api::run::RunPoint;

use super::metric::Metric;

/// Point reduced to the plotted metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Row number in the run.
    pub(crate) row: u64,
    /// Run segment.
    pub(crate) segment: u32,
    pub(crate) step: u64,
    /// True if later log lines may still add values.
    is_open: bool,
    values: [f64; Metric::COUNT],
}

impl Sample {
    fn from_point(point: &RunPoint) -> Self {
        let values =
            Metric::ALL.map(|metric| metric.value_at(point).filter(|value| value.is_finite()).unwrap_or(f64::NAN));
        Self { row: point.row, segment: point.segment, step: point.step, is_open: point.open, values }
    }

    /// Compares two samples. Missing values (NaN) are equal.
    fn is_same(&self, other: &Self) -> bool {
        let bits = |sample: &Self| sample.values.map(f64::to_bits);
        (self.segment, self.step) == (other.segment, other.step) && bits(self) == bits(other)
    }

    /// Returns the metric value, if present.
    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        let metric_index = Metric::ALL.iter().position(|known| *known == metric)?;
        Some(self.values[metric_index]).filter(|value| value.is_finite())
    }
}

/// Points sorted by row, without duplicates.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Points {
    samples: Vec<Sample>,
}

impl Points {
    /// Adds points in any order. For duplicate rows the last point wins. Returns true if anything
    /// changed.
    pub(crate) fn add(&mut self, points: &[RunPoint]) -> bool {
        let (mut changed, mut in_order) = (false, true);
        let known = self.samples.len();
        for sample in points.iter().map(Sample::from_point) {
            let position = self.samples[..known].binary_search_by_key(&sample.row, |sample| sample.row);
            match position {
                // A page may be older than the stream, so an open point never replaces a complete
                // point.
                Ok(existing_index) if sample.is_open && !self.samples[existing_index].is_open => {}
                Ok(open_index) => {
                    changed |= !self.samples[open_index].is_same(&sample);
                    self.samples[open_index] = sample;
                }
                Err(_) => {
                    in_order &= self.samples.last().is_none_or(|last| last.row < sample.row);
                    changed = true;
                    self.samples.push(sample);
                }
            }
        }
        if !in_order {
            // The sort is stable: of two points with the same row, the later one comes last and is
            // retained.
            self.samples.sort_by_key(|sample| sample.row);
            self.samples.reverse();
            self.samples.dedup_by_key(|sample| sample.row);
            self.samples.reverse();
        }
        changed
    }

    /// Returns the last complete row, or 0 if there is none.
    pub(crate) fn last_row(&self) -> u64 {
        self.samples.iter().rev().find(|sample| !sample.is_open).map_or(0, |sample| sample.row)
    }

    pub(crate) const fn len(&self) -> usize {
        self.samples.len()
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// True if any point contains this metric.
    pub(crate) fn has_metric(&self, metric: Metric) -> bool {
        self.samples.iter().any(|sample| sample.value(metric).is_some())
    }

    /// Returns the values of a metric, in row order.
    pub(crate) fn values(&self, metric: Metric) -> Vec<(u64, f64)> {
        self.samples.iter().filter_map(|sample| Some((sample.step, sample.value(metric)?))).collect()
    }

    /// Returns (step, value) points within a step range, grouped by run segment.
    pub(crate) fn series(&self, metric: Metric, steps: Option<(u64, u64)>) -> Vec<(u32, Vec<(f64, f64)>)> {
        self.series_without(metric, steps, |_| false)
    }

    /// Like [`Self::series`], but omits rows for which `left_out` returns true.
    pub(crate) fn series_without(
        &self,
        metric: Metric,
        steps: Option<(u64, u64)>,
        left_out: impl Fn(u64) -> bool,
    ) -> Vec<(u32, Vec<(f64, f64)>)> {
        let mut parts: Vec<(u32, Vec<(f64, f64)>)> = Vec::new();
        for sample in &self.samples {
            let Some(value) = sample.value(metric) else { continue };
            let within = steps.is_none_or(|(from, to)| (from..=to).contains(&sample.step));
            if !within || left_out(sample.row) {
                continue;
            }
            let point = (sample.step as f64, value);
            match parts.last_mut() {
                Some((segment, segment_points)) if *segment == sample.segment => segment_points.push(point),
                _ => parts.push((sample.segment, vec![point])),
            }
        }
        parts
    }
}

/// Breaks a line where it passes over left-out steps: no step has the values of such a stretch.
pub(crate) fn broken_at(points: Vec<(f64, f64)>, left_out: &BTreeSet<u64>) -> Vec<(f64, f64)> {
    if left_out.is_empty() {
        return points;
    }
    let mut broken: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        if let Some(last) = broken.last().copied() {
            let (from, to) = (last.0 as u64 + 1, point.0 as u64);
            if from < to && left_out.range(from..to).next().is_some() {
                broken.push((last.0, f64::NAN));
            }
        }
        broken.push(point);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(row: u64, segment: u32, step: u64, step_s: f64) -> RunPoint {
        RunPoint { row, segment, step, step_s: Some(step_s), ..RunPoint::default() }
    }

    fn rows(points: &Points) -> Vec<u64> {
        points.samples().iter().map(|sample| sample.row).collect()
    }

    #[test]
    fn rows_come_twice_and_late_and_stand_once_in_order() {
        let mut points = Points::default();
        assert!(points.add(&[point(1, 0, 10, 1.0), point(2, 0, 11, 1.1), point(5, 0, 14, 1.4)]));
        assert!(!points.add(&[point(2, 0, 11, 1.1)]), "replayed after a break of the stream");
        assert!(points.add(&[point(5, 0, 14, 1.5)]), "a line that came later added to it");
        let late = [point(6, 0, 15, 1.5), point(3, 0, 12, 7.0), point(4, 0, 13, 1.3), point(3, 0, 12, 1.2)];
        assert!(points.add(&late));
        assert_eq!(rows(&points), [1, 2, 3, 4, 5, 6]);
        assert_eq!(points.samples()[2].value(Metric::StepTime), Some(1.2), "the last that came counts");
        assert_eq!(points.samples()[4].value(Metric::StepTime), Some(1.5));
        assert_eq!(points.last_row(), 6);
    }

    #[test]
    fn a_line_does_not_pass_over_left_out_steps() {
        let line = broken_at(vec![(78.0, 1.0), (79.0, 2.0), (92.0, 3.0), (94.0, 4.0)], &(80..92).collect());
        assert_eq!(line.iter().map(|point| point.0).collect::<Vec<_>>(), [78.0, 79.0, 79.0, 92.0, 94.0]);
        assert!(line[2].1.is_nan());
        assert_eq!(broken_at(vec![(1.0, 1.0), (9.0, 2.0)], &BTreeSet::new()).len(), 2);
    }

    #[test]
    fn open_point_stays_until_complete_and_is_not_requested_again() {
        let open = |step_s| RunPoint { open: true, ..point(2, 0, 11, step_s) };
        let mut points = Points::default();
        points.add(&[point(1, 0, 10, 1.0), open(1.1)]);
        assert_eq!((points.len(), points.last_row()), (2, 1));
        assert!(points.add(&[point(2, 0, 11, 1.2)]));
        assert!(!points.add(&[open(1.1)]), "an older page");
        assert_eq!((points.last_row(), points.samples()[1].value(Metric::StepTime)), (2, Some(1.2)));
    }

    #[test]
    fn restart_begins_new_series_and_missing_values_are_skipped() {
        let mut points = Points::default();
        let silent = RunPoint { row: 3, segment: 0, step: 12, loss: Some(f64::NAN), ..RunPoint::default() };
        points.add(&[point(1, 0, 10, 1.0), point(2, 0, 11, 50.0), silent, point(4, 1, 11, 1.2), point(5, 1, 12, 1.3)]);
        assert_eq!(
            points.series_without(Metric::StepTime, None, |row| row == 2),
            [(0, vec![(10.0, 1.0)]), (1, vec![(11.0, 1.2), (12.0, 1.3)])]
        );
        assert_eq!(points.series(Metric::StepTime, Some((12, 99))), [(1, vec![(12.0, 1.3)])]);
        assert!(points.has_metric(Metric::StepTime) && !points.has_metric(Metric::Loss), "NaN is no figure");
    }
}
