//! Axes of the charts of a fit: linear for a narrow range and for steps, otherwise logarithmic.

use api::profile::FittedPoint;
use plotly::common::TickMode;
use plotly::layout::{Axis, AxisRange};

use crate::charts::Colours;
use crate::charts::bins::{Scale, decades};
use crate::format;

/// A range with a smaller ratio of maximum to minimum contains too few round values of a logarithmic axis.
const MIN_LOGARITHMIC_RATIO: f64 = 3.0;
/// Smallest relative width of a linear axis: narrower ticks have equal texts of three digits.
const MIN_WIDTH: f64 = 0.03;

/// Scale and range of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FitAxis {
    scale: Scale,
    from: f64,
    to: f64,
}

impl FitAxis {
    /// Axis of the sizes. Steps are linear.
    pub(super) fn of_sizes(points: &[FittedPoint], size_name: &str) -> Self {
        let sizes = points.iter().map(|point| point.size);
        if size_name == "step" { Self::linear(sizes, 0.0) } else { Self::of(sizes) }
    }

    /// Axis of measured and fitted times.
    pub(super) fn of_times(points: &[FittedPoint]) -> Self {
        Self::of(points.iter().flat_map(|point| [point.measured_s, point.fitted_s]))
    }

    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (from, to) = extremes(values.clone());
        if to < MIN_LOGARITHMIC_RATIO * from {
            return Self::linear(values, MIN_WIDTH);
        }
        Self { scale: Scale::Logarithmic, from: from / 1.3, to: to * 1.3 }
    }

    /// Linear axis with a margin, and a minimum width relative to its middle.
    fn linear(values: impl Iterator<Item = f64>, min_width: f64) -> Self {
        let (from, to) = extremes(values);
        let middle = f64::midpoint(from, to);
        let half = (0.55 * (to - from)).max(0.5 * min_width * middle);
        Self { scale: Scale::Linear, from: middle - half, to: middle + half }
    }

    pub(super) fn position(self, value: f64) -> f64 {
        self.scale.position(value)
    }

    /// Round values inside the axis, about `count`.
    fn ticks(self, count: usize) -> Vec<f64> {
        match self.scale {
            Scale::Logarithmic => {
                let all = decades(self.from, self.to, count);
                // On a narrow screen, powers of ten are too many.
                let every = all.len().div_ceil(count.max(1)).max(1);
                all.into_iter().step_by(every).map(|(position, _)| 10_f64.powf(position)).collect()
            }
            Scale::Linear => linear_ticks(self.from, self.to, count),
        }
    }

    /// Axis with its ticks.
    pub(super) fn drawn(self, tick_count: usize, text: impl Fn(f64) -> String, colours: &Colours) -> Axis {
        let ticks = self.ticks(tick_count);
        let texts = ticks.iter().map(|&value| text(value)).collect();
        let positions = ticks.iter().map(|&value| self.position(value)).collect();
        colours
            .axis()
            .range(AxisRange::new(self.position(self.from), self.position(self.to)))
            .tick_mode(TickMode::Array)
            .tick_values(positions)
            .tick_text(texts)
            .tick_angle(0.0)
    }
}

fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(from, to), value| (from.min(value), to.max(value)))
}

/// Multiples of 1, 2 or 5 times a power of ten, at most `count + 1`.
fn linear_ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let width = to - from;
    if width <= 0.0 || !width.is_finite() {
        return vec![from];
    }
    let least = width / count.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= least * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

/// Unit of the sizes of matrix products, in operations of the fit.
const OPERATIONS: &str = "floating-point operations";

/// Title of the size axis.
pub(super) fn size_title(size_name: &str) -> &str {
    if size_name == OPERATIONS { "floating-point operations (FLOP)" } else { size_name }
}

/// Formats a tick of the size axis.
pub(super) fn size_tick(size: f64, size_name: &str) -> String {
    match size_name {
        OPERATIONS => format::flop(size),
        "bytes" => format::bytes(size),
        _ => format::length(size),
    }
}

/// Formats a size with its unit.
pub(super) fn size_text(size: f64, size_name: &str) -> String {
    match size_name {
        OPERATIONS | "bytes" => size_tick(size, size_name),
        "step" => format!("step {}", size_tick(size, size_name)),
        _ => format!("{} {size_name}", size_tick(size, size_name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(sizes: &[f64], times_s: &[f64]) -> Vec<FittedPoint> {
        let point = |(&size, &time_s): (&f64, &f64)| FittedPoint { size, measured_s: time_s, fitted_s: time_s };
        sizes.iter().zip(times_s).map(point).collect()
    }

    fn texts(axis: FitAxis, count: usize, text: impl Fn(f64) -> String) -> Vec<String> {
        axis.ticks(count).into_iter().map(|value| text(value).replace('\u{202f}', " ")).collect()
    }

    #[test]
    fn a_narrow_range_has_ticks() {
        let points = points(&[3.0, 60.0, 120.0], &[14.7, 14.9, 15.1]);
        let times = FitAxis::of_times(&points);
        assert_eq!(texts(times, 7, format::seconds), ["14.7 s", "14.8 s", "14.9 s", "15.0 s", "15.1 s"]);
        let steps = FitAxis::of_sizes(&points, "step");
        assert_eq!(texts(steps, 6, |step| size_tick(step, "step")), ["0", "50", "100"]);
    }

    #[test]
    fn equal_times_have_distinct_ticks() {
        let axis = FitAxis::of_times(&points(&[1.0, 2.0], &[2.0, 2.0]));
        let texts = texts(axis, 7, format::seconds);
        let mut distinct = texts.clone();
        distinct.dedup();
        assert!(texts.len() >= 3 && texts == distinct, "{texts:?}");
    }

    #[test]
    fn a_wide_range_is_logarithmic() {
        let points = points(&[1e9, 1e12], &[0.001, 0.1]);
        let sizes = FitAxis::of_sizes(&points, OPERATIONS);
        assert_eq!(
            texts(sizes, 5, |size| size_tick(size, OPERATIONS)),
            ["1.00 GFLOP", "10.0 GFLOP", "100 GFLOP", "1.00 TFLOP"]
        );
        assert_eq!(sizes.ticks(2).len(), 2, "a narrow screen");
        assert!((sizes.position(1e9) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_have_units() {
        let text = |size, name| size_text(size, name).replace('\u{202f}', " ");
        assert_eq!(text(2_000.0, "tokens"), "2,000 tokens");
        assert_eq!((text(3.0, "step"), text(4e6, "bytes")), ("step 3".into(), "4.00 MB".into()));
    }
}
