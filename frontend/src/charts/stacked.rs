//! Horizontal stacked bars for time and memory breakdowns.

use leptos::prelude::*;
use plotly::common::{
    DashType, HoverInfo, Line, Marker, Orientation, Pattern, PatternFillMode, PatternShape, TickMode,
};
use plotly::layout::{BarMode, HoverMode, Margin, Shape, ShapeLayer, ShapeLine, ShapeType, TicksDirection};
use plotly::{Bar, Plot};

use super::figure::Figure;
use super::{Colours, colour, configuration};
use crate::format;
use crate::gantt::Theme;
use crate::gantt::observers::{theme, theme_version};

/// Segment type shared by all bars. Adjacent segments also differ in lightness, for readers who
/// cannot distinguish the colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Name in the legend and the hover text.
    pub(crate) name: &'static str,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
    pub(crate) fill: Fill,
}

/// Fill style of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Solid,
    /// Hatched, for idle time or reserved memory.
    Hatched,
}

impl Part {
    fn colour(&self) -> &'static str {
        if theme() == Theme::Dark { self.dark } else { self.light }
    }
}

/// Bar with stacked segments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StackedRow {
    pub(crate) label: String,
    /// Segment sizes, in legend order.
    pub(crate) values: Vec<f64>,
}

impl StackedRow {
    /// Total length of the bar.
    pub(crate) fn total(&self) -> f64 {
        self.values.iter().sum()
    }
}

/// Quantity on the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Time in s.
    Seconds,
    /// Memory in GiB.
    Gib,
}

impl Measure {
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => format::seconds(value),
            Self::Gib => format::gib(value),
        }
    }

    /// Size and name of the axis unit for bars up to `most`.
    fn axis_unit(self, max_value: f64) -> (f64, &'static str) {
        match self {
            Self::Seconds if max_value < 1.0 => (1e-3, " ms"),
            Self::Seconds => (1.0, " s"),
            Self::Gib => (1.0, " GiB"),
        }
    }
}

/// Vertical line across all bars.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    pub(crate) value: f64,
    pub(crate) name: &'static str,
}

/// Stacked bars with a legend.
#[component]
pub(crate) fn StackedBars(
    parts: &'static [Part],
    /// Bars from top to bottom.
    #[prop(into)]
    rows: Signal<Vec<StackedRow>>,
    measure: Measure,
    /// Vertical line across all bars.
    #[prop(into)]
    limit: Signal<Option<Limit>>,
    /// Text alternative for screen readers.
    #[prop(into)]
    label: Signal<String>,
) -> impl IntoView {
    let version = theme_version();
    let legend_version = theme_version();
    let width = RwSignal::new(600.0);
    let plot = Memo::new(move |_| {
        version.track();
        let (limit, width_px) = (limit.get(), width.get());
        rows.with(|rows| {
            (!rows.is_empty()).then(|| plot(parts, rows, measure, limit.as_ref(), width_px, &Colours::read()))
        })
    });
    let height = Signal::derive(move || rows.with(|rows| height_px(rows.len())));
    let swatches = move || {
        legend_version.track();
        let swatch = |part: &'static Part| {
            let ground = match part.fill {
                Fill::Solid => part.colour().to_owned(),
                Fill::Hatched => {
                    let line = part.colour();
                    format!("repeating-linear-gradient(-45deg, {line} 0 1.5px, transparent 1.5px 4px)")
                }
            };
            view! { <li><i class="swatch" style:background=ground aria-hidden="true"></i>{part.name}</li> }
        };
        parts.iter().map(swatch).collect_view()
    };
    let limit_entry = move || {
        limit.get().map(|limit| {
            view! {
                <li>
                    <svg viewBox="0 0 22 4" aria-hidden="true">
                        <line x1="0" y1="2" x2="22" y2="2" stroke="var(--bad)" stroke-dasharray="9 4" />
                    </svg>
                    {format!("{}, {}", limit.name, measure.text(limit.value))}
                </li>
            }
        })
    };
    view! {
        <ul class="chart-legend">{swatches}{limit_entry}</ul>
        <Figure plot=plot label=label class="chart-stacked" width=width height=height />
    }
}

/// Height per bar in px, including the gap. It is smaller for a large bar count.
const fn row_px(rows: usize) -> usize {
    match rows {
        0..=8 => 26,
        9..=32 => 16,
        _ => 9,
    }
}

const TOP_PX: usize = 4;
const BOTTOM_PX: usize = 24;
const RIGHT_PX: usize = 14;
/// Width per axis label, in px.
const PX_PER_TICK: f64 = 46.0;

fn height_px(rows: usize) -> f64 {
    (rows * row_px(rows) + TOP_PX + BOTTOM_PX) as f64
}

/// Labels every n-th bar, so that the labels do not overlap.
const fn naming_step(rows: usize) -> usize {
    match rows {
        0..=32 => 1,
        33..=64 => 4,
        _ => 8,
    }
}

/// Left margin in px for the longest bar label.
fn left_px(rows: &[StackedRow]) -> usize {
    let max_length = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    (max_length * 13 / 2 + 12).clamp(40, 130)
}

