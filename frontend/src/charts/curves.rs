//! Line chart with several curves that differ in colour and dash.

use leptos::prelude::*;
use plotly::common::{DashType, HoverInfo, Line, LineShape, Marker, MarkerSymbol, Mode, TickMode, Title};
use plotly::layout::{Axis, AxisRange, AxisType, HoverMode, Margin};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::{Colours, NUMBERS, colour, configuration};
use crate::format;
use crate::gantt::Theme;
use crate::gantt::observers::{theme, theme_version};

/// Dash pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dash {
    Solid,
    Dashed,
    Dotted,
    Alternating,
    /// Long dashes, for limits.
    Long,
}

impl Dash {
    pub(super) const fn plotly(self) -> DashType {
        match self {
            Self::Solid => DashType::Solid,
            Self::Dashed => DashType::Dash,
            Self::Dotted => DashType::Dot,
            Self::Alternating => DashType::DashDot,
            Self::Long => DashType::LongDash,
        }
    }

    /// SVG `stroke-dasharray` value for the legend.
    pub(super) const fn strokes(self) -> &'static str {
        match self {
            Self::Solid => "none",
            Self::Dashed => "6 4",
            Self::Alternating => "6 3 2 3",
            Self::Dotted => "2 2",
            Self::Long => "9 4",
        }
    }
}

/// Interpolation and marker style of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Step function: each value holds until the next point.
    Steps,
    /// Straight segments with a marker at each point.
    Marked,
    /// Straight reference line without hover text.
    Level,
    /// Ring markers without a line, for highlighting points of other curves.
    Rings,
}

/// Curve of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// Name in the legend and the hover text.
    pub(crate) name: String,
    /// Colour in the light theme, "#rrggbb".
    pub(crate) light: &'static str,
    /// Colour in the dark theme, "#rrggbb".
    pub(crate) dark: &'static str,
    pub(crate) dash: Dash,
    pub(crate) form: Form,
    /// Points sorted by x.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    fn colour(&self) -> &'static str {
        if theme() == Theme::Dark { self.dark } else { self.light }
    }
}

/// Line chart of several curves. The y axis is time in seconds unless `up` gives another title.
#[component]
pub(crate) fn CurveChart(
    /// Curves in legend order.
    #[prop(into)]
    curves: Signal<Vec<Curve>>,
    /// Title of the x axis.
    #[prop(into)]
    over: Signal<String>,
    /// Title of the y axis, if it is not time in seconds.
    #[prop(into, default = String::new())]
    up: String,
    /// Text alternative for screen readers.
    #[prop(into)]
    label: Signal<String>,
    /// Identifier for tests.
    test_id: &'static str,
) -> impl IntoView {
    let version = theme_version();
    let plot = Memo::new(move |_| {
        version.track();
        let drawn = |curves: &[Curve]| over.with(|over| plot(curves, over, &up, &Colours::read()));
        curves.with(|curves| (!curves.is_empty()).then(|| drawn(curves)))
    });
    let theme_changes = theme_version();
    let legend = move || {
        theme_changes.track();
        curves.with(|curves| {
            let entry = |curve: &Curve| {
                let (colour, name) = (curve.colour(), curve.name.clone());
                let mark = if curve.form == Form::Rings {
                    view! {
                        <svg class="ring" viewBox="0 0 12 12" aria-hidden="true">
                            <circle cx="6" cy="6" r="4.5" stroke=colour fill="none" />
                        </svg>
                    }
                    .into_any()
                } else {
                    view! {
                        <svg viewBox="0 0 22 4" aria-hidden="true">
                            <line x1="0" y1="2" x2="22" y2="2" stroke=colour stroke-dasharray=curve.dash.strokes() />
                        </svg>
                    }
                    .into_any()
                };
                view! { <li>{mark}{name}</li> }
            };
            curves.iter().map(entry).collect_view()
        })
    };
    view! {
        <div data-testid=test_id data-points=move || curves.with(|curves| curves.iter().map(|curve| curve.points.len()).sum::<usize>())>
            <ul class="chart-legend">{legend}</ul>
            <Figure plot=plot label=label class="chart-curves" />
        </div>
    }
}

/// Minimum and maximum over all values with a margin. The axis does not start at zero, because
/// iteration times are close together.
fn extent(curves: &[Curve]) -> (f64, f64) {
    let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let (lower, upper) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if lower > upper {
        return (0.0, 1.0);
    }
    let margin = (0.06 * (upper - lower)).max(0.002 * upper.abs()).max(f64::MIN_POSITIVE);
    (lower - margin, upper + margin)
}

/// Maximum number of values that are ticks of their own.
const MAX_TICKS: usize = 8;

/// Returns the values of the x axis if all curves have markers at few values: ticks between them would name values that
/// the curves do not have, for example 1.5 nodes.
fn marked_values(curves: &[Curve]) -> Option<Vec<f64>> {
    // Rings highlight points of other curves.
    let curves = || curves.iter().filter(|curve| curve.form != Form::Rings);
    if curves().next().is_none() || curves().any(|curve| curve.form != Form::Marked) {
        return None;
    }
    let mut values: Vec<f64> = curves().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    (values.len() <= MAX_TICKS).then_some(values)
}

/// True if each value is about twice the one before or more: a linear axis would press the first ones together.
fn is_geometric(values: &[f64]) -> bool {
    const MIN_RATIO: f64 = 1.8;
    values.len() >= 3 && values[0] > 0.0 && values.windows(2).all(|pair| pair[1] >= MIN_RATIO * pair[0])
}

