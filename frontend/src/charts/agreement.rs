//! Scatter plot of predicted against measured values on two logarithmic axes.

use std::sync::Arc;

use api::accuracy::{AccuracyPoint, AccuracySet};
use leptos::prelude::*;
use plotly::common::{DashType, Fill, HoverInfo, Line, Marker, Mode, TickMode, Title};
use plotly::layout::{Axis, HoverMode, Margin};
use plotly::{Plot, Scatter};

use super::bins::decades;
use super::figure::Figure;
use super::{Colours, MAX_POINTS, colour, configuration};
use crate::format;
use crate::gantt::observers::theme_version;

/// Relative half-width of the band around the line of equality.
const BAND: f64 = 0.1;

/// Points of an accuracy set, the line of equality, and a 10 % band around it.
#[component]
pub(crate) fn AgreementChart(#[prop(into)] set: Signal<Arc<AccuracySet>>) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(500.0);
    let plot = Memo::new(move |_| {
        version.track();
        set.with(|set| Some(plot(set, width.get(), &Colours::read())))
    });
    let label = Signal::derive(move || {
        set.with(|set| {
            format!(
                "Predicted against measured values of {}: {} points, mean error {}",
                set.title,
                set.points.len(),
                format::percent(set.statistics.mean_abs_pct / 100.0)
            )
        })
    });
    view! {
        <div data-testid="agreement" data-set=move || set.with(|set| set.id.clone()) data-points=move || set.with(|set| set.points.len())>
            <ul class="chart-legend">
                <li><i class="swatch round" aria-hidden="true"></i>"one measurement"</li>
                <li>
                    <svg viewBox="0 0 22 4" aria-hidden="true">
                        <line x1="0" y1="2" x2="22" y2="2" stroke="var(--ink)" />
                    </svg>
                    "predicted = measured"
                </li>
                <li><i class="swatch band" aria-hidden="true"></i>"within 10\u{202f}%"</li>
            </ul>
            <Figure plot=plot label=label class="chart-agreement" width=width />
        </div>
    }
}

/// Minimum and maximum value with a margin. Skips values that are not positive, because they have
/// no logarithm.
fn extent(points: &[AccuracyPoint]) -> (f64, f64) {
    let values = || points.iter().flat_map(|point| [point.measured, point.predicted]).filter(|value| *value > 0.0);
    let (lower, upper) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if upper > 0.0 { (lower / 1.25, upper * 1.25) } else { (0.1, 10.0) }
}

/// Round axis values: powers of ten with their doubles and halves, or a linear scale if the range
/// contains very few of them.
fn marks(from: f64, to: f64, max_marks: usize) -> Vec<(f64, String)> {
    let found = decades(from, to, max_marks);
    if found.len() >= 2 {
        return found;
    }
    let rough = (to - from) / max_marks as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
    let mark = |count: i64| {
        let value = count as f64 * step;
        (value.log10(), format!("{value:.decimals$}"))
    };
    (first.max(1)..=last).map(mark).collect()
}

fn hover_text(point: &AccuracyPoint, unit: &str) -> String {
    let AccuracyPoint { label, measured, predicted, .. } = point;
    let name = if label.is_empty() { String::new() } else { format!("{label}<br>") };
    let error = format::signed_percent(predicted / measured - 1.0);
    let (measured, predicted) = (format::three_digits(*measured), format::three_digits(*predicted));
    format!("{name}measured {measured} {unit}<br>predicted {predicted} {unit}, {error}")
}