/// Returns the plot as JSON.
fn plot(
    parts: &[Part],
    rows: &[StackedRow],
    measure: Measure,
    limit: Option<&Limit>,
    width_px: f64,
    colours: &Colours,
) -> String {
    let max_total = rows.iter().map(StackedRow::total).fold(0.0, f64::max);
    let axis_limit = limit.map_or(max_total, |limit| max_total.max(limit.value));
    let (unit, name) = measure.axis_unit(axis_limit);
    let places: Vec<f64> = (0..rows.len()).map(|index| index as f64).collect();
    let mut plot = Plot::new();
    for (index, part) in parts.iter().enumerate() {
        let value = |row: &StackedRow| row.values.get(index).copied().unwrap_or(0.0);
        let texts = rows.iter().map(|row| hover_text(part, row, value(row), measure)).collect();
        plot.add_trace(
            Bar::new(rows.iter().map(|row| value(row) / unit).collect(), places.clone())
                .name(part.name)
                .orientation(Orientation::Horizontal)
                .hover_text_array(texts)
                .hover_info(HoverInfo::Text)
                .marker(marker(part, colours)),
        );
    }
    let left = left_px(rows);
    let axis_px = (width_px - (left + RIGHT_PX) as f64).max(60.0);
    let x_axis = colours
        .axis()
        .range(vec![0.0, axis_limit / unit * 1.03])
        .n_ticks(((axis_px / PX_PER_TICK) as usize).clamp(2, 10))
        .tick_suffix(name)
        .tick_angle(0.0);
    let named = (0..rows.len()).step_by(naming_step(rows.len()));
    let (values, texts): (Vec<f64>, Vec<String>) = named.map(|index| (index as f64, rows[index].label.clone())).unzip();
    // The first bar is at the top.
    let y_axis = colours
        .axis()
        .range(vec![rows.len() as f64 - 0.5, -0.5])
        .tick_mode(TickMode::Array)
        .tick_values(values)
        .tick_text(texts)
        .show_grid(false)
        .show_line(false)
        .ticks(TicksDirection::Outside)
        .tick_length(4)
        .tick_color(colour("rgba(0,0,0,0)"));
    let line = |limit: &Limit| {
        Shape::new()
            .shape_type(ShapeType::Line)
            .x_ref("x")
            .y_ref("paper")
            .x0(limit.value / unit)
            .x1(limit.value / unit)
            .y0(0.0)
            .y1(1.0)
            .layer(ShapeLayer::Above)
            .line(ShapeLine::new().color(colour(&colours.bad)).width(1.5).dash(DashType::Dash))
    };
    let margin = Margin::new().left(left).right(RIGHT_PX).top(TOP_PX).bottom(BOTTOM_PX);
    plot.set_layout(
        colours
            .layout(margin)
            .bar_mode(BarMode::Stack)
            .bar_gap(0.28)
            .x_axis(x_axis)
            .y_axis(y_axis)
            .shapes(limit.map(line).into_iter().collect())
            .show_legend(false)
            .hover_mode(HoverMode::Closest),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

fn marker(part: &Part, colours: &Colours) -> Marker {
    // A border in the page colour separates adjacent segments for all types of colour vision.
    let marker = Marker::new().color(part.colour());
    match part.fill {
        Fill::Solid => marker.line(Line::new().width(1.0).color(colour(&colours.panel))),
        Fill::Hatched => marker.line(Line::new().width(1.0).color(part.colour())).pattern(
            Pattern::new()
                .shape(PatternShape::RightDiagonalLine)
                .fill_mode(PatternFillMode::Replace)
                .size(5.0)
                .solidity(0.25),
        ),
    }
}

fn hover_text(part: &Part, row: &StackedRow, value: f64, measure: Measure) -> String {
    let share = value / row.total();
    format!(
        "{}: {}<br>{}, {} of {}",
        row.label,
        part.name,
        measure.text(value),
        format::percent(share),
        measure.text(row.total())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 2] = [
        Part { name: "computation", light: "#000000", dark: "#ffffff", fill: Fill::Solid },
        Part { name: "idle", light: "#000000", dark: "#ffffff", fill: Fill::Hatched },
    ];

    #[test]
    fn the_pointer_learns_value_and_share() {
        let row = StackedRow { label: "rank 1".into(), values: vec![3.0, 1.0] };
        let text = hover_text(&PARTS[1], &row, 1.0, Measure::Seconds).replace('\u{202f}', " ");
        assert_eq!(text, "rank 1: idle<br>1.00 s, 25.0 % of 4.00 s");
        let empty = StackedRow { label: "rank 1".into(), values: vec![0.0, 0.0] };
        let text = hover_text(&PARTS[1], &empty, 0.0, Measure::Gib).replace('\u{202f}', " ");
        assert_eq!(text, "rank 1: idle<br>0 GiB, – of 0 GiB");
    }

    #[test]
    fn short_times_have_an_axis_in_milliseconds() {
        assert_eq!(Measure::Seconds.axis_unit(0.8), (1e-3, " ms"));
        assert_eq!(Measure::Seconds.axis_unit(1.0), (1.0, " s"));
        assert_eq!(Measure::Gib.axis_unit(0.2), (1.0, " GiB"));
    }

    #[test]
    fn row_names_do_not_overlap_for_any_bar_count() {
        for rows in [1, 8, 9, 32, 33, 64, 65, 128] {
            assert!(naming_step(rows) * row_px(rows) >= 14, "{rows}");
            assert!(height_px(rows) < 1_300.0, "{rows}");
        }
    }
}
