//! Measurements and a fitted curve by size, with the relative error per size below.

mod axis;

use api::profile::FittedPoint;
use leptos::prelude::*;
use plotly::common::{HoverInfo, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::{AxisRange, HoverMode, Margin};
use plotly::{Plot, Scatter};

use self::axis::{FitAxis, size_text};
use super::figure::Figure;
use super::{Colours, colour, configuration};
use crate::format;
use crate::gantt::observers::theme_version;

/// Measured and fitted times by size.
#[component]
pub(crate) fn FitChart(
    /// Measurements in any order.
    #[prop(into)]
    points: Signal<Vec<FittedPoint>>,
    /// Title of the horizontal axis.
    size_name: String,
    /// Name of the fitted quantity.
    name: String,
) -> impl IntoView {
    let version = theme_version();
    let over = StoredValue::new(size_name);
    let width = RwSignal::new(500.0);
    let fit = {
        let version = version.clone();
        Memo::new(move |_| {
            version.track();
            points.with(|points| {
                let points = drawable(points);
                (!points.is_empty())
                    .then(|| over.with_value(|over| fit_json(&points, over, width.get(), &Colours::read())))
            })
        })
    };
    let errors = Memo::new(move |_| {
        version.track();
        points.with(|points| {
            let points = drawable(points);
            (!points.is_empty())
                .then(|| over.with_value(|over| error_json(&points, over, width.get(), &Colours::read())))
        })
    });
    let fit_label = format!("Measured and fitted times of {name} by size");
    let error_label = format!("Error of the fit of {name} by size, in per cent of the measured time");
    view! {
        <div class="fit-charts" data-testid="fit" data-points=move || points.with(Vec::len)>
            <div>
                <ul class="chart-legend">
                    <li><i class="swatch round open" aria-hidden="true"></i>"measured"</li>
                    <li><span class="fit-mark" aria-hidden="true">"✕"</span>"fitted"</li>
                </ul>
                <Figure plot=fit label=Signal::stored(fit_label) class="chart-fit" width=width />
            </div>
            <div>
                <ul class="chart-legend"><li>"(fitted − measured) / measured"</li></ul>
                <Figure plot=errors label=Signal::stored(error_label) class="chart-fit" />
            </div>
        </div>
    }
}

/// Points with positive coordinates, sorted by size.
fn drawable(points: &[FittedPoint]) -> Vec<FittedPoint> {
    let mut points: Vec<_> = points
        .iter()
        .copied()
        .filter(|point| point.size > 0.0 && point.measured_s > 0.0 && point.fitted_s > 0.0)
        .collect();
    points.sort_by(|first, other| first.size.total_cmp(&other.size));
    points
}

fn hover(point: &FittedPoint, over: &str) -> String {
    let error = format::signed_percent(point.fitted_s / point.measured_s - 1.0);
    let (measured, fitted) = (format::seconds(point.measured_s), format::seconds(point.fitted_s));
    format!("{}<br>measured {measured}<br>fitted {fitted}, {error}", size_text(point.size, over))
}

/// Ticks of the size axis for a chart width.
fn size_ticks(width_px: f64) -> usize {
    ((width_px / 70.0) as usize).clamp(3, 9)
}

fn fit_json(points: &[FittedPoint], over: &str, width_px: f64, colours: &Colours) -> String {
    let mut plot = Plot::new();
    let size_axis = FitAxis::of_sizes(points, over);
    let time_axis = FitAxis::of_times(points);
    let sizes = || points.iter().map(|point| size_axis.position(point.size)).collect::<Vec<_>>();
    let times = |time: fn(&FittedPoint) -> f64| points.iter().map(|point| time_axis.position(time(point))).collect();
    let texts = || points.iter().map(|point| hover(point, over)).collect::<Vec<_>>();
    let many = points.len() > 200;
    plot.add_trace(
        Scatter::new(sizes(), times(|point| point.measured_s))
            .mode(Mode::Markers)
            .hover_text_array(texts())
            .hover_info(HoverInfo::Text)
            .marker(
                // Open markers, so that the cross of an accurate fit stays visible inside.
                Marker::new()
                    .symbol(MarkerSymbol::CircleOpen)
                    .color(colour(&colours.accent))
                    .size(if many { 5 } else { 10 })
                    .opacity(if many { 0.6 } else { 1.0 }),
            ),
    );
    plot.add_trace(
        Scatter::new(sizes(), times(|point| point.fitted_s)).mode(Mode::Markers).hover_info(HoverInfo::Skip).marker(
            Marker::new()
                .symbol(MarkerSymbol::XThin)
                .size(if many { 4 } else { 6 })
                .line(Line::new().width(1.2).color(colour(&colours.slower)))
                .color(colour(&colours.slower)),
        ),
    );
    let x_axis = size_axis.drawn(size_ticks(width_px), |size| axis::size_tick(size, over), colours);
    let x_axis = x_axis.title(plotly::common::Title::with_text(axis::size_title(over)).font(colours.font()));
    finish(plot, x_axis, time_axis.drawn(7, format::seconds, colours), colours)
}

fn error_json(points: &[FittedPoint], over: &str, width_px: f64, colours: &Colours) -> String {
    let mut plot = Plot::new();
    let errors: Vec<f64> = points.iter().map(|point| 100.0 * (point.fitted_s / point.measured_s - 1.0)).collect();
    let max_error = errors.iter().fold(5.0_f64, |maximum, error| maximum.max(error.abs())) * 1.1;
    let many = points.len() > 200;
    let size_axis = FitAxis::of_sizes(points, over);
    plot.add_trace(
        Scatter::new(points.iter().map(|point| size_axis.position(point.size)).collect(), errors)
            .mode(Mode::Markers)
            .hover_text_array(points.iter().map(|point| hover(point, over)).collect())
            .hover_info(HoverInfo::Text)
            .marker(Marker::new().color(colour(&colours.accent)).size(if many { 4 } else { 7 }).opacity(if many {
                0.5
            } else {
                0.8
            })),
    );
    let y_axis = colours
        .axis()
        .range(AxisRange::new(-max_error, max_error))
        .n_ticks(7)
        .tick_suffix("\u{202f}%")
        .zero_line(true)
        .zero_line_color(colour(&colours.ink));
    let x_axis = size_axis.drawn(size_ticks(width_px), |size| axis::size_tick(size, over), colours);
    let x_axis = x_axis.title(plotly::common::Title::with_text(axis::size_title(over)).font(colours.font()));
    finish(plot, x_axis, y_axis, colours)
}

fn finish(mut plot: Plot, x_axis: plotly::layout::Axis, y_axis: plotly::layout::Axis, colours: &Colours) -> String {
    plot.set_layout(
        colours
            .layout(Margin::new().left(58).right(14).top(8).bottom(44))
            .paper_background_color(colour(&colours.panel))
            .x_axis(x_axis)
            .y_axis(y_axis)
            .show_legend(false)
            .hover_mode(HoverMode::Closest),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(size: f64, measured_s: f64, fitted_s: f64) -> FittedPoint {
        FittedPoint { size, measured_s, fitted_s }
    }

    #[test]
    fn points_without_logarithm_are_not_drawn() {
        let points = [point(8.0, 1.0, 1.0), point(0.0, 1.0, 1.0), point(2.0, 1.0, 0.5), point(4.0, 0.0, 1.0)];
        assert_eq!(drawable(&points), [point(2.0, 1.0, 0.5), point(8.0, 1.0, 1.0)]);
    }

    #[test]
    fn the_pointer_names_size_times_and_error() {
        let text = hover(&point(2e9, 0.01, 0.008), "floating-point operations").replace('\u{202f}', " ");
        assert_eq!(text, "2.00 GFLOP<br>measured 10.0 ms<br>fitted 8.00 ms, −20.0 %");
    }
}