/// Formats a value of the x axis. Lengths in tokens have binary thousands: "16K".
pub(crate) fn tick_text(value: f64, title: &str) -> String {
    const BINARY: f64 = 1024.0;
    let is_binary = title.ends_with("tokens") && value >= BINARY && (value / BINARY).fract() == 0.0;
    if is_binary { format!("{}K", format::length(value / BINARY)) } else { format::length(value) }
}

/// Sets marked values as ticks, and a logarithmic axis if they are geometric.
fn marked_axis(axis: Axis, values: Vec<f64>, title: &str) -> Axis {
    let texts = values.iter().map(|value| tick_text(*value, title)).collect();
    let axis = if is_geometric(&values) { axis.type_(AxisType::Log) } else { axis };
    axis.tick_mode(TickMode::Array).tick_values(values).tick_text(texts).hover_format(",")
}

/// Returns the plot as JSON.
fn plot(curves: &[Curve], over: &str, up: &str, colours: &Colours) -> String {
    let mut plot = Plot::new();
    let value = if up.is_empty() { "%{y:,.4~r} s" } else { "%{y:,.4~r}" };
    for curve in curves {
        let (x, y): (Vec<f64>, Vec<f64>) = curve.points.iter().copied().unzip();
        let line = Line::new().width(if curve.form == Form::Level { 1.2 } else { 1.8 }).color(curve.colour());
        let line = line.dash(curve.dash.plotly());
        let scatter = Scatter::new(x, y).name(&curve.name).hover_template(value);
        plot.add_trace(match curve.form {
            Form::Steps => scatter.mode(Mode::Lines).line(line.shape(LineShape::Hv)),
            Form::Marked => scatter.mode(Mode::LinesMarkers).line(line).marker(Marker::new().size(5)),
            Form::Level => scatter.mode(Mode::Lines).line(line).hover_info(HoverInfo::Skip),
            Form::Rings => {
                let ring = Line::new().width(2.0).color(curve.colour());
                let ring = Marker::new().symbol(MarkerSymbol::CircleOpen).size(13).line(ring).color(curve.colour());
                scatter.mode(Mode::Markers).marker(ring).hover_info(HoverInfo::Skip)
            }
        });
    }
    let (lower, upper) = extent(curves);
    let x_axis = colours.axis().show_grid(false).n_ticks(8).title(Title::with_text(over).font(colours.font()));
    let x_axis = match marked_values(curves) {
        Some(values) => marked_axis(x_axis, values, over),
        None => x_axis,
    };
    let y_axis = colours.axis().range(AxisRange::new(lower, upper)).n_ticks(6).tick_format(NUMBERS).show_line(false);
    let y_axis =
        if up.is_empty() { y_axis.tick_suffix(" s") } else { y_axis.title(Title::with_text(up).font(colours.font())) };
    plot.set_layout(
        colours
            .layout(Margin::new().left(58).right(14).top(8).bottom(40))
            .paper_background_color(colour(&colours.panel))
            .x_axis(x_axis)
            .y_axis(y_axis)
            .show_legend(false)
            .hover_mode(HoverMode::XUnified),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        let (light, dark) = ("#000000", "#ffffff");
        Curve { name: "a".into(), light, dark, dash: Dash::Solid, form: Form::Steps, points: points.to_vec() }
    }

    #[test]
    fn axis_covers_all_values_with_margin() {
        let (lower, upper) = extent(&[curve(&[(0.0, 16.0), (1.0, 15.0)]), curve(&[(0.0, 14.0)])]);
        assert!(lower < 14.0 && lower > 13.8 && upper > 16.0 && upper < 16.2);
        let (single_lower, single_upper) = extent(&[curve(&[(0.0, 15.0)])]);
        assert!(single_lower < 15.0 && single_upper > 15.0, "one value has room too");
        assert_eq!(extent(&[]), (0.0, 1.0));
    }

    #[test]
    fn doubling_values_have_a_logarithmic_axis() {
        assert!(is_geometric(&[8192.0, 16384.0, 32768.0]));
        assert!(!is_geometric(&[1.0, 2.0, 3.0]) && !is_geometric(&[1.0, 2.0]) && !is_geometric(&[0.0, 1.0, 2.0]));
        assert_eq!(tick_text(16_384.0, "context length, tokens"), "16K");
        assert_eq!((tick_text(4_096.0, "nodes"), tick_text(0.5, "rate")), ("4,096".to_owned(), "0.500".to_owned()));
    }

    #[test]
    fn few_marked_values_are_the_ticks() {
        let marked = |points: &[(f64, f64)]| Curve { form: Form::Marked, ..curve(points) };
        let curves = [marked(&[(1.0, 5.0), (4.0, 6.0)]), marked(&[(2.0, 5.0), (4.0, 7.0)])];
        assert_eq!(marked_values(&curves), Some(vec![1.0, 2.0, 4.0]));
        let rings = Curve { form: Form::Rings, ..curve(&[(2.0, 5.0)]) };
        assert_eq!(marked_values(&[curves.to_vec(), vec![rings]].concat()), Some(vec![1.0, 2.0, 4.0]));
        assert_eq!(marked_values(&[curve(&[(1.0, 5.0)])]), None, "steps are at any value");
        let many: Vec<(f64, f64)> = (0..9).map(|x| (f64::from(x), 1.0)).collect();
        assert_eq!(marked_values(&[marked(&many)]), None);
    }
}