/// Returns the plot as JSON. Positions are decimal logarithms, so the code can choose the tick
/// values.
fn plot(set: &AccuracySet, width_px: f64, colours: &Colours) -> String {
    let (minimum, maximum) = extent(&set.points);
    let ends = vec![minimum.log10(), maximum.log10()];
    let shifted = |share: f64| ends.iter().map(|end| end + share.log10()).collect::<Vec<_>>();
    let mut plot = Plot::new();
    let (upper, lower) = (shifted(1.0 + BAND), shifted(1.0 - BAND));
    let around = vec![ends[0], ends[1], ends[1], ends[0]];
    plot.add_trace(
        Scatter::new(around, vec![lower[0], lower[1], upper[1], upper[0]])
            .mode(Mode::None)
            .fill(Fill::ToSelf)
            .fill_color(colour(&translucent(&colours.accent)))
            .hover_info(HoverInfo::Skip),
    );
    plot.add_trace(
        Scatter::new(ends.clone(), ends.clone())
            .mode(Mode::Lines)
            .line(Line::new().width(1.0).color(colour(&colours.ink)).dash(DashType::Solid))
            .hover_info(HoverInfo::Skip),
    );
    let step = set.points.len().div_ceil(MAX_POINTS).max(1);
    let visible_points =
        || set.points.iter().step_by(step).filter(|point| point.measured > 0.0 && point.predicted > 0.0);
    let many = set.points.len() > 200;
    plot.add_trace(
        Scatter::new(
            visible_points().map(|point| point.measured.log10()).collect(),
            visible_points().map(|point| point.predicted.log10()).collect(),
        )
        .mode(Mode::Markers)
        .hover_text_array(visible_points().map(|point| hover_text(point, &set.unit)).collect())
        .hover_info(HoverInfo::Text)
        .marker(
            Marker::new()
                .color(colour(&colours.accent))
                .size(if many { 5 } else { 9 })
                .opacity(if many { 0.5 } else { 0.9 })
                .line(Line::new().width(if many { 0.0 } else { 1.0 }).color(colour(&colours.panel))),
        ),
    );
    let labels = ((width_px / 70.0) as usize).clamp(3, 9);
    let axis = |title: &str, labels: usize| -> Axis {
        let (values, texts) = marks(minimum, maximum, labels).into_iter().unzip();
        colours
            .axis()
            .range(ends.clone())
            .tick_mode(TickMode::Array)
            .tick_values(values)
            .tick_text(texts)
            .tick_angle(0.0)
            .title(Title::with_text(format!("{title}, {}", set.unit)).font(colours.font()))
    };
    plot.set_layout(
        colours
            .layout(Margin::new().left(58).right(14).top(8).bottom(44))
            .x_axis(axis("measured", labels))
            .y_axis(axis("predicted", 9))
            .show_legend(false)
            .hover_mode(HoverMode::Closest),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

/// Returns a "#rrggbb" colour with reduced opacity, so that the grid stays visible.
fn translucent(colour: &str) -> String {
    format!("{colour}22")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(measured: f64, predicted: f64) -> AccuracyPoint {
        AccuracyPoint { label: "22B, TP 8".into(), measured, predicted, properties: vec![] }
    }

    #[test]
    fn both_axes_hold_every_value() {
        assert_eq!(extent(&[point(10.0, 8.0), point(100.0, 120.0)]), (6.4, 150.0));
        assert_eq!(extent(&[point(0.0, 8.0)]), (6.4, 10.0), "zero has no logarithm");
        assert_eq!(extent(&[]), (0.1, 10.0));
    }

    #[test]
    fn narrow_ranges_have_marks_too() {
        let texts = |from, to| marks(from, to, 6).into_iter().map(|mark| mark.1).collect::<Vec<_>>();
        assert_eq!(texts(1.0, 100.0).len(), 3, "powers of ten, as seven marks are too many");
        assert_eq!(texts(60.0, 96.0), ["60", "70", "80", "90"]);
        assert_eq!(texts(0.31, 0.48), ["0.35", "0.40", "0.45"]);
    }

    #[test]
    fn the_pointer_names_the_configuration() {
        let text = hover_text(&point(10.0, 8.0), "s").replace('\u{202f}', " ");
        assert_eq!(text, "22B, TP 8<br>measured 10.0 s<br>predicted 8.00 s, −20.0 %");
        let nameless = AccuracyPoint { label: String::new(), ..point(10.0, 11.0) };
        assert!(hover_text(&nameless, "ms").starts_with("measured"));
    }
}
