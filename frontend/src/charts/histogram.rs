//! Workload histogram.

use api::planner::outcome::HistogramColumns;
use leptos::prelude::*;
use plotly::common::{DashType, Line, Marker, TickMode};
use plotly::layout::{Axis, AxisRange, Margin, Shape, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Bar, Plot};

use super::bins::{Scale, bars, decades};
use super::figure::Figure;
use super::{Colours, colour, configuration};
use crate::format;
use crate::gantt::describe::grouped;
use crate::gantt::observers::theme_version;

/// Width per axis label, in px.
const PX_PER_LABEL: f64 = 45.0;
/// Maximum number of labels of a linear axis.
const MAX_LABELS: usize = 10;

/// Histogram with mean, median and 99th percentile.
#[component]
pub(crate) fn Histogram(
    /// Bins and counts; `None` during loading.
    #[prop(into)]
    data: Signal<Option<HistogramColumns>>,
    /// Unit of the values, for example "tokens per sample".
    #[prop(into)]
    unit: Signal<String>,
) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(300.0);
    let labels = Memo::new(move |_| (width.get() / PX_PER_LABEL) as usize);
    let plot = Memo::new(move |_| {
        version.track();
        data.with(|data| data.as_ref().map(|data| plot(data, &unit.get(), labels.get(), &Colours::read())))
    });
    let statistics = move || {
        data.with(|data| {
            data.as_ref().map(|data| {
                [
                    // Same number format as in the text next to the chart.
                    ("mean", format::length(data.mean)),
                    ("median", format::length(data.median)),
                    ("p99", format::length(data.p99)),
                    ("max", format::length(data.max)),
                ]
            })
        })
    };
    let scale_text = move || {
        let is_log =
            data.with(|data| data.as_ref().is_some_and(|data| Scale::from_edges(&data.edges) == Scale::Logarithmic));
        is_log.then_some(", log axis")
    };
    let label = move || {
        let summary = statistics().map(|entries| entries.map(|(name, value)| format!("{name} {value}")).join(", "));
        format!("Histogram of {}: {}", unit.get(), summary.unwrap_or_else(|| "loading".to_owned()))
    };
    view! {
        <figure class="histogram" data-testid="histogram">
            <Figure plot=plot label=Signal::derive(label) class="chart-histogram" width=width />
            <figcaption>
                <span>"samples by "{unit}{scale_text}</span>
                {move || {
                    statistics().map(|values| {
                        values
                            .map(|(name, value)| view! { <span class=format!("figure-{name}")>{name}" "<b>{value}</b></span> })
                            .collect_view()
                    })
                }}
            </figcaption>
        </figure>
    }
}

/// Returns the plot as JSON.
fn plot(data: &HistogramColumns, unit: &str, labels: usize, colours: &Colours) -> String {
    let scale = Scale::from_edges(&data.edges);
    let bars = bars(data, scale);
    let widths: Vec<f64> = bars.iter().map(|bar| bar.width).collect();
    let texts = bars.iter().map(|bar| format!("{} {unit}: {}", bar.values, grouped(bar.count))).collect();
    let trace = Bar::new(bars.iter().map(|bar| bar.middle).collect(), bars.iter().map(|bar| bar.count).collect())
        .hover_text_array(texts)
        .hover_info(plotly::common::HoverInfo::Text)
        .marker(
            Marker::new().color(colour(&colours.accent)).line(Line::new().width(0.6).color(colour(&colours.panel))),
        );

    let mut x_axis: Axis = colours.axis().show_grid(false).tick_angle(0.0).n_ticks(labels.clamp(2, MAX_LABELS));
    if let (Scale::Logarithmic, Some(&first), Some(&last)) = (scale, data.edges.first(), data.edges.last()) {
        let (values, texts) = decades(first, last, labels).into_iter().unzip();
        x_axis = x_axis.tick_mode(TickMode::Array).tick_values(values).tick_text(texts);
    } else if let Some(values) = whole_marks(&data.edges, labels) {
        let texts = values.iter().map(|&value| grouped(value as u64)).collect();
        x_axis = x_axis.tick_mode(TickMode::Array).tick_values(values).tick_text(texts);
    } else if let Some((first, last)) = without_tail(data) {
        x_axis = x_axis.range(AxisRange::new(first, last));
    }
    let y_axis = colours.axis().n_ticks(3).show_line(false);
    let marks = [(data.mean, DashType::Dash), (data.median, DashType::Solid), (data.p99, DashType::Dot)];
    let shapes = marks
        .into_iter()
        .map(|(value, dash)| {
            Shape::new()
                .shape_type(ShapeType::Line)
                .x_ref("x")
                .y_ref("paper")
                .x0(scale.position(value))
                .x1(scale.position(value))
                .y0(0.0)
                .y1(1.0)
                .layer(ShapeLayer::Above)
                .line(ShapeLine::new().color(colour(&colours.ink)).width(1.0).dash(dash))
        })
        .collect();
    let layout = colours
        .layout(Margin::new().left(40).right(8).top(6).bottom(22))
        .bar_gap(0.0)
        .x_axis(x_axis)
        .y_axis(y_axis)
        .shapes(shapes)
        .show_legend(false);
    let mut plot = Plot::new();
    plot.add_trace(trace);
    plot.set_layout(layout);
    plot.set_configuration(configuration());
    with_widths(&plot.to_json(), &widths)
}

/// Ends of a linear axis without the longest samples, if these would press the others into a small part of it. The maximum is
/// in the caption.
fn without_tail(data: &HistogramColumns) -> Option<(f64, f64)> {
    const MAX_RATIO: f64 = 2.5;
    let first = *data.edges.first()?;
    (data.p99 > first && data.max - first > MAX_RATIO * (data.p99 - first))
        .then_some((first, first + 1.3 * (data.p99 - first)))
}

/// Label values of a short linear axis. Lengths are whole numbers, which automatic labels are not. `None` for a longer
/// axis.
fn whole_marks(edges: &[f64], labels: usize) -> Option<Vec<f64>> {
    let (first, last) = (edges.first()?.ceil(), edges.last()?.floor());
    let is_short = first >= 0.0 && last - first < labels as f64;
    is_short.then(|| (first as u64..=last as u64).map(|value| value as f64).collect())
}

/// Adds individual bar widths to the JSON, because the plotly crate has no setter for them.
fn with_widths(plot: &str, widths: &[f64]) -> String {
    match serde_json::from_str::<serde_json::Value>(plot) {
        Ok(mut value) => {
            if let Some(trace) = value.pointer_mut("/data/0") {
                trace["width"] = widths.into();
            }
            value.to_string()
        }
        // Falls back to equal widths.
        Err(_) => plot.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_tail_is_beyond_the_axis() {
        let data = |p99: f64, max: f64| HistogramColumns {
            edges: vec![0.0, max],
            counts: vec![1],
            mean: 0.0,
            median: 0.0,
            p99,
            max,
        };
        assert_eq!(without_tail(&data(10_000.0, 42_000.0)), Some((0.0, 13_000.0)));
        assert_eq!(without_tail(&data(10_000.0, 20_000.0)), None);
        assert_eq!(without_tail(&data(0.0, 9.0)), None);
    }

    #[test]
    fn a_short_axis_has_whole_numbers() {
        assert_eq!(whole_marks(&[7.0, 8.0], 6), Some(vec![7.0, 8.0]));
        assert_eq!(whole_marks(&[2048.0, 2048.5], 6), Some(vec![2048.0]));
        assert_eq!(whole_marks(&[0.0, 100.0], 6), None);
        assert_eq!(whole_marks(&[], 6), None);
    }
}
