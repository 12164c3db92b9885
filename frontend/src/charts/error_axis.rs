//! Errors of the rows of an accuracy set over the values of a property.

use std::sync::Arc;

use api::accuracy::{AccuracyErrors, AccuracyPoint, AccuracySet};
use leptos::prelude::*;
use plotly::common::{HoverInfo, Line, Marker, MarkerSymbol, Mode, TickMode, Title};
use plotly::layout::{HoverMode, Margin};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::{Colours, MAX_POINTS, colour, configuration};
use crate::format;
use crate::gantt::observers::theme_version;

/// Errors over a property: a point per row, and a line at the mean of each value.
#[component]
pub(crate) fn ErrorChart(
    #[prop(into)] set: Signal<Arc<AccuracySet>>,
    /// Index of the property.
    #[prop(into)]
    axis: Signal<usize>,
) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(500.0);
    let plot = Memo::new(move |_| {
        version.track();
        set.with(|set| Some(plot(set, axis.get(), width.get(), &Colours::read())))
    });
    let label = Signal::derive(move || {
        set.with(|set| {
            let name = set.properties.get(axis.get()).cloned().unwrap_or_default();
            format!("Errors of {} by {name}: {} points", set.title, set.points.len())
        })
    });
    view! {
        <div data-testid="error-axis">
            <ul class="chart-legend">
                <li><i class="swatch round" aria-hidden="true"></i>"one measurement"</li>
                <li>
                    <svg viewBox="0 0 22 4" aria-hidden="true">
                        <line x1="0" y1="2" x2="22" y2="2" stroke="var(--ink)" stroke-width="2" />
                    </svg>
                    "mean"
                </li>
            </ul>
            <Figure plot=plot label=label class="chart-fit" width=width />
        </div>
    }
}

/// Returns the values of a property in ascending order, numbers before other texts, each with its points.
fn groups(set: &AccuracySet, axis: usize) -> Vec<(String, Vec<AccuracyPoint>)> {
    let mut groups: Vec<(String, Vec<AccuracyPoint>)> = Vec::new();
    for point in &set.points {
        let value = point.properties.get(axis).cloned().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, points)) => points.push(point.clone()),
            None => groups.push((value, vec![point.clone()])),
        }
    }
    groups.sort_by(|(a, _), (b, _)| format::numbers_first(a, b));
    groups
}

/// Half of the width of the marks of a value, in units of the distance of two values.
const SPREAD: f64 = 0.3;

/// Position of one of `count` points of a value, symmetric to the middle of the value.
fn shift(number: usize, count: usize) -> f64 {
    SPREAD * ((2 * number + 1) as f64 / count.max(1) as f64 - 1.0)
}

/// Width of a letter of a label, in px.
const LETTER_PX: f64 = 6.6;
/// Width of both margins, in px.
const MARGINS_PX: f64 = 72.0;

/// Returns the labels, whether they are upright, and the lower margin. Labels that do not fit beside each other are upright.
fn labels(values: &[String], width_px: f64) -> (Vec<String>, bool, usize) {
    let longest = |labels: &[String]| labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64;
    let level: Vec<String> = values.iter().map(|value| shortened(value, MAX_LETTERS)).collect();
    let place_px = (width_px - MARGINS_PX) / values.len().max(1) as f64;
    if (longest(&level) + 1.0) * LETTER_PX <= place_px {
        return (level, false, 56);
    }
    let upright: Vec<String> = values.iter().map(|value| shortened(value, MAX_UPRIGHT)).collect();
    let margin = 14.0 + longest(&upright) * LETTER_PX;
    (upright, true, margin as usize)
}

