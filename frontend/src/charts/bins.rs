//! Histogram bins for a linear axis, or for a logarithmic axis if the bin width grows with the
//! value.

use api::planner::outcome::HistogramColumns;

/// Axis scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Decimal logarithm.
    Logarithmic,
}

impl Scale {
    /// Selects the scale with more uniform bin widths.
    pub(crate) fn from_edges(edges: &[f64]) -> Self {
        if edges.first().is_none_or(|&first| first <= 0.0) {
            return Self::Linear;
        }
        let unevenness = |position: fn(f64) -> f64| {
            let widths = || edges.windows(2).map(|pair| position(pair[1]) - position(pair[0]));
            let widest = widths().fold(0.0, f64::max);
            let narrowest = widths().fold(f64::INFINITY, f64::min);
            widest / narrowest.max(1e-12)
        };
        if unevenness(f64::log10) * 1.5 < unevenness(|value| value) { Self::Logarithmic } else { Self::Linear }
    }

    /// Position on the axis, in scale units.
    pub(crate) fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Logarithmic => value.max(1e-9).log10(),
        }
    }
}

/// Histogram bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    /// Centre, in scale units.
    pub(crate) middle: f64,
    /// Width, in scale units.
    pub(crate) width: f64,
    /// Height.
    pub(crate) count: u64,
    /// Value range as text, for example "1,024 – 2,047".
    pub(crate) values: String,
}

/// Computes the bars of a histogram. A bin with zero width becomes a bar with the minimum visible
/// width.
pub(crate) fn bars(histogram: &HistogramColumns, scale: Scale) -> Vec<Bar> {
    let at = |edge: f64| scale.position(edge);
    let span = match (histogram.edges.first(), histogram.edges.last()) {
        (Some(&first), Some(&last)) => at(last) - at(first),
        _ => 0.0,
    };
    let narrowest = if span > 0.0 { span / 200.0 } else { 0.5 };
    histogram
        .edges
        .windows(2)
        .zip(&histogram.counts)
        .map(|(pair, &count)| Bar {
            middle: f64::midpoint(at(pair[0]), at(pair[1])),
            width: (at(pair[1]) - at(pair[0])).max(narrowest),
            count,
            values: values(pair[0], pair[1]),
        })
        .collect()
}

/// Integers in the half-open interval between two edges.
fn values(from: f64, to: f64) -> String {
    let (first, last) = (from.ceil(), (to.ceil() - 1.0).max(from.ceil()));
    let (first, last) = (number(first), number(last));
    if first == last { first } else { format!("{first} – {last}") }
}

/// Formats a value with thousands separators; values below 10 have one decimal.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 10.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    crate::gantt::describe::grouped(value.max(0.0).round() as u64)
}

/// Round label values for a logarithmic axis, at most `most`. Returns at least the powers of ten.
pub(crate) fn decades(from: f64, to: f64, max_ticks: usize) -> Vec<(f64, String)> {
    let all = marks(from, to, &[1.0, 2.0, 5.0]);
    if all.len() <= max_ticks { all } else { marks(from, to, &[1.0]) }
}

fn marks(from: f64, to: f64, digits: &[f64]) -> Vec<(f64, String)> {
    let (first, last) = (from.max(1e-9).log10().floor() as i32, to.max(1e-9).log10().ceil() as i32);
    (first..=last)
        .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)))
        .filter(|&value| value >= from * 0.999 && value <= to * 1.001)
        .map(|value| (value.log10(), short(value)))
        .collect()
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{v}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(edges: &[f64], counts: &[u64]) -> HistogramColumns {
        HistogramColumns { edges: edges.to_vec(), counts: counts.to_vec(), mean: 0.0, median: 0.0, p99: 0.0, max: 0.0 }
    }

    #[test]
    fn growing_bins_are_drawn_logarithmically() {
        assert_eq!(Scale::from_edges(&[1.0, 2.0, 4.0, 8.0, 16.0]), Scale::Logarithmic);
        assert_eq!(Scale::from_edges(&[100.0, 200.0, 300.0, 400.0]), Scale::Linear);
        assert_eq!(Scale::from_edges(&[0.0, 1.0, 10.0, 100.0]), Scale::Linear);
        assert_eq!(Scale::from_edges(&[]), Scale::Linear);
    }

    #[test]
    fn bars_stand_over_their_bins() {
        let found = bars(&histogram(&[0.0, 10.0, 20.0], &[3, 4]), Scale::Linear);
        assert_eq!(found[0], Bar { middle: 5.0, width: 10.0, count: 3, values: "0 – 9".to_owned() });
        assert_eq!(found[1], Bar { middle: 15.0, width: 10.0, count: 4, values: "10 – 19".to_owned() });
        let found = bars(&histogram(&[1.0, 10.0, 100.0], &[3, 4]), Scale::Logarithmic);
        assert!((found[1].middle - 1.5).abs() < 1e-12 && (found[1].width - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_point_mass_can_be_seen() {
        let found = bars(&histogram(&[512.0, 512.0], &[9]), Scale::Linear);
        assert_eq!(found, [Bar { middle: 512.0, width: 0.5, count: 9, values: "512".to_owned() }]);
    }

    #[test]
    fn logarithmic_axes_have_round_marks() {
        let labels: Vec<String> = decades(80.0, 3_000.0, 5).into_iter().map(|mark| mark.1).collect();
        assert_eq!(labels, ["100", "200", "500", "1k", "2k"]);
        let labels: Vec<String> = decades(1.0, 1e6, 18).into_iter().map(|mark| mark.1).collect();
        assert_eq!(labels, ["1", "10", "100", "1k", "10k", "100k", "1M"]);
    }
}
