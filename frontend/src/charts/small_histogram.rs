//! Small histogram without axes, for lists.

use api::planner::outcome::HistogramColumns;
use leptos::prelude::*;

use super::bins::{Scale, bars};
use crate::format;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 32.0;

/// Bar in SVG coordinates: left, top, width, height.
type BarRectangle = (f64, f64, f64, f64);

/// Computes the bars. A bin with at least one sample is at least one unit high.
fn places(data: &HistogramColumns) -> Vec<BarRectangle> {
    let bars = bars(data, Scale::from_edges(&data.edges));
    let highest = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1) as f64;
    let first = bars.first().map_or(0.0, |bar| bar.middle - bar.width / 2.0);
    let last = bars.last().map_or(1.0, |bar| bar.middle + bar.width / 2.0);
    let scale = WIDTH / (last - first).max(1e-9);
    let rectangle = |bar: &super::bins::Bar| {
        let height = if bar.count == 0 { 0.0 } else { (HEIGHT * bar.count as f64 / highest).max(1.0) };
        let left = (bar.middle - bar.width / 2.0 - first) * scale;
        (left, HEIGHT - height, bar.width * scale, height)
    };
    bars.iter().map(rectangle).collect()
}

/// Small histogram with its statistics as text.
#[component]
pub(crate) fn SmallHistogram(
    data: HistogramColumns,
    /// Unit of the values, for example "tokens".
    unit: &'static str,
) -> impl IntoView {
    let statistics = format!(
        "mean {}, p99 {}, max {} {unit}",
        format::length(data.mean),
        format::length(data.p99),
        format::length(data.max),
    );
    let bars =
        places(&data).into_iter().map(|(x, y, width, height)| view! { <rect x=x y=y width=width height=height /> });
    view! {
        <svg class="small-histogram" viewBox=format!("0 0 {WIDTH} {HEIGHT}") preserveAspectRatio="none" aria-hidden="true">
            {bars.collect_view()}
        </svg>
        <small>{statistics}</small>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_the_picture() {
        let data = HistogramColumns {
            edges: vec![0.0, 10.0, 20.0, 30.0],
            counts: vec![4, 0, 1],
            mean: 0.0,
            median: 0.0,
            p99: 0.0,
            max: 0.0,
        };
        assert_eq!(places(&data), [(0.0, 0.0, 40.0, 32.0), (40.0, 32.0, 40.0, 0.0), (80.0, 24.0, 40.0, 8.0)]);
    }
}