fn plot(set: &AccuracySet, axis: usize, width_px: f64, colours: &Colours) -> String {
    let groups = groups(set, axis);
    let mut plot = Plot::new();
    let step = set.points.len().div_ceil(MAX_POINTS).max(1);
    let (mut x, mut y, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (value, points)) in groups.iter().enumerate() {
        for (number, point) in points.iter().enumerate().step_by(step) {
            // Points of one value are spread in their order, so that all stay visible.
            x.push(place as f64 + shift(number, points.len()));
            y.push(100.0 * point.error());
            texts.push(hover(point, value, set));
        }
    }
    let many = set.points.len() > 200;
    plot.add_trace(
        Scatter::new(x, y).mode(Mode::Markers).hover_text_array(texts).hover_info(HoverInfo::Text).marker(
            Marker::new()
                .symbol(MarkerSymbol::Circle)
                .color(colour(&colours.accent))
                .size(if many { 4 } else { 8 })
                .opacity(if many { 0.5 } else { 0.8 }),
        ),
    );
    for (place, (_, points)) in groups.iter().enumerate() {
        let Some(errors) = AccuracyErrors::of(points) else { continue };
        let ends = vec![place as f64 - SPREAD, place as f64 + SPREAD];
        plot.add_trace(
            Scatter::new(ends, vec![errors.bias_pct; 2])
                .mode(Mode::Lines)
                .line(Line::new().width(2.0).color(colour(&colours.ink)))
                .hover_info(HoverInfo::Skip),
        );
    }
    let name = set.properties.get(axis).cloned().unwrap_or_default();
    let places = (0..groups.len()).map(|place| place as f64).collect();
    let values: Vec<String> = groups.iter().map(|(value, _)| value.clone()).collect();
    let (values, is_upright, bottom) = labels(&values, width_px);
    let horizontal = colours
        .axis()
        .tick_mode(TickMode::Array)
        .tick_values(places)
        .tick_text(values)
        .tick_angle(if is_upright { -90.0 } else { 0.0 });
    // A title would overlap upright labels. The select above names the property.
    let horizontal =
        if is_upright { horizontal } else { horizontal.title(Title::with_text(name).font(colours.font())) };
    let vertical = colours.axis().title(Title::with_text("error, %").font(colours.font()));
    plot.set_layout(
        colours
            .layout(Margin::new().left(58).right(14).top(8).bottom(bottom))
            .x_axis(horizontal)
            .y_axis(vertical)
            .show_legend(false)
            .hover_mode(HoverMode::Closest),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

/// Maximum number of letters of a value on the axis.
const MAX_LETTERS: usize = 18;
/// Maximum number of letters of an upright value.
const MAX_UPRIGHT: usize = 13;

fn shortened(value: &str, max_letters: usize) -> String {
    if value.is_empty() {
        return "not stated".to_owned();
    }
    let short: String = value.chars().take(max_letters).collect();
    if short.len() < value.len() { format!("{short}…") } else { short }
}

fn hover(point: &AccuracyPoint, value: &str, set: &AccuracySet) -> String {
    let name = if point.label.is_empty() { value } else { &point.label };
    let (measured, predicted) = (format::three_digits(point.measured), format::three_digits(point.predicted));
    let (error, unit) = (format::signed_percent(point.error()), &set.unit);
    format!("{name}<br>measured {measured} {unit}<br>predicted {predicted} {unit}, {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::accuracy::{AccuracyErrors, AccuracyGoal};

    #[test]
    fn values_are_in_the_order_of_numbers() {
        let point = |value: &str| AccuracyPoint {
            label: String::new(),
            measured: 1.0,
            predicted: 1.1,
            properties: vec![value.to_owned()],
        };
        let points: Vec<AccuracyPoint> = ["16", "2", "", "2"].map(point).to_vec();
        let set = AccuracySet {
            id: "a".into(),
            title: String::new(),
            source: String::new(),
            unit: "s".into(),
            goal: AccuracyGoal { mean: 1.0, largest: None },
            peer: String::new(),
            statistics: AccuracyErrors::of(&points).unwrap(),
            variants: vec![],
            assumptions: vec![],
            findings: vec![],
            remarks: String::new(),
            properties: vec!["TP".into()],
            choices: vec![],
            points,
        };
        let values: Vec<(String, usize)> =
            groups(&set, 0).into_iter().map(|(value, points)| (value, points.len())).collect();
        assert_eq!(values, [("2".to_owned(), 2), ("16".to_owned(), 1), (String::new(), 1)]);
        assert_eq!(shortened("", MAX_LETTERS), "not stated");
        assert_eq!(shortened(&"x".repeat(30), MAX_LETTERS).chars().count(), 19);
        let sums: [f64; 2] = [shift(0, 1), shift(0, 2) + shift(1, 2)];
        assert!(sums.iter().all(|sum| sum.abs() < 1e-12), "symmetric to the mean line: {sums:?}");
        let models = ["gpt-22B", "gpt-175B", "turing-530B", "gpt-1T"].map(str::to_owned);
        assert!(!labels(&models, 700.0).1);
        let (upright, is_upright, bottom) = labels(&models, 300.0);
        assert_eq!((upright.last().map(String::as_str), is_upright), (Some("gpt-1T"), true));
        assert!(bottom > 56, "{bottom}");
    }
}
